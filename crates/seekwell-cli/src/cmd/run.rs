//! `seekwell run WORKLOAD`: runs one workload, in simulation under several schedulers, or on a real
//! disk.

use crate::cli::Run;
use crate::events::Events;
use crate::fail::Failure;
use crate::guests::{Guests, is_asked};
use crate::json::document;
use crate::lab::{self, Place};
use crate::out::{Out, columns, note, width};
use crate::progress::Watched;
use crate::runs::{Asked, Simulator, asked, asked_command};
use crate::setups::{self, Usual};
use seekwell::{DeviceSpec, RunSpec, SchedulerSpec, Substrate};
use seekwell_core::result::Record;
use seekwell_host::{InForce, Leftover, Pulse};
use seekwell_report::unfinished::unfinished;
use seekwell_report::units::bytes;
use seekwell_report::{compare, workload as report};
use seekwell_workload::Plan;
use seekwell_workload::fio::JobFile;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Returns the path of the fio job file that a workload names, or `None` for other workloads.
pub fn job_file(name: &str) -> Option<&Path> {
    let file = Path::new(name);
    let suffix = file.extension().and_then(|e| e.to_str());
    matches!(suffix, Some("fio" | "ini" | "job")).then_some(file)
}

/// Runs the command.
pub fn run(a: &Run, quiet: bool) -> Result<(), Failure> {
    // All inputs, and the path of the output, are checked before anything runs. The parser does not
    // check this rule if another option excludes --dir.
    if a.dir.is_none() && (a.clean_up || a.raw.is_some()) {
        let what = "--clean-up and --raw need a run on real files: add --dir DIR";
        return Err(Failure::input(what));
    }
    let output = a.output.output.as_deref();
    Out::check(output)?;
    let raw = a.raw.as_deref();
    Out::apart(
        output,
        setups::files(&a.bench)
            .chain(a.workload.as_deref().and_then(job_file))
            .chain(raw),
    )?;
    let job = a.workload.as_deref().and_then(job_file);
    let events = Events::asked(
        &a.events,
        output.into_iter().chain(setups::files(&a.bench)).chain(job),
    )?;
    if let Some(dir) = a.dir.as_deref().filter(|_| a.clean_up) {
        clean_up(dir, a.workload.is_none() && a.fio.is_empty(), quiet)?;
    }
    let asked = match &a.workload {
        Some(workload) => asked(workload, &a.param)?,
        None if a.fio.is_empty() => return Ok(()),
        None => asked_command(&a.fio)?,
    };
    let plan = &asked.plan;
    for w in plan.warnings() {
        note(quiet, w);
    }
    if let Some(length) = plan.job_file().and_then(JobFile::length_note) {
        note(quiet, &length);
    }
    match &a.dir {
        Some(dir) => real(a, &asked, dir, quiet),
        None => simulated(a, &asked, events, quiet),
    }
}

/// Number of lines for the table of one device. The other lines of a screen are for disk and
/// kernels, and for the last lines.
pub const ROOM: usize = compare::first::LINES - 7;
/// The last line. It names the options that show the rest.
pub const REST: &str = "Requests, latencies, operations and shares: --details; all of it: --json.";

/// Returns the failure for runs that ended early.
fn early(stopped: &[String]) -> Result<(), Failure> {
    match stopped.first() {
        None => Ok(()),
        Some(s) => Err(Failure::Early(s.clone())),
    }
}

