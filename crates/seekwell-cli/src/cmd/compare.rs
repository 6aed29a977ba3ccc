//! `seekwell compare`: runs workloads on modelled disks under several schedulers.

use super::run::{job_file, titled};
use crate::cells::{Cells, Group};
use crate::cli::Compare;
use crate::events::Events;
use crate::fail::Failure;
use crate::lab::{self, Lab, Place};
use crate::out::{Out, columns, note, width};
use crate::runs::{Asked, Simulator, asked};
use crate::setups::{self, Runs, Usual};
use seekwell_core::result::Record;
use seekwell_lab::analysis::single::by_rows;
use seekwell_report::unfinished::unfinished;
use seekwell_report::{compare as report, plot, workload};
use seekwell_workload::Plan;
use std::path::Path;

fn workloads(a: &Compare) -> Result<Vec<Asked>, Failure> {
    let mut out = Vec::new();
    if a.workload.is_empty() {
        for w in a.bench.era.usual().workloads {
            out.push(asked(w, &[])?);
        }
        return Ok(out);
    }
    for spec in &a.workload {
        // After a colon, the commas separate parameters, not workloads.
        if spec.contains(':') {
            out.push(asked(spec, &[])?);
            continue;
        }
        for name in spec.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            out.push(asked(name, &[])?);
        }
    }
    if out.is_empty() {
        return Err(Failure::input("--workload: name at least one"));
    }
    Ok(out)
}

/// Returns the names of the workloads, with parameters where two have the same name.
pub fn names(plans: &[Plan]) -> Vec<String> {
    let named = |p: &Plan| plans.iter().filter(|q| q.label() == p.label()).count();
    let name = |p: &Plan| match named(p) {
        1 => p.label().to_owned(),
        _ => p.short(),
    };
    plans.iter().map(name).collect()
}

/// Runs everything and prints the comparison.
pub fn run(a: &Compare, quiet: bool) -> Result<(), Failure> {
    if let Some(file) = &a.file {
        return super::experiment::run(a, file, quiet);
    }
    if let Some(dir) = &a.host {
        return super::onhost::command_line(a, dir, quiet);
    }
    if crate::guests::is_asked(&a.bench) {
        return super::experiment::in_guests(a, quiet);
    }
    let output = a.output.output.as_deref();
    Out::check(output)?;
    let jobs = a.workload.iter().filter_map(|w| job_file(w));
    let files: Vec<&Path> = setups::files(&a.bench).chain(jobs).collect();
    Out::apart(output, files.iter().copied())?;
    let events = Events::asked(
        &a.events,
        output.into_iter().chain(a.plot.as_deref()).chain(files),
    )?;
    let (specs, plans): (Vec<_>, Vec<_>) =
        workloads(a)?.into_iter().map(|w| (w.spec, w.plan)).unzip();
    for w in plans.iter().flat_map(Plan::warnings) {
        note(quiet, w);
    }
    Out::check(a.plot.as_deref())?;
    let bench = &setups::with_seeds(&a.bench, a.workload.is_empty());
    let usual = Usual::several(bench);
    setups::memory(bench, &usual, quiet)?;
    // Every device, workload and scheduler, in the order of the report.
    let machine = setups::with_cgroups(&a.machine, &a.cgroup);
    let runs = setups::all_runs(bench, &usual, &machine, &specs, &a.beside)?;
    let names = names(&plans);
    let simulator = Simulator {
        trace: None,
        events: Some((&events, runs.schedulers)),
    };
    let place = Place::new(bench, a.events.report.is_some())?;
    let lab = lab::carried_out(quiet, bench, &place, &runs, &names, &simulator)?;
    let cells = &lab.cells;
    let written = events.write(quiet);
    super::report::page_of(&a.events, bench, &lab, &place, quiet)?;
    if let Some(file) = &a.plot {
        draw(file, cells, &plans, &runs)?;
    }
    for n in setups::time_notes(bench, &runs) {
        note(quiet, &n);
    }
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        out.json(&lab.document("compare", runs.schedulers, a.series))?;
        out.done()?;
        written?;
        return cells.outcome();
    }
    let mut devices = Vec::new();
    for d in 0..runs.devices {
        let first = d * plans.len();
        let rows: Vec<Group> = (first..first + plans.len())
            .map(|g| cells.group(runs.group(g)))
            .collect();
        let of = Device {
            plans: &plans,
            names: &names,
            device: runs.device(d),
            first,
            lab: &lab,
        };
        devices.push((of, rows));
    }
    let records: Vec<Record> = devices
        .iter()
        .flat_map(|d| &d.1)
        .flat_map(|g| g.records.iter().cloned())
        .collect();
    let rests_on = report::seeds::simulated(&lab.describe_seeds(), &records);
    let depends = lab.depends(width());
    let foot = report::seeds::foot(&rests_on, a.details, width());
    if !a.details && lab.several() {
        let room = report::first::lines(devices.len())
            .saturating_sub(foot.lines().count() + depends.lines().count());
        out.text(&screen(&lab, &devices, &records, room))?;
    }
    for (of, rows) in &devices {
        of.tables(&mut out, a, rows)?;
    }
    if a.details && !quiet {
        out.text(&report::legend(width()))?;
    }
    out.text(&depends)?;
    out.text(&foot)?;
    out.done()?;
    written?;
    cells.outcome()
}

