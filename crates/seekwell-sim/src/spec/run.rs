//! Runs a specification in virtual time.

use super::{BackgroundSpec, Fit, RunSpec, SpecErrors, WorkloadSpec, checked};
use crate::drive::Progress;
use crate::notation::workload::STREAM;
use crate::notation::{cgroup, machine, scheduler, workload};
use crate::replay::{ReplayError, ReplayOptions, replay_watched};
use crate::setup::Setup;
use crate::world::{Beside, Drive, Neighbour, Watch, WorldError, WorldSetup, run_beside};
use seekwell_core::Nanos;
use seekwell_core::result::{Early, Record};
use seekwell_core::spec::content_hash;
use seekwell_device::with_files;
use seekwell_trace::Reader;
use std::fs::File;
use std::path::Path;
use thiserror::Error;

/// Callbacks and inputs for an active run.
#[derive(Default)]
pub struct Hooks<'a> {
    /// Receives the progress. If it returns false, the run ends and keeps its results so far.
    pub progress: Option<Progress<'a>>,
    /// Receives every event of the block layer, in order of time.
    pub events: Option<Watch>,
    /// The trace, already open. It is not compared with the file of the specification.
    pub trace: Option<Reader>,
    /// Whether the trace was already compared with its hash.
    pub trace_is_known: bool,
}