fn simulated(a: &Run, asked: &Asked, events: Events, quiet: bool) -> Result<(), Failure> {
    let (b, plan) = (&a.bench, &asked.plan);
    let usual = Usual::single_device(b);
    setups::memory(b, &usual, quiet)?;
    let workloads = std::slice::from_ref(&asked.spec);
    let mut machine = setups::with_cgroups(&a.machine, &a.cgroup);
    if let Some(s) = a.limit {
        machine += &format!(",limit={s}");
    }
    let runs = setups::all_runs(b, &usual, &machine, workloads, &a.beside)?;
    let names = [plan.label().to_owned()];
    let simulator = Simulator {
        trace: None,
        events: Some((&events, runs.schedulers)),
    };
    let place = Place::new(b, a.events.report.is_some())?;
    let lab = match is_asked(b) {
        true => {
            let guests = Guests::new(b.kernel.as_deref())?;
            lab::carried_out(quiet, b, &place, &runs, &names, &guests)?
        }
        false => lab::carried_out(quiet, b, &place, &runs, &names, &simulator)?,
    };
    let cells = &lab.cells;
    let written = events.write(quiet);
    super::report::page_of(&a.events, b, &lab, &place, quiet)?;
    for n in setups::time_notes(b, &runs) {
        note(quiet, &n);
    }
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        out.json(&lab.document("run", runs.schedulers, a.series))?;
        out.done()?;
        written?;
        return cells.outcome();
    }
    let mut records = Vec::new();
    for d in 0..runs.devices {
        let group = cells.group(runs.group(d));
        if let Some(r) = group.any() {
            out.text(&compare::modelled(r, width()))?;
        }
        let of_device = &group.records;
        let title = titled(plan, &a.beside);
        let judged = lab.judged(d, a.details, columns());
        let judged = judged.as_deref();
        match a.details {
            true => {
                out.text(&compare::comparison(&title, of_device, judged, columns()))?;
                if !of_device.is_empty() {
                    measured(&mut out, of_device)?;
                }
            }
            false => out.text(&compare::first::screen(
                &title,
                of_device,
                judged,
                ROOM,
                columns(),
            ))?,
        }
        if !group.rest.is_empty() {
            out.text(&unfinished(&group.rest, width()))?;
            let cut = group.rest.into_iter().filter_map(|u| u.record);
            measured(&mut out, &cut.collect::<Vec<_>>())?;
        }
        if a.details {
            out.line("")?;
        }
        records.extend(group.records);
    }
    if a.details && !quiet {
        out.text(&compare::legend(width()))?;
    }
    out.text(&lab.depends(width()))?;
    out.text(&compare::eras(&records, width()))?;
    if !a.details && !quiet {
        out.line(REST)?;
    }
    out.done()?;
    written?;
    cells.outcome()
}

/// Returns a workload's title, with the workloads that run alongside.
pub fn titled(plan: &Plan, beside: &[String]) -> String {
    match beside {
        [] => plan.title(),
        others => format!("{}; alongside: {}", plan.title(), others.join(" and ")),
    }
}

/// Prints the measurements that the workload itself reports.
fn measured(out: &mut Out, records: &[Record]) -> Result<(), Failure> {
    out.text(&report::metrics(records, columns()))?;
    out.text(&report::operations(records, columns()))?;
    out.text(&report::tasks(records, columns()))?;
    out.text(&report::background_tables(records, columns()))?;
    out.text(&report::marks(records, width()))
}

fn real(a: &Run, asked: &Asked, dir: &Path, quiet: bool) -> Result<(), Failure> {
    let plan = &asked.plan;
    let mut options = seekwell_host::Options::new(dir, a.bench.seed);
    options.device = a.raw.clone();
    options.limit = a.limit.map(Duration::from_secs);
    let failed = |e: seekwell_host::HostError| Failure::input(e.to_string());
    let left = left_behind(dir);
    seekwell_host::check(plan, &options).map_err(|e| match &left {
        Some(left) => Failure::input(format!("{e}\n  {left}")),
        None => failed(e),
    })?;
    if let Some(left) = &left {
        note(quiet, left);
    }
    let force = seekwell_host::in_force(options.place());
    note(
        quiet,
        &format!("current scheduler, which is not changed: {force}"),
    );
    let pulse = Arc::new(Pulse::default());
    options.pulse = Some(Arc::clone(&pulse));
    let bar = Watched::new(quiet, pulse, plan.span());
    let ran = seekwell_host::run_real(plan, &options);
    drop(bar);
    let ran = ran.map_err(failed)?;
    let mut record = ran.record;
    if record.scheduler.spec.is_empty() {
        record.scheduler.spec.clone_from(&record.scheduler.name);
    }
    let spec = specification(a, asked, &record);
    (record.spec_hash, record.spec) = (spec.hash(), Some(spec));
    let written =
        Out::open(a.output.output.as_deref()).and_then(|out| tell(a, plan, &force, &record, out));
    if written.is_err() && a.output.output.is_some() {
        // The disk may be full at this point. The measurements are printed, so that they are not
        // lost.
        tell(a, plan, &force, &record, Out::open(None)?)?;
    }
    written?;
    match (ran.stopped, ran.signal) {
        (Some(what), Some(signal)) => Err(Failure::Interrupted { signal, what }),
        (stopped, _) => early(stopped.as_slice()),
    }
}

