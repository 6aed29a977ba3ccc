//! `seekwell defaults`: the schedulers that distributions set, and the evidence for them.

use super::compare::names;
use crate::cli::{Bench, Defaults, Era, Substrate};
use crate::fail::Failure;
use crate::lab::{self, Place};
use crate::out::{Out, columns, width};
use crate::runs::asked;
use crate::setups::{self, Usual};
use seekwell_lab::defaults::{CLASSES, Class, Distribution, class_of, defaults};
use seekwell_lab::usual::TODAY;
use seekwell_report::defaults::{self as report, Evidence};
use serde_json::{Value, json};

/// Returns the requested distributions, or all.
fn chosen(a: &Defaults) -> Result<Vec<&'static Distribution>, Failure> {
    let data = defaults();
    if a.distribution.is_empty() {
        return Ok(data.distributions.iter().collect());
    }
    let mut out: Vec<&Distribution> = Vec::new();
    for name in &a.distribution {
        let found = data.distribution(name);
        let found = found.map_err(|e| Failure::input(format!("--distribution: {e}")))?;
        if !out.iter().any(|d| d.name == found.name) {
            out.push(found);
        }
    }
    Ok(out)
}

/// Returns the options of the runs on one device. The schedulers are those of `compare`, followed
/// by those that the distributions set with tunables.
fn bench(a: &Defaults, class: Class, device: &str, chosen: &[&Distribution]) -> Bench {
    let usual: Vec<&str> = TODAY.schedulers.split(',').collect();
    let choices = report::choices(class, chosen).into_iter().map(|c| c.0);
    let own: Vec<String> = choices.filter(|c| !usual.contains(&c.as_str())).collect();
    Bench {
        device: vec![device.to_owned()],
        // With a `+`, the reference is the kernel's choice.
        schedulers: (!own.is_empty()).then(|| format!("+{}", own.join(","))),
        tunable: Vec::new(),
        kernel: None,
        substrate: Substrate::Sim,
        era: Era::Today,
        seeds: a.seeds.or(TODAY.seeds),
        seed: 1,
        hz: 250,
        nr_requests: None,
        depth: None,
        max_sectors_kb: None,
        nomerges: 0,
        threads: a.threads,
        metric: Vec::new(),
        force_memory: false,
        results: a.results.as_ref().map(|dir| dir.join(class.name())),
    }
}

/// Simulates a device of the class and judges the choices of the distributions.
fn evidence(
    a: &Defaults,
    class: Class,
    device: &str,
    chosen: &[&Distribution],
    quiet: bool,
) -> Result<Option<Evidence>, Failure> {
    let bench = bench(a, class, device, chosen);
    let usual = Usual::several(&bench);
    let texts: Vec<&str> = match a.workload.is_empty() {
        true => TODAY.workloads.to_vec(),
        false => a.workload.iter().map(String::as_str).collect(),
    };
    let (mut specs, mut plans) = (Vec::new(), Vec::new());
    for text in texts {
        let asked = asked(text, &[])?;
        specs.push(asked.spec);
        plans.push(asked.plan);
    }
    setups::memory(&bench, &usual, quiet)?;
    let runs = setups::all_runs(&bench, &usual, "", &specs, &[])?;
    let place = Place::new(&bench, false)?;
    let results = lab::results(quiet, &bench, &place, &runs, &names(&plans))?;
    Ok(report::evidence(class, device, chosen, &results))
}

fn evidence_for_all(
    a: &Defaults,
    chosen: &[&Distribution],
    quiet: bool,
) -> Result<Vec<Evidence>, Failure> {
    let devices: Vec<(Class, &str)> = match a.device.as_deref() {
        Some(device) => vec![(class_of(device).map_err(Failure::input)?, device)],
        None => CLASSES
            .iter()
            .filter_map(|c| Some((*c, c.device()?)))
            .collect(),
    };
    let mut out = Vec::new();
    for (class, device) in devices {
        out.extend(evidence(a, class, device, chosen, quiet)?);
    }
    Ok(out)
}

/// Returns the table as JSON.
fn as_json(chosen: &[&Distribution], device: Option<(&str, Class)>) -> Value {
    let data = defaults();
    let mut chosen: Vec<Distribution> = chosen.iter().map(|d| (*d).clone()).collect();
    if let Some((_, class)) = device {
        let rows = chosen.iter_mut().map(|d| &mut d.rows);
        rows.for_each(|rows| rows.retain(|r| r.classes.contains(&class)));
    }
    let used: Vec<&str> = chosen.iter().flat_map(|d| d.sources()).collect();
    let sources = data.sources.iter();
    let sources: Vec<_> = sources.filter(|s| used.contains(&&*s.id)).collect();
    let class = |c: &Class| json!({"name": c.name(), "about": c.about(), "device": c.device()});
    json!({
        "schema": 1, "command": "defaults",
        "device": device.map(|d| json!({"name": d.0, "class": d.1})),
        "classes": CLASSES.iter().map(class).collect::<Vec<_>>(),
        "distributions": chosen, "sources": sources,
    })
}

/// Prints the table, or the evidence.
pub fn run(a: &Defaults, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    Out::check(output)?;
    Out::apart(output, a.device.as_deref().and_then(setups::preset_file))?;
    let chosen = chosen(a)?;
    if a.evidence {
        let all = evidence_for_all(a, &chosen, quiet)?;
        let mut out = Out::open(output)?;
        if a.json {
            out.json(&json!({"schema": 1, "command": "defaults", "evidence": all}))?;
            return out.done();
        }
        out.text(&report::evidence_text(&all, &chosen, width()))?;
        out.prose("Simulated. How far to trust it: docs/reading.md.")?;
        return out.done();
    }
    let device = match a.device.as_deref() {
        Some(name) => Some((name, class_of(name).map_err(Failure::input)?)),
        None => None,
    };
    let mut out = Out::open(output)?;
    match device {
        _ if a.json => out.json(&as_json(&chosen, device))?,
        _ if a.markdown => out.text(&report::markdown(defaults()))?,
        Some((name, class)) => out.text(&report::of_device(name, class, &chosen, width()))?,
        None => {
            out.text(&report::text(defaults(), &chosen, columns()))?;
            out.prose("\nThe choices compared with simulated runs: seekwell defaults --evidence")?;
        }
    }
    out.done()
}
