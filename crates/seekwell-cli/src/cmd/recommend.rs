//! `seekwell recommend`: recommends a scheduler, from results or from a simulation.

use super::compare::names;
use super::report::{results_of, something};
use crate::cli::Recommend;
use crate::fail::Failure;
use crate::guests::{Guests, is_asked};
use crate::lab::{self, Place};
use crate::out::{Out, note, width};
use crate::runs::{Simulator, asked};
use crate::setups::{self, Usual};
use crate::throttles::with_the_other;
use seekwell_core::once::Once;
use seekwell_lab::analysis::{Analysis, Weights, analyse_weighted};
use seekwell_lab::conduct::Runner;
use seekwell_lab::results::Results;
use seekwell_report::advice::{Advice, all};
use seekwell_report::story::answers;
use seekwell_report::throttle;
use serde_json::json;
use std::path::Path;

/// Returns a workload and its weight. The weight is the number after the last `=`, unless that `=`
/// belongs to a parameter.
fn weighted(text: &str) -> Result<(String, f64), Failure> {
    let Some((head, tail)) = text.rsplit_once('=') else {
        return Ok((text.to_owned(), 1.0));
    };
    let last = head.rsplit([',', ':']).next().unwrap_or(head);
    if head.contains(':') && !last.contains('=') {
        return Ok((text.to_owned(), 1.0));
    }
    match tail.trim().parse::<f64>() {
        Ok(w) if w.is_finite() && w > 0.0 => Ok((head.trim().to_owned(), w)),
        _ => Err(Failure::input(format!(
            "--workload {text}: \"{tail}\" is not a weight; write a number above 0 (pgbench=3)"
        ))),
    }
}

/// Returns all workloads with their weights. Each workload may appear once.
fn all_weighted(texts: &[String]) -> Result<Vec<(String, f64)>, Failure> {
    let mut once = Once::default();
    let mut all = Vec::new();
    for text in texts {
        let (name, weight) = weighted(text)?;
        let bad = |what| Failure::input(format!("--workload {text}: {what}"));
        once.take(&name, text).map_err(bad)?;
        all.push((name, weight));
    }
    Ok(all)
}

fn weights(list: &[(String, f64)]) -> Weights {
    Weights {
        named: list.iter().cloned().collect(),
        only: !list.is_empty(),
    }
}

/// Returns the results of the requested device with the requested weights, and their analysis.
fn found(a: &Recommend, path: &Path) -> Result<(Results, Analysis), Failure> {
    let list = all_weighted(&a.workload)?;
    let (mut results, _) = results_of(path)?;
    results
        .judged_by(&a.bench.metric)
        .map_err(|(metric, known)| {
            Failure::input(format!(
                "{}: no run reports the metric \"{metric}\"; there are {}",
                path.display(),
                known.join(", ")
            ))
        })?;
    let plain = |w: &str| w.split([':', ' ', '[']).next().unwrap_or(w).to_owned();
    for (name, _) in &list {
        let known = results
            .cells
            .iter()
            .any(|c| [&c.name, &c.workload, &plain(&c.workload)].contains(&name));
        if !known {
            let mut names: Vec<String> = results.cells.iter().map(|c| plain(&c.workload)).collect();
            names.dedup();
            return Err(Failure::input(format!(
                "{}: no workload is called \"{name}\"; there are {}",
                path.display(),
                names.join(", ")
            )));
        }
    }
    let mut analysis = analyse_weighted(&results, &weights(&list));
    something(path, &analysis)?;
    if !a.bench.device.is_empty() {
        let devices: Vec<String> = analysis.groups.iter().map(|g| g.device.clone()).collect();
        analysis
            .groups
            .retain(|g| a.bench.device.contains(&g.device));
        if analysis.groups.is_empty() {
            return Err(Failure::input(format!(
                "{}: no run used the device {}; there are {}",
                path.display(),
                a.bench.device.join(", "),
                devices.join(", ")
            )));
        }
    }
    Ok((results, analysis))
}

/// Runs the simulation with writeback throttling off and on. Returns the results, the analysis, and
/// notes about kernel and throttling.
fn simulated(a: &Recommend, quiet: bool) -> Result<(Results, Analysis, String), Failure> {
    let mut b = setups::with_seeds(&a.bench, a.workload.is_empty());
    let usual = Usual::several(&b);
    let mut given = all_weighted(&a.workload)?;
    if given.is_empty() {
        let all = b.era.usual().workloads.iter();
        given = all.map(|w| ((*w).to_owned(), 1.0)).collect();
    }
    let (mut specs, mut plans, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for (name, weight) in given {
        let asked = asked(&name, &[])?;
        specs.push(asked.spec);
        plans.push(asked.plan);
        own.push(weight);
    }
    let names = names(&plans);
    let list: Vec<(String, f64)> = names.iter().cloned().zip(own).collect();
    setups::memory(&b, &usual, quiet)?;
    let guests = match is_asked(&b) {
        true => Some(Guests::new(b.kernel.as_deref())?),
        false => None,
    };
    if guests.is_none() {
        b.schedulers = with_the_other(&b, &usual)?;
    }
    let runs = setups::all_runs(&b, &usual, &a.machine, &specs, &[])?;
    let place = Place::new(&b, false)?;
    let simulator = Simulator::default();
    let runner: &dyn Runner = match &guests {
        Some(guests) => guests,
        None => &simulator,
    };
    let lab = lab::carried_out(quiet, &b, &place, &runs, &names, runner)?;
    lab.cells.broken()?;
    let analysis = analyse_weighted(&lab.results, &weights(&list));
    if lab.seeds < 2 {
        note(
            quiet,
            "one seed is not enough for a recommendation; omit --seeds, or give more",
        );
    }
    let depends = lab.depends(width());
    Ok((lab.results, analysis, depends))
}

/// Prints the recommendation.
pub fn run(a: &Recommend, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    Out::check(output)?;
    let (results, analysis, depends) = match &a.results {
        Some(path) => {
            let (results, analysis) = found(a, path)?;
            let depends = throttle::lines(&results, width());
            (results, analysis, depends)
        }
        None => simulated(a, quiet)?,
    };
    let told: Vec<Advice> = all(&results, &analysis);
    let mut out = Out::open(output)?;
    if a.json {
        out.json(&json!({
            "schema": 1, "command": "recommend", "recommendations": told,
            "notes": depends.split_whitespace().collect::<Vec<_>>().join(" "),
        }))?;
        return out.done();
    }
    out.text(&answers(&told, width()))?;
    out.text(&depends)?;
    if results.cells.iter().all(|c| c.substrate == "sim") {
        out.prose("Simulated. How far to trust it: docs/reading.md.")?;
    }
    out.done()
}

#[cfg(test)]
mod tests {
    use super::weighted;

    #[test]
    fn workload_weight_is_parsed_after_the_parameters() {
        let of = |t: &str| weighted(t).ok();
        let is = |name: &str, w| Some((name.to_owned(), w));
        assert_eq!(of("pgbench"), is("pgbench", 1.0));
        assert_eq!(of("pgbench=3"), is("pgbench", 3.0));
        assert_eq!(of("fs-mark:files=100"), is("fs-mark:files=100", 1.0));
        assert_eq!(of("fs-mark:files=100=0.5"), is("fs-mark:files=100", 0.5));
        assert_eq!(of("a:x=1,y=2=3"), is("a:x=1,y=2", 3.0));
        for bad in [
            "pgbench=",
            "pgbench=x",
            "pgbench=-1",
            "pgbench=0",
            "a:x=1=nan",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
