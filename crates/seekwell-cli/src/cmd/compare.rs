//! `seekwell compare`: workloads on modelled disks, under several schedulers.

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

fn workloads(a: &Compare) -> Result<Vec<Asked>, Failure> {
    let mut out = Vec::new();
    if a.workload.is_empty() {
        for w in WORKLOADS {
            out.push(asked(w, &[])?);
        }
        return Ok(out);
    }
    for spec in &a.workload {
        // A colon begins parameters, which have commas of their own.
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

/// Names of workloads, each with its parameters where the name alone is not enough.
fn names(plans: &[Plan]) -> Vec<String> {
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
    setups::memory(&a.bench, &USUAL, quiet)?;
    // Every device x program x scheduler, in the order of the report.
    let machine = setups::with_cgroups(&a.machine, &a.cgroup);
    let runs = setups::of(&a.bench, &USUAL, &machine, &specs, &a.beside)?;
    let names = names(&plans);
    let simulator = Simulator {
        trace: None,
        events: Some((&events, runs.schedulers)),
    };
    let place = Place::new(&a.bench, a.events.report.is_some())?;
    let lab = lab::carried_out(quiet, &a.bench, &place, &runs, &names, &simulator)?;
    let cells = &lab.cells;
    let written = events.write(quiet);
    super::report::page_of(&a.events, &a.bench, &lab, &place, quiet)?;
    if let Some(file) = &a.plot {
        draw(file, cells, &plans, &runs)?;
    }
    for n in setups::time_notes(&a.bench, &runs) {
        note(quiet, &n);
    }
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        out.json(&lab.document("compare", runs.schedulers, a.series))?;
        out.done()?;
        written?;
        return cells.outcome();
    }
    let mut records = Vec::new();
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
        records.extend(rows.iter().flat_map(|g| g.records.iter().cloned()));
        devices.push((of, rows));
    }
    let mut foot = String::new();
    if lab.several() {
        let margin = lab.analysis.method.margin;
        foot += &report::seeds::key(lab.seeds, margin, width());
    } else if !a.details {
        foot += &report::key(width());
    }
    if a.details && !quiet {
        foot += &report::legend(width());
    }
    let more = match lab.several() {
        true => report::seeds::kernels(&records),
        false => "",
    };
    foot += &lab.depends(width());
    foot += &report::eras(&records, more, width());
    // Two lines come behind it.
    let room = (report::first::LINES - 2).saturating_sub(foot.lines().count());
    match on_a_screen(a, &lab, &devices, room) {
        Some(short) => out.text(&short)?,
        None => {
            for (of, rows) in &devices {
                of.tables(&mut out, a, rows)?;
            }
        }
    }
    out.text(&foot)?;
    let all = if a.details {
        ""
    } else {
        "All tables: --details. "
    };
    out.line(&format!("{all}A trace of your own:"))?;
    out.line(&format!(
        "  seekwell replay FILE --device {} --schedulers {}{}",
        USUAL.devices(&a.bench)[0],
        USUAL.schedulers(&a.bench),
        match &a.bench.kernel {
            Some(k) => format!(" --kernel {k}"),
            None => String::new(),
        }
    ))?;
    out.done()?;
    written?;
    cells.outcome()
}

/// All about one device.
struct Device<'a> {
    plans: &'a [Plan],
    names: &'a [String],
    device: &'a str,
    /// Its first cell.
    first: usize,
    lab: &'a Lab,
}

impl Device<'_> {
    fn tables(&self, out: &mut Out, a: &Compare, rows: &[Group]) -> Result<(), Failure> {
        if !a.details {
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
                out.text(&workload::beside(records, columns()))?;
            }
            out.text(&unfinished(&group.rest, width()))?;
        }
        out.line("")
    }

    /// The answer on a screen: of workloads whose runs came to their ends.
    fn matrix(&self, rows: &[Group]) -> String {
        let lab = self.lab;
        let whole = rows.iter().zip(self.names).enumerate();
        let whole = whole.filter(|(_, (group, _))| group.rest.is_empty());
        if !lab.several() {
            // A row for each figure that decides.
            let views: Vec<(String, Vec<Vec<Record>>)> = whole
                .map(|(_, (group, name))| (name.clone(), by_rows(&group.records)))
                .collect();
            let rows = views.iter().flat_map(|(name, views)| {
                views.iter().map(|view| report::Row {
                    name: row_name(name, view, views.len()),
                    records: view,
                })
            });
            return report::matrix(&rows.collect::<Vec<_>>(), columns());
        }
        let mut records = Vec::new();
        let whole: Vec<_> = whole
            .flat_map(|(i, (group, name))| {
                records.extend(group.records.iter().cloned());
                judged(lab, self.first + i, name)
            })
            .collect();
        let Some(first) = records.first() else {
            return String::new();
        };
        let heading = report::seeds::heading(first, &lab.said());
        let labels = &lab.analysis.treatments;
        report::seeds::matrix(&whole, labels, &heading, &records, columns())
    }
}

/// All tests of all devices in so many lines, where a matrix a device takes more; of several seeds,
/// and if all runs came to their ends.
fn on_a_screen(
    a: &Compare,
    lab: &Lab,
    devices: &[(Device, Vec<Group>)],
    room: usize,
) -> Option<String> {
    let broken = devices
        .iter()
        .flat_map(|d| &d.1)
        .any(|g| !g.rest.is_empty());
    if a.details || broken || !lab.several() {
        return None;
    }
    let whole: String = devices.iter().map(|(of, rows)| of.matrix(rows)).collect();
    if whole.lines().count() <= room {
        return None;
    }
    let rows: Vec<report::seeds::Judged> = devices
        .iter()
        .flat_map(|(of, rows)| {
            (0..rows.len()).flat_map(move |i| {
                let name = match devices.len() {
                    1 => of.names[i].clone(),
                    _ => format!("{}: {}", of.device, of.names[i]),
                };
                judged(lab, of.first + i, &name)
            })
        })
        .collect();
    let heading = match devices {
        [(_, rows)] => report::seeds::heading(rows.iter().find_map(Group::any)?, &lab.said()),
        all => format!(
            "On {} modelled disks, none of yours ({})",
            all.len(),
            lab.said()
        ),
    };
    let labels = &lab.analysis.treatments;
    let records: Vec<Record> = devices
        .iter()
        .flat_map(|d| &d.1)
        .flat_map(|g| g.records.iter().cloned())
        .collect();
    Some(report::many::tests(
        &rows,
        labels,
        &heading,
        &records,
        room,
        columns(),
    ))
}

/// The rows of a cell.
fn judged<'a>(lab: &'a Lab, cell: usize, name: &str) -> Vec<report::seeds::Judged<'a>> {
    let rows = lab.analysis.rows(cell);
    rows.map(|cell| report::seeds::Judged {
        name: match cell.rows {
            0 | 1 => name.to_owned(),
            _ => format!("{name}, {}", cell.metric.name),
        },
        cell,
    })
    .collect()
}

/// The name of a row of one seed.
fn row_name(workload: &str, view: &[Record], rows: usize) -> String {
    let metric = view.iter().find_map(|r| r.metric.as_ref());
    match (rows, metric) {
        (0 | 1, _) | (_, None) => workload.to_owned(),
        (_, Some(m)) => format!("{workload}, {}", m.name),
    }
}

/// The same as a picture.
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
