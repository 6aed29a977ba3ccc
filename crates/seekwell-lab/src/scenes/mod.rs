//! Scenes for the replay. A scene is a short window of the events of a cell in a report, under each
//! scheduler, on the clock of the workload.
//!
//! Events are not stored during an experiment. A simulated run can be repeated from the data in the
//! results folder, this time with recorded events. The scene is used only if the values of the
//! repeated run are bit-identical to the stored values. Runs on a host have no scenes, because they
//! cannot be repeated exactly. Runs for which this version of the program computes other values
//! have no scenes either.

mod choose;

pub use choose::{Asked, Choice, LENGTH_NS, choose};

use crate::conduct;
use crate::results::{self, Outcome, Results, Run, StoreError};
use seekwell::event::wire::{Cell, Line};
use seekwell::{Cancel, Hooks, Record, Recording, RunSpec, Traces, Window};
use seekwell_core::Nanos;
use seekwell_core::prose::in_prose;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Largest number of events per run in a scene.
pub const MOST_EVENTS: u64 = 60_000;
/// Largest length of a scene, in ns.
pub const LONGEST_NS: u64 = 30_000_000_000;

/// The same window of the same workload under several schedulers.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the block. All lanes use its seed.
    pub block: u32,
    /// Start of the window in ns, on the clock of the workload.
    pub from_ns: u64,
    /// Length of the window in ns. A lane with too many events covers less.
    pub length_ns: u64,
    /// One lane per scheduler.
    pub lanes: Vec<Lane>,
}

/// The events of one scheduler in a scene.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Index of the treatment in the results.
    pub treatment: usize,
    /// The events in the format of `docs/events.md`, without the header.
    pub lines: Vec<Line>,
}

/// Makes a run and records its events in a window. The run continues after the window to its end.
///
/// # Errors
/// Returns the reason if the run fails.
pub fn listen(
    spec: &RunSpec,
    window: Window,
    traces: &Traces,
    cancel: &Cancel,
) -> Result<(Vec<Line>, Record), String> {
    let cell = Cell {
        device: spec.device.spec.clone(),
        scheduler: spec.scheduler_label(),
        workload: spec.workload.name().to_owned(),
        seed: spec.run_seed(),
        ..Cell::default()
    };
    let recording = Recording::new(Vec::new(), cell, window).at_most(MOST_EVENTS);
    let hooks = Hooks::default()
        .listen(Box::new(recording.clone()))
        .cancel(cancel);
    let record = traces.run(spec, hooks).map_err(|e| e.to_string())?;
    let early = record.early.as_ref().map(|e| e.why.as_str());
    let (text, _) = recording.finish(early).map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&text);
    let lines: Result<Vec<Line>, _> = text.lines().map(Line::parse).collect();
    Ok((lines.map_err(|e| e.to_string())?, record))
}

/// Returns whether a repeated run has the same values as the stored run. If a warm-up was left out,
/// the stored primary value (the first) differs, so only the other values and the duration are
/// compared.
fn same(record: &Record, run: &Run, warmed_up: bool) -> bool {
    let now = conduct::values(record);
    run.duration_ns == record.duration_ns
        && run.values.iter().skip(usize::from(warmed_up)).all(|was| {
            let is = now.iter().find(|v| v.metric.name == was.metric.name);
            // Values that the experiment computes by its own expression are not in the record.
            is.is_none_or(|is| is.value.to_bits() == was.value.to_bits())
        })
}

/// The scenes that were made, and the reasons for missing scenes.
#[derive(Clone, Debug, Default)]
pub struct Scenes {
    /// The scenes, in the order of the choices.
    pub scenes: Vec<Scene>,
    /// Sentences that tell the user which scenes are missing and why.
    pub notes: Vec<String>,
}

/// Makes the chosen scenes of a results folder, with this number of runs in parallel.
///
/// # Errors
/// Returns an error if the records of the folder cannot be read.
pub fn make(
    dir: &Path,
    results: &Results,
    choices: &[Choice],
    threads: usize,
    cancel: &Cancel,
) -> Result<Scenes, StoreError> {
    let mut specs: BTreeMap<usize, RunSpec> = BTreeMap::new();
    let wanted = |run: &Run| {
        let of = |c: &&Choice| c.cell == run.key.cell && c.block == run.key.block;
        choices.iter().any(|c| of(&c))
    };
    results::records(dir, |run, spec, _| {
        let spec = spec.filter(|_| results.runs.get(run).is_some_and(wanted));
        if let Some(spec) = spec.and_then(|s| RunSpec::from_json(s).ok()) {
            specs.insert(run, spec);
        }
    })?;
    let mut jobs: Vec<(usize, usize)> = Vec::new();
    for (at, choice) in choices.iter().enumerate() {
        for (i, run) in results.runs.iter().enumerate() {
            let mine = choice.cell == run.key.cell && choice.block == run.key.block;
            if mine && !matches!(run.outcome, Outcome::Failed(_)) && specs.contains_key(&i) {
                jobs.push((at, i));
            }
        }
    }
    type Heard = Result<Lane, String>;
    let (next, heard) = (
        AtomicUsize::new(0),
        Mutex::new(Vec::<(usize, Heard)>::new()),
    );
    let traces = Traces::default();
    let one = |(at, i): (usize, usize)| -> Heard {
        let (choice, run) = (&choices[at], &results.runs[i]);
        let window = Window {
            from: Nanos(choice.from_ns),
            length: Some(Nanos(choice.length_ns)),
        };
        let (lines, record) = listen(&specs[&i], window, &traces, cancel)?;
        let cell = results.cells.get(run.key.cell);
        let warmed_up = cell
            .and_then(|c| c.warm_up.as_ref())
            .is_some_and(|w| w.seconds > 0);
        if !same(&record, run, warmed_up) {
            return Err(
                "the repeated run gives other figures than the stored run, which another version \
                 of seekwell made"
                    .to_owned(),
            );
        }
        Ok(Lane {
            treatment: run.key.treatment,
            lines,
        })
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let lane = one(*job);
                    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                    heard.push((job.1, lane));
                }
            });
        }
    });
    let heard = heard.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut heard: BTreeMap<usize, Heard> = heard.into_iter().collect();
    let mut out = Scenes::default();
    for (at, choice) in choices.iter().enumerate() {
        let mut lanes = Vec::new();
        for (_, i) in jobs.iter().filter(|j| j.0 == at) {
            match heard.remove(i) {
                Some(Ok(lane)) => lanes.push(lane),
                Some(Err(why)) => {
                    let run = &results.runs[*i];
                    let name = results.cells.get(run.key.cell).map_or("?", |c| &c.name);
                    let by = results.treatments.get(run.key.treatment);
                    let by = in_prose(by.map_or("?", |t| &t.label));
                    out.notes
                        .push(format!("no events of {name} under {by}: {why}"));
                }
                None => {}
            }
        }
        if !lanes.is_empty() {
            out.scenes.push(Scene {
                cell: choice.cell,
                block: choice.block,
                from_ns: choice.from_ns,
                length_ns: choice.length_ns,
                lanes,
            });
        }
    }
    Ok(out)
}
