//! `seekwell replay FILE`: a recorded trace on a modelled disk, under several schedulers.

use crate::cells::{Job, Ran, run_cells};
use crate::cli::Replay;
use crate::fail::Failure;
use crate::out::{Out, columns, note, width};
use crate::setups;
use crate::traces::{failed, reading};
use seekwell_report::compare as report;
use seekwell_report::table::wrap;
use seekwell_report::unfinished::unfinished;
use seekwell_sim::{Progress, ReplayError, ReplayOptions, Setup, replay};
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

fn run_one(
    plan: &Plan,
    setup: &Setup,
    label: &str,
    progress: Progress<'_>,
) -> Result<Ran, Failure> {
    let fail = |e: String| Failure::input(e);
    let reader = plan.trace.open(plan.format, &plan.read).map_err(failed)?;
    let ran = replay(setup, reader, &plan.replay, progress);
    let why = ran.as_ref().err().map(ToString::to_string);
    let ran = match ran {
        Ok(r) => Ok((r, None)),
        Err(ReplayError::Stopped(r)) => Ok((*r, why)),
        Err(e) => Err(e),
    };
    let (mut record, stopped) = ran.map_err(|e| match &e {
        // Only errors of the trace name the file themselves.
        ReplayError::Run(seekwell_sim::RunError::Trace(_)) | ReplayError::Trace(_) => {
            fail(e.to_string())
        }
        _ => fail(format!(
            "{}: {label} on {}: {e}",
            plan.trace.name(),
            setup.device
        )),
    })?;
    label.clone_into(&mut record.scheduler.spec);
    Ok((record, stopped))
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
    let cells = jobs.iter().map(|&(d, s)| Job {
        label: labels[s].clone(),
        device: groups[d][s].device.clone(),
        kind: 0,
    });
    let cells = run_cells(
        quiet,
        setups::threads(&a.bench),
        cells.collect(),
        |i, progress| {
            let (d, s) = jobs[i];
            run_one(&plan, &groups[d][s], &labels[s], progress)
        },
    )?;
    for n in setups::time_notes(&a.bench, &groups) {
        note(quiet, &n);
    }
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        out.json(&cells.document("replay", labels.len(), a.series))?;
        out.done()?;
        return cells.outcome();
    }
    let mut records = Vec::new();
    for d in 0..groups.len() {
        let group = cells.group(d * labels.len()..(d + 1) * labels.len());
        if let Some(r) = group.any() {
            out.text(&report::modelled(r, width()))?;
        }
        out.text(&report::comparison(&title, &group.records, columns()))?;
        out.text(&unfinished(&group.rest, width()))?;
        out.line("")?;
        records.extend(group.records);
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
    out.done()?;
    cells.outcome()
}
