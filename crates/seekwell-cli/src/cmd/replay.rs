//! `seekwell replay FILE`: replays a recorded trace on a modelled disk under several schedulers.

use super::run::{REST, ROOM};
use crate::cli::Replay;
use crate::events::Events;
use crate::fail::Failure;
use crate::lab::{self, Place};
use crate::out::{Out, columns, note, width};
use crate::runs::Simulator;
use crate::setups::{self, Usual};
use crate::traces::{CHOOSE, failed, reading};
use seekwell::{WorkloadSpec, words};
use seekwell_report::compare as report;
use seekwell_report::table::wrap;
use seekwell_report::unfinished::unfinished;
use seekwell_trace::{Intake, ReplayMode};

/// Returns the trace as a workload.
fn workload(a: &Replay, trace: &Intake) -> Result<WorkloadSpec, Failure> {
    let spec = words::trace(&a.file).map_err(|e| Failure::words("", &e))?;
    let WorkloadSpec::Trace { sha256, .. } = spec else {
        return Ok(spec);
    };
    let i = &a.input;
    Ok(WorkloadSpec::Trace {
        // Messages contain the name of the file. In the specification, standard input is `-`.
        file: match sha256.is_empty() {
            true => "-".to_owned(),
            false => trace.name(),
        },
        sha256,
        format: i.format.clone(),
        mode: a.mode.clone(),
        fit: a.fit.into(),
        limit: i.limit,
        stream: i.stream.into(),
        volume: i.trace_device.clone(),
        from_ns: i.from.unwrap_or(0),
        until_ns: i.until,
        pids: i.pid.iter().copied().collect(),
        columns: i.columns.clone(),
        response_unit: i.response_unit.map(|u| u.name().to_owned()),
        allow_truncated: i.allow_truncated,
    })
}

/// Replays and prints the comparison.
pub fn run(a: &Replay, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    Out::check(output)?;
    Out::apart(output, setups::files(&a.bench).chain([&*a.file]))?;
    let others = setups::files(&a.bench).chain([&*a.file]);
    let events = Events::asked(&a.events, output.into_iter().chain(others))?;
    let mode: ReplayMode = a.mode.parse().map_err(failed)?;
    let (format, read) = reading(&a.input)?;
    let trace = Intake::new(&a.file, &read).map_err(failed)?;
    let usual = Usual::single_device(&a.bench);
    setups::memory(&a.bench, &usual, quiet)?;
    // Opens the trace once before any run, so that errors of the file are reported once.
    trace.one_volume(format, &read, CHOOSE).map_err(failed)?;
    let reader = trace.open(format, &read).map_err(failed)?;
    let check = mode.check(reader.format(), reader.name());
    check.map_err(|e| Failure::input(e.to_string()))?;
    let workloads = [workload(a, &trace)?];
    let runs = setups::all_runs(&a.bench, &usual, "", &workloads, &[])?;
    let title = format!(
        "{}, a {} trace, replayed {}",
        trace.name(),
        reader.format().name,
        mode
    );
    drop(reader);
    let open = || trace.open(format, &read).map_err(failed);
    let simulator = Simulator {
        trace: Some(&open),
        events: Some((&events, runs.schedulers)),
    };
    let names = ["replay".to_owned()];
    let place = Place::new(&a.bench, a.events.report.is_some())?;
    let lab = lab::carried_out(quiet, &a.bench, &place, &runs, &names, &simulator)?;
    let cells = &lab.cells;
    let written = events.write(quiet);
    super::report::page_of(&a.events, &a.bench, &lab, &place, quiet)?;
    for n in setups::time_notes(&a.bench, &runs) {
        note(quiet, &n);
    }
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        out.json(&lab.document("replay", runs.schedulers, a.series))?;
        out.done()?;
        written?;
        return cells.outcome();
    }
    let mut records = Vec::new();
    for d in 0..runs.devices {
        let group = cells.group(runs.group(d));
        if let Some(r) = group.any() {
            out.text(&report::modelled(r, width()))?;
        }
        let judged = lab.judged(d, a.details, columns());
        let (judged, records_of) = (judged.as_deref(), &group.records);
        out.text(&match a.details {
            true => report::comparison(&title, records_of, judged, columns()),
            false => report::first::screen(&title, records_of, judged, ROOM, columns()),
        })?;
        out.text(&unfinished(&group.rest, width()))?;
        if a.details {
            out.line("")?;
        }
        records.extend(group.records);
    }
    if !quiet {
        // The first sentence says what the mode does. The other sentences help to read the results.
        let all = mode.explain();
        let first = all.find(". ").map_or(all, |end| &all[..=end]);
        let said = if a.details { all } else { first };
        out.text(&wrap(&format!("{mode}: {said}"), 0, width()))?;
    }
    if a.details && !quiet {
        out.text(&report::legend(width()))?;
    }
    out.text(&lab.depends(width()))?;
    out.text(&report::eras(&records, width()))?;
    if !a.details && !quiet {
        out.line(REST)?;
    }
    out.done()?;
    written?;
    cells.outcome()
}