/// The runs of one device.
struct Device<'a> {
    plans: &'a [Plan],
    names: &'a [String],
    device: &'a str,
    /// Index of the device's first cell.
    first: usize,
    lab: &'a Lab,
}

impl Device<'_> {
    fn tables(&self, out: &mut Out, a: &Compare, rows: &[Group]) -> Result<(), Failure> {
        if !a.details && !self.lab.several() {
            out.text(&self.matrix(rows))?;
        }
        let own = |g: &&Group| a.details || !g.rest.is_empty();
        if !rows.iter().any(|g| own(&g)) {
            return Ok(());
        }
        match rows.iter().find_map(Group::any) {
            Some(_) if !a.details && rows.iter().any(|g| g.rest.is_empty()) => {}
            Some(r) => out.text(&report::modelled(r, width()))?,
            None => out.line(&format!("On {}:", self.device))?,
        }
        for (i, (group, p)) in rows.iter().zip(self.plans).enumerate() {
            if !own(&group) {
                continue;
            }
            out.line("")?;
            let records = &group.records;
            let judged = self.lab.judged(self.first + i, a.details, columns());
            out.text(&report::comparison(
                &titled(p, &a.beside),
                records,
                judged.as_deref(),
                columns(),
            ))?;
            if a.details {
                if records.iter().any(|r| !r.more_metrics.is_empty()) {
                    out.text(&workload::metrics(records, columns()))?;
                }
                out.text(&workload::operations(records, columns()))?;
                out.text(&workload::background_tables(records, columns()))?;
            }
            out.text(&unfinished(&group.rest, width()))?;
        }
        out.line("")
    }

    /// Returns the summary of one run per scheduler, for the workloads whose runs all completed.
    fn matrix(&self, rows: &[Group]) -> String {
        // One row for each metric that decides.
        let whole = rows.iter().zip(self.names);
        let whole = whole.filter(|(group, _)| group.rest.is_empty());
        let views: Vec<(&String, Vec<Vec<Record>>)> = whole
            .map(|(group, name)| (name, by_rows(&group.records)))
            .collect();
        let rows = views.iter().flat_map(|(name, views)| {
            let several = views.len() > 1;
            views.iter().map(move |view| {
                let metric = view.iter().find_map(|r| r.metric.as_ref());
                report::Row {
                    name: (*name).clone(),
                    row: metric.filter(|_| several).map(|m| m.name.clone()),
                    records: view,
                }
            })
        });
        report::matrix(&rows.collect::<Vec<_>>(), columns())
    }
}
/// Returns the summary over several seeds for all devices, in at most `room` lines. It contains the
/// workloads whose runs all completed.
fn screen(lab: &Lab, devices: &[(Device, Vec<Group>)], records: &[Record], room: usize) -> String {
    let place = |group: &Group| match (devices, group.records.first()) {
        ([_], _) | (_, None) => String::new(),
        (_, Some(r)) => report::seeds::place(r),
    };
    let rows: Vec<report::seeds::Judged> = devices
        .iter()
        .flat_map(|(of, rows)| rows.iter().enumerate().map(move |(i, g)| (of, i, g)))
        .filter(|(_, _, group)| group.rest.is_empty())
        .flat_map(|(of, i, group)| {
            let place = place(group);
            let rows = lab.analysis.rows(of.first + i);
            rows.map(move |cell| report::seeds::Judged {
                place: place.clone(),
                ..report::seeds::Judged::new(of.names[i].clone(), cell)
            })
        })
        .collect();
    let heading = match (devices, records.first()) {
        ([_], Some(first)) => report::seeds::heading(first, &lab.describe_seeds()),
        (all, _) => format!(
            "On {} modelled disks, none of yours ({})",
            all.len(),
            lab.describe_seeds()
        ),
    };
    let legend = report::seeds::legend(lab.analysis.method.margin, width());
    let labels = &lab.analysis.treatments;
    report::answer(&rows, labels, (&heading, &legend), records, room, columns())
}

/// Writes the comparison as an SVG picture.
fn draw(file: &Path, cells: &Cells, plans: &[Plan], runs: &Runs) -> Result<(), Failure> {
    let titles: Vec<String> = plans.iter().map(Plan::title).collect();
    let all: Vec<Group> = (0..runs.devices * plans.len())
        .map(|g| cells.group(runs.group(g)))
        .collect();
    let mut devices = Vec::new();
    for (d, own) in all.chunks(plans.len()).enumerate() {
        let first = own.iter().find_map(Group::any);
        let heading = first.map_or(runs.device(d).to_owned(), |r| {
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
