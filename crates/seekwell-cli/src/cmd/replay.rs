//! `seekwell replay FILE`: a recorded trace on a modelled disk, under several schedulers.

use crate::cli::Replay;
use crate::fail::Failure;
use crate::json::document;
use crate::out::{Out, columns, note, width};
use crate::progress::Progress;
use crate::setups;
use crate::traces::{failed, reading};
use seekwell_core::result::Record;
use seekwell_report::compare as report;
use seekwell_report::table::wrap;
use seekwell_sim::compare::run_all;
use seekwell_sim::{ReplayOptions, Setup, replay};
use seekwell_trace::{Format, Intake, ReadOptions, ReplayMode};

struct Plan {
    trace: Intake,
    format: Option<Format>,
    read: ReadOptions,
    replay: ReplayOptions,
}

fn plan(a: &Replay) -> Result<Plan, Failure> {
    let mode: ReplayMode = a.mode.parse().map_err(failed)?;
    let (format, read) = reading(&a.input)?;
    Ok(Plan {
        trace: Intake::new(&a.file, &read).map_err(failed)?,
        format,
        read,
        replay: ReplayOptions {
            mode,
            fit: a.fit.into(),
            limit: a.input.limit,
        },
    })
}

fn run_one(plan: &Plan, setup: &Setup, label: &str, p: &Progress) -> Result<Record, Failure> {
    let fail = |e: String| Failure::input(e);
    let reader = plan.trace.open(plan.format, &plan.read).map_err(failed)?;
    let ran = replay(setup, reader, &plan.replay, &mut p.one(label));
    let mut record = ran.map_err(|e| match &e {
        // Only errors of the trace name the file themselves.
        seekwell_sim::ReplayError::Run(seekwell_sim::RunError::Trace(_))
        | seekwell_sim::ReplayError::Trace(_) => fail(e.to_string()),
        _ => fail(format!(
            "{}: {label} on {}: {e}",
            plan.trace.name(),
            setup.device
        )),
    })?;
    label.clone_into(&mut record.scheduler.spec);
    Ok(record)
}

/// Replays and prints the comparison.
pub fn run(a: &Replay, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    Out::check(output)?;
    Out::apart(output, setups::files(&a.bench).chain([&*a.file]))?;
    let plan = plan(a)?;
    setups::memory(&a.bench, &setups::USUAL, quiet)?;
    let groups = setups::of(&a.bench, &setups::USUAL)?;
    let labels = setups::labels(&a.bench, &setups::USUAL)?;
    // What is wrong with the file is told once, before any run.
    let trace = &plan.trace;
    trace.one_volume(plan.format, &plan.read).map_err(failed)?;
    let reader = trace.open(plan.format, &plan.read).map_err(failed)?;
    let check = plan.replay.mode.check(reader.format(), reader.name());
    check.map_err(|e| Failure::input(e.to_string()))?;
    let title = format!(
        "{}, a {} trace, replayed {}",
        trace.name(),
        reader.format().name,
        plan.replay.mode
    );
    drop(reader);
    let jobs: Vec<(usize, usize)> = (0..groups.len())
        .flat_map(|d| (0..labels.len()).map(move |s| (d, s)))
        .collect();
    let progress = Progress::new(quiet, jobs.len());
    let done = run_all(jobs.len(), setups::threads(&a.bench), |i| {
        let (d, s) = jobs[i];
        run_one(&plan, &groups[d][s], &labels[s], &progress)
    });
    drop(progress);
    let records = done.into_iter().collect::<Result<Vec<_>, _>>()?;
    for n in setups::time_notes(&a.bench, &groups) {
        note(quiet, &n);
    }
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        out.json(&document("replay", records, labels.len(), a.series))?;
        return out.done();
    }
    for of_device in records.chunks(labels.len()) {
        out.text(&report::modelled(&of_device[0], width()))?;
        out.text(&report::comparison(&title, of_device, columns()))?;
        out.line("")?;
    }
    if !quiet {
        out.text(&wrap(
            &format!("{}: {}", plan.replay.mode, plan.replay.mode.explain()),
            0,
            width(),
        ))?;
        out.text(&report::legend(width()))?;
    }
    out.text(&report::eras(&records, width()))?;
    out.done()
}