/// The reason why a run has no record.
#[derive(Error, Debug)]
pub enum RunFailure {
    /// The specification is invalid.
    #[error(transparent)]
    Spec(#[from] SpecErrors),
    /// The run of a program failed.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The replay of a trace failed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// Returns the part of a specification below the kernel.
pub fn setup(spec: &RunSpec) -> Setup {
    let s = &spec.scheduler;
    let tunables = s.tunables.iter().map(|(k, v)| (k.clone(), v.clone()));
    // The default version is written as the scheduler's name alone, also in messages.
    let default = scheduler::named(&s.name).is_ok_and(|f| s.version.as_deref() == Some(f.version));
    Setup {
        device: spec.device.spec.clone(),
        scheduler: match default {
            true => s.name.clone(),
            false => s.versioned(),
        },
        tunables: tunables.collect(),
        hz: spec.queue.hz,
        seed: spec.run_seed(),
        nr_requests: spec.queue.nr_requests,
        depth: spec.queue.depth,
        max_sectors_kb: spec.queue.max_sectors_kb,
        max_segments: spec.queue.max_segments,
        nomerges: spec.queue.nomerges,
        virtio: spec.queue.virtio,
        // A world uses the number of cores of its machine instead. A trace uses the default.
        ..Setup::default()
    }
}

/// Returns the world of a checked specification: the setup below, and the machine above.
///
/// # Errors
/// Returns faults that a checked specification cannot have.
pub fn world(spec: &RunSpec) -> Result<WorldSetup, SpecErrors> {
    let era = scheduler::named(&spec.scheduler.versioned())?.era;
    let m = spec.machine.clone().unwrap_or_default();
    Ok(WorldSetup {
        setup: setup(spec),
        config: machine::config(&m, era, spec.run_seed())?,
        phase_drawn: machine::phase_drawn(&m),
        limit: spec.limit_s.map(Nanos::from_secs),
        neighbours: neighbours(spec)?,
        cgroups: cgroup::all(&m.cgroups)?,
    })
}

/// Returns the background programs of a specification.
fn neighbours(spec: &RunSpec) -> Result<Vec<Neighbour>, SpecErrors> {
    let one = |b: &BackgroundSpec| {
        let plan = workload::plan(&b.workload)?;
        let plan = plan.ok_or_else(|| SpecErrors::single("beside", "is not a program"))?;
        let again = b.again;
        Ok(Neighbour { plan, again })
    };
    spec.beside.iter().map(one).collect()
}

/// Checks and runs a specification. The record contains the specification with all defaults filled
/// in.
///
/// # Errors
/// Returns all faults of the specification, or the reason why the run failed. A run that ends early
/// is not an error. Its record contains the reason.
pub fn run(spec: &RunSpec, hooks: Hooks<'_>) -> Result<Record, RunFailure> {
    let spec = checked(spec)?;
    let files = spec.device.files.clone();
    with_files(&files, move || run_checked(spec, hooks, None))
}

/// Runs a checked specification, on the given drive or on a new one.
pub(super) fn run_checked(
    spec: RunSpec,
    hooks: Hooks<'_>,
    drive: Option<&mut Drive>,
) -> Result<Record, RunFailure> {
    let (mut record, early) = match &spec.workload {
        WorkloadSpec::Trace { .. } => replayed(&spec, hooks)?,
        _ => programmed(&spec, hooks, drive)?,
    };
    record.early = early;
    record.scheduler.spec = spec.scheduler_label();
    record.spec_hash = spec.hash();
    record.spec = Some(spec);
    Ok(record)
}

/// Returns the description of a run that ended early. The time of its end is the record's duration.
fn early(why: String, record: &Record, limit: bool) -> Early {
    Early {
        why,
        at_ns: record.duration_ns,
        limit,
    }
}

type Ended = (Record, Option<Early>);

fn programmed(
    spec: &RunSpec,
    hooks: Hooks<'_>,
    drive: Option<&mut Drive>,
) -> Result<Ended, RunFailure> {
    let Some(plan) = workload::plan(&spec.workload)? else {
        return Err(SpecErrors::single("workload", "is not a program").into());
    };
    let world = world(spec)?;
    let mut new;
    let drive = match drive {
        Some(drive) => drive,
        None => {
            new = Drive::open(&world.setup).map_err(WorldError::from)?;
            &mut new
        }
    };
    let beside = Beside {
        watch: hooks.events,
        progress: hooks.progress,
        each: None,
    };
    let ran = run_beside(&plan, &world, drive, beside)?;
    let early = (ran.stopped).map(|why| early(why, &ran.record, ran.limited));
    Ok((ran.record, early))
}

fn replayed(spec: &RunSpec, hooks: Hooks<'_>) -> Result<Ended, RunFailure> {
    let (
        WorkloadSpec::Trace {
            file,
            sha256,
            fit,
            limit,
            ..
        },
        Some(how),
    ) = (&spec.workload, workload::reading(&spec.workload)?)
    else {
        return Err(SpecErrors::single("workload", "is not a trace").into());
    };
    let reader = match hooks.trace {
        Some(reader) => reader,
        None => {
            let path = Path::new(file);
            if !hooks.trace_is_known {
                known_trace(path, sha256)?;
            }
            let reader = seekwell_trace::open(path, how.format, &how.options);
            reader.map_err(ReplayError::from)?
        }
    };
    let options = ReplayOptions {
        mode: how.mode,
        fit: match fit {
            Fit::Strict => crate::Fit::Strict,
            Fit::Wrap => crate::Fit::Wrap,
        },
        limit: *limit,
        time_limit: spec.limit_s.map(Nanos::from_secs),
    };
    let mut unheard = |_, _| true;
    let progress: Progress<'_> = match hooks.progress {
        Some(p) => p,
        None => &mut unheard,
    };
    let ran = replay_watched(&setup(spec), reader, &options, progress, hooks.events);
    let why = ran.as_ref().err().map(ToString::to_string);
    match ran {
        Ok(record) => Ok((record, None)),
        Err(ReplayError::Stopped(record)) => {
            let early = early(why.unwrap_or_default(), &record, false);
            Ok((*record, Some(early)))
        }
        Err(ReplayError::AtLimit(record, _)) => {
            let early = early(why.unwrap_or_default(), &record, true);
            Ok((*record, Some(early)))
        }
        Err(e) => Err(e.into()),
    }
}

/// Checks that the content of the file has the hash that the specification states.
///
/// # Errors
/// Returns an error if the file cannot be read, or if its hash differs.
pub fn known_trace(path: &Path, sha256: &str) -> Result<(), SpecErrors> {
    let bad = |what: String| SpecErrors::single("workload.file", what);
    if path == Path::new(STREAM) {
        let what = "was read from a stream, which has ended: name the trace's file";
        return Err(bad(what.to_owned()));
    }
    let own = File::open(path).and_then(content_hash);
    let own = own.map_err(|e| bad(format!("{}: {e}", path.display())))?;
    if own == sha256 {
        return Ok(());
    }
    Err(bad(format!(
        "{} is another trace: its SHA-256 is {own}, not {sha256}",
        path.display()
    )))
}
