//! `seekwell compare`: the built-in programs on a modelled disk, under several schedulers.

use crate::cli::Compare;
use crate::fail::Failure;
use crate::out::{Out, width};
use crate::progress::Progress;
use crate::setups;
use seekwell_core::result::Record;
use seekwell_report::compare as report;
use seekwell_sim::Setup;
use seekwell_sim::compare::run_all;
use seekwell_sim::workload::{BUILTINS, Builtin, run_builtin};
use serde_json::json;

fn run_one(setup: &Setup, b: &Builtin, label: &str, p: &Progress) -> Result<Record, Failure> {
    let fail = |e: String| Failure::input(format!("{label} on {}: {e}", setup.device));
    let mut queue = setup.build().map_err(|e| fail(e.to_string()))?;
    let ran = run_builtin(setup, &mut queue, b.name, &mut p.one(label));
    let mut record = match ran {
        Some(r) => r.map_err(|e| fail(e.to_string()))?,
        None => return Err(fail(format!("there is no program {}", b.name))),
    };
    label.clone_into(&mut record.scheduler.spec);
    Ok(record)
}

fn programs(a: &Compare) -> Result<Vec<&'static Builtin>, Failure> {
    let mut out = Vec::new();
    for name in a
        .workloads
        .split(',')
        .map(str::trim)
        .filter(|n| !n.is_empty())
    {
        let known = || {
            BUILTINS
                .iter()
                .map(|b| b.name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let b = BUILTINS.iter().find(|b| b.name == name).ok_or_else(|| {
            Failure::input(format!(
                "--workloads: there is no `{name}`; there are {}",
                known()
            ))
        })?;
        out.push(b);
    }
    if out.is_empty() {
        return Err(Failure::input("--workloads: name at least one"));
    }
    Ok(out)
}

/// Runs everything and prints the comparison.
pub fn run(a: &Compare, quiet: bool) -> Result<(), Failure> {
    let programs = programs(a)?;
    let groups = setups::of(&a.bench)?;
    let labels = setups::labels(&a.bench)?;
    // Every device x program x scheduler, in the order of the report.
    let jobs: Vec<(usize, usize, usize)> = (0..groups.len())
        .flat_map(|d| (0..programs.len()).map(move |p| (d, p)))
        .flat_map(|(d, p)| (0..labels.len()).map(move |s| (d, p, s)))
        .collect();
    let progress = Progress::new(quiet, jobs.len());
    let done = run_all(jobs.len(), setups::threads(&a.bench), |i| {
        let (d, p, s) = jobs[i];
        run_one(&groups[d][s], programs[p], &labels[s], &progress)
    });
    drop(progress);
    let records = done.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        out.json(&json!({ "schema": 1, "command": "compare", "records": records }))?;
        return out.done();
    }
    let per_device = programs.len() * labels.len();
    for of_device in records.chunks(per_device.max(1)) {
        out.text(&report::modelled(&of_device[0]))?;
        for (chunk, b) in of_device.chunks(labels.len()).zip(&programs) {
            out.line("")?;
            out.text(&report::comparison(b.summary, chunk, width()))?;
        }
        out.line("")?;
    }
    if !quiet {
        out.text(&report::legend(width()))?;
    }
    out.text(&report::eras(&records, width()))?;
    out.line(&format!(
        "For a recorded trace of your own: seekwell replay FILE --device {} --schedulers {}",
        a.bench.device[0], a.bench.schedulers
    ))?;
    out.done()
}