/// Returns the specification of a real run with its directory, active scheduler and workload. The
/// record describes the machine.
fn specification(a: &Run, asked: &Asked, r: &Record) -> RunSpec {
    let device = DeviceSpec {
        spec: r.device.spec.clone(),
        ..DeviceSpec::default()
    };
    let scheduler = SchedulerSpec {
        name: r.scheduler.name.clone(),
        ..SchedulerSpec::default()
    };
    RunSpec {
        substrate: Substrate::Host,
        machine: None,
        seed: a.bench.seed,
        limit_s: a.limit,
        ..RunSpec::new(device, scheduler, asked.spec.clone())
    }
}

/// Returns a line about files of killed runs in a directory, with their size and the command that
/// removes them.
fn left_behind(dir: &Path) -> Option<String> {
    let left = seekwell_host::leftovers(dir);
    let name = |l: &Leftover| {
        let name = l.path.file_name().unwrap_or_default().to_string_lossy();
        format!("{name} ({})", bytes(l.bytes as f64))
    };
    let names: Vec<String> = left.iter().map(name).collect();
    (!names.is_empty()).then(|| {
        let dir = dir.display();
        format!(
            "{dir}: killed runs left {}; `seekwell run --clean-up --dir {dir}` removes it",
            names.join(", ")
        )
    })
}

/// Removes files of killed runs. Prints this as the result if nothing else is requested, and
/// otherwise as a note.
fn clean_up(dir: &Path, alone: bool, quiet: bool) -> Result<(), Failure> {
    let failed = |e: seekwell_host::PlaceError| Failure::input(e.to_string());
    seekwell_host::place::usable(dir).map_err(failed)?;
    let mut said = Vec::new();
    for l in seekwell_host::leftovers(dir) {
        let (path, size) = (l.path.clone(), bytes(l.bytes as f64));
        l.remove().map_err(failed)?;
        said.push(format!("removed {} ({size})", path.display()));
    }
    if said.is_empty() {
        said.push(format!("{}: no killed run left anything", dir.display()));
    }
    if !alone {
        said.iter().for_each(|text| note(quiet, text));
        return Ok(());
    }
    let mut out = Out::open(None)?;
    for text in said {
        out.line(&text)?;
    }
    out.done()
}

/// Prints the measurements of a real run.
fn tell(a: &Run, plan: &Plan, force: &InForce, r: &Record, mut out: Out) -> Result<(), Failure> {
    let records = std::slice::from_ref(r);
    if a.json {
        out.json(&document("run", vec![records.to_vec()], a.series))?;
    } else {
        out.line(&format!(
            "Measured on this machine, {} {}: {force}, {} s",
            if a.raw.is_some() { "on" } else { "in" },
            r.device.spec,
            seekwell_report::units::three(r.duration_ns as f64 / 1e9)
        ))?;
        out.line(&plan.title())?;
        measured(&mut out, records)?;
        for w in &r.warnings {
            out.text(&seekwell_report::table::wrap(&format!("! {w}"), 2, width()))?;
        }
    }
    out.done()
}
