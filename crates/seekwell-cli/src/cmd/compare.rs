//! `seekwell compare`: workloads on modelled disks, under several schedulers.

use super::run::{early, job_file, plan, simulate};
use crate::cli::Compare;
use crate::fail::Failure;
use crate::json::document;
use crate::out::{Out, columns, note, width};
use crate::progress::Progress;
use crate::setups::{self, Usual};
use seekwell_report::{compare as report, workload};
use seekwell_sim::compare::run_all;
use seekwell_workload::Plan;

/// What is compared when nothing is said: where schedulers differ, and short.
const USUAL: Usual = Usual {
    devices: &["hdd:hitachi-7k200", "ssd:sata3-256-2011"],
    schedulers: "cfq,deadline,noop,bfq",
};
const WORKLOADS: &[&str] = &[
    "streams:size=256m,seconds=2s",
    "interactive:size=256m,bulk=512m,seconds=10s",
    "fs-mark:files=60",
];

fn plans(a: &Compare) -> Result<Vec<Plan>, Failure> {
    let mut out = Vec::new();
    if a.workload.is_empty() {
        for w in WORKLOADS {
            out.push(plan(w, &[])?);
        }
        return Ok(out);
    }
    for spec in &a.workload {
        // A colon begins parameters, which have commas of their own.
        if spec.contains(':') {
            out.push(plan(spec, &[])?);
            continue;
        }
        for name in spec.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            out.push(plan(name, &[])?);
        }
    }
    if out.is_empty() {
        return Err(Failure::input("--workload: name at least one"));
    }
    Ok(out)
}

/// Names of workloads, each with its parameters where the name alone is not enough.
fn names(plans: &[Plan]) -> Vec<String> {
    let named = |p: &Plan| plans.iter().filter(|q| q.name() == p.name()).count();
    let name = |p: &Plan| match named(p) {
        1 => p.name().to_owned(),
        _ => p.short(),
    };
    plans.iter().map(name).collect()
}

/// Runs everything and prints the comparison.
pub fn run(a: &Compare, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    Out::check(output)?;
    let jobs = a.workload.iter().filter_map(|w| job_file(w));
    Out::apart(output, setups::files(&a.bench).chain(jobs))?;
    let plans = plans(a)?;
    for w in plans.iter().flat_map(Plan::warnings) {
        note(quiet, w);
    }
    setups::memory(&a.bench, &USUAL, quiet)?;
    let groups = setups::of(&a.bench, &USUAL)?;
    let labels = setups::labels(&a.bench, &USUAL)?;
    // Every device x program x scheduler, in the order of the report.
    let jobs: Vec<(usize, usize, usize)> = (0..groups.len())
        .flat_map(|d| (0..plans.len()).map(move |p| (d, p)))
        .flat_map(|(d, p)| (0..labels.len()).map(move |s| (d, p, s)))
        .collect();
    let progress = Progress::new(quiet, jobs.len());
    let done = run_all(jobs.len(), setups::threads(&a.bench), |i| {
        let (d, p, s) = jobs[i];
        simulate(&plans[p], &groups[d][s], &a.machine, &labels[s], &progress)
    });
    drop(progress);
    let (mut records, mut stopped) = (Vec::new(), Vec::new());
    for one in done {
        let (record, why) = one?;
        stopped.extend(
            why.map(|w| format!("{} under {}: {w}", record.workload, record.scheduler.spec)),
        );
        records.push(record);
    }
    for n in setups::time_notes(&a.bench, &groups) {
        note(quiet, &n);
    }
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        out.json(&document("compare", records, labels.len(), a.series))?;
        out.done()?;
        return early(&stopped);
    }
    let names = names(&plans);
    let per_device = plans.len() * labels.len();
    for of_device in records.chunks(per_device.max(1)) {
        if !a.details {
            let rows = of_device.chunks(labels.len()).zip(&names);
            let rows = rows.map(|(records, name)| report::Row {
                name: name.clone(),
                records,
            });
            let rows: Vec<_> = rows.collect();
            out.text(&report::matrix(&rows, columns()))?;
            continue;
        }
        out.text(&report::modelled(&of_device[0], width()))?;
        for (chunk, p) in of_device.chunks(labels.len()).zip(&plans) {
            out.line("")?;
            out.text(&report::comparison(&p.title(), chunk, columns()))?;
            if chunk.iter().any(|r| !r.more_metrics.is_empty()) {
                out.text(&workload::metrics(chunk, columns()))?;
            }
            out.text(&workload::operations(chunk, columns()))?;
        }
        out.line("")?;
    }
    if !a.details {
        out.text(&report::key(width()))?;
    }
    if a.details && !quiet {
        out.text(&report::legend(width()))?;
    }
    out.text(&report::eras(&records, width()))?;
    let all = if a.details {
        ""
    } else {
        "All tables: --details. "
    };
    out.line(&format!("{all}A trace of your own:"))?;
    out.line(&format!(
        "  seekwell replay FILE --device {} --schedulers {}",
        USUAL.devices(&a.bench)[0],
        USUAL.schedulers(&a.bench)
    ))?;
    out.done()?;
    early(&stopped)
}
