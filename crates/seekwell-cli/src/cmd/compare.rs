//! `seekwell compare`: workloads on modelled disks, under several schedulers.

use super::run::{job_file, plan, simulate};
use crate::cells::{Cells, Group, Job, run_cells};
use crate::cli::Compare;
use crate::fail::Failure;
use crate::out::{Out, columns, note, width};
use crate::setups::{self, Usual};
use seekwell_report::unfinished::unfinished;
use seekwell_report::{compare as report, plot, workload};
use seekwell_sim::Setup;
use seekwell_workload::Plan;
use std::path::Path;

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
    Out::check(a.plot.as_deref())?;
    setups::memory(&a.bench, &USUAL, quiet)?;
    let groups = setups::of(&a.bench, &USUAL)?;
    let labels = setups::labels(&a.bench, &USUAL)?;
    // Every device x program x scheduler, in the order of the report.
    let jobs: Vec<(usize, usize, usize)> = (0..groups.len())
        .flat_map(|d| (0..plans.len()).map(move |p| (d, p)))
        .flat_map(|(d, p)| (0..labels.len()).map(move |s| (d, p, s)))
        .collect();
    let cells = jobs.iter().map(|&(d, p, s)| Job {
        label: labels[s].clone(),
        device: groups[d][s].device.clone(),
        kind: p,
    });
    let cells = run_cells(
        quiet,
        setups::threads(&a.bench),
        cells.collect(),
        |i, progress| {
            let (d, p, s) = jobs[i];
            simulate(&plans[p], &groups[d][s], &a.machine, &labels[s], progress)
        },
    )?;
    if let Some(file) = &a.plot {
        draw(file, &cells, &plans, &groups)?;
    }
    for n in setups::time_notes(&a.bench, &groups) {
        note(quiet, &n);
    }
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        out.json(&cells.document("compare", labels.len(), a.series))?;
        out.done()?;
        return cells.outcome();
    }
    let names = names(&plans);
    let mut records = Vec::new();
    for (d, on_device) in groups.iter().enumerate() {
        let first = d * plans.len();
        let rows: Vec<Group> = (first..first + plans.len())
            .map(|g| cells.group(g * labels.len()..(g + 1) * labels.len()))
            .collect();
        tables(&mut out, a, &plans, &names, &on_device[0].device, &rows)?;
        records.extend(rows.into_iter().flat_map(|g| g.records));
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
    cells.outcome()
}

/// All about one device.
fn tables(
    out: &mut Out,
    a: &Compare,
    plans: &[Plan],
    names: &[String],
    device: &str,
    rows: &[Group],
) -> Result<(), Failure> {
    if !a.details {
        let whole = rows.iter().zip(names).filter(|r| r.0.rest.is_empty());
        let whole: Vec<_> = whole
            .map(|(group, name)| report::Row {
                name: name.clone(),
                records: &group.records,
            })
            .collect();
        out.text(&report::matrix(&whole, columns()))?;
    }
    let own = |g: &&Group| a.details || !g.rest.is_empty();
    if !rows.iter().any(|g| own(&g)) {
        return Ok(());
    }
    match rows.iter().find_map(Group::any) {
        Some(_) if !a.details && rows.iter().any(|g| g.rest.is_empty()) => {}
        Some(r) => out.text(&report::modelled(r, width()))?,
        None => out.line(&format!("On {device}:"))?,
    }
    for (group, p) in rows.iter().zip(plans).filter(|r| own(&r.0)) {
        out.line("")?;
        let records = &group.records;
        out.text(&report::comparison(&p.title(), records, columns()))?;
        if a.details {
            if records.iter().any(|r| !r.more_metrics.is_empty()) {
                out.text(&workload::metrics(records, columns()))?;
            }
            out.text(&workload::operations(records, columns()))?;
        }
        out.text(&unfinished(&group.rest, width()))?;
    }
    out.line("")
}

/// The same as a picture.
fn draw(file: &Path, cells: &Cells, plans: &[Plan], groups: &[Vec<Setup>]) -> Result<(), Failure> {
    let each = groups[0].len();
    let titles: Vec<String> = plans.iter().map(Plan::title).collect();
    let all: Vec<Group> = (0..groups.len() * plans.len())
        .map(|g| cells.group(g * each..(g + 1) * each))
        .collect();
    let mut devices = Vec::new();
    for (setups, own) in groups.iter().zip(all.chunks(plans.len())) {
        let first = own.iter().find_map(Group::any);
        let heading = first.map_or(setups[0].device.clone(), |r| {
            report::modelled(r, usize::MAX)
        });
        let sides = own.iter().zip(&titles).map(|(g, title)| plot::Side {
            title,
            records: &g.records,
            rest: &g.rest,
        });
        devices.push((heading, sides.collect()));
    }
    Out::whole(file, &plot::compare("seekwell compare", &devices))
}
