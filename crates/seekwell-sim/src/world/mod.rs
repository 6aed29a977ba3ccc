//! The simulated world: workload scripts in virtual time, with a modelled kernel, block layer,
//! scheduler and device below them.
//!
//! A single-threaded executor runs all tasks of a run. A task that makes a call sleeps until the
//! kernel model returns. The run reads no other input. Equal scripts, parameters, setups and seeds
//! therefore give the same record, byte for byte, on any thread. Many worlds can run in parallel
//! ([`crate::compare::run_all`]). Each world is created, run and dropped on one thread.
//!
//! A [`Drive`] keeps its state from run to run: cache contents, head position and flash mapping. It
//! has its own clock, which never goes back. Everything above the drive is booted for each run,
//! with an empty page cache and an empty file system.

pub mod bound;
mod cgroups;
mod disk;
mod exec;
mod interval;
mod machine;
mod options;
mod paths;
mod phase;
mod programs;
mod sync;
mod tell;
#[cfg(test)]
mod tests;
mod whole;

pub use disk::{Drive, Watch};
pub use interval::{Each, Interval, Paused, Way};
pub use machine::SimMachine;
pub use options::WorldSetup;
pub use programs::Neighbour;

use crate::drive::Progress;
use crate::setup::{Setup, SetupError};
use disk::Handle;
use seekwell_core::Nanos;
use seekwell_core::result::{Record, Starved, starved};
use seekwell_stack::{Kernel, Stats, kernel_thread_name};
use seekwell_workload::{Outcome, Plan};
use std::future::Future;
use thiserror::Error;

/// The reason why a run did not start, or has no valid result.
#[derive(Error, Debug)]
pub enum WorldError {
    /// The setup is invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// All tasks wait for each other.
    #[error("deadlock at {at} ms: {waits}")]
    Deadlock {
        /// Time since the start, in ms.
        at: String,
        /// The event that each task waits for.
        waits: String,
    },
    /// A task waits for the disk, and no disk event is pending.
    #[error("{scheduler}: {waits}, but no timer, request or queue run is pending")]
    Stuck {
        /// Name of the scheduler that caused the error.
        scheduler: String,
        /// The waiting tasks.
        waits: String,
    },
}

/// Receivers for the events and the progress of a run. By default, there are none.
#[derive(Default)]
pub struct Beside<'a> {
    /// Receives every event of the block layer, in order of time.
    pub watch: Option<Watch>,
    /// Receives the progress, and may stop the run. If the workload has a fixed duration, the
    /// progress is the time since its clock started. Otherwise it is the number of finished calls.
    pub progress: Option<Progress<'a>>,
    /// Observes the run at intervals, and may switch the scheduler. The record then contains only the
    /// counts after the last interval.
    pub each: Option<Each<'a>>,
}

/// A finished run. Its record holds the results, whether the run ended early or not.
#[derive(Debug)]
pub struct Ran {
    /// The measurements.
    pub record: Record,
    /// The modelled kernel's counters.
    pub stats: Stats,
    /// The reason why the run ended early, if it did.
    pub stopped: Option<String>,
    /// The run ended at a limit, before its clock stopped.
    pub limited: bool,
}

/// Runs a workload on a new drive.
pub fn run_simulated(plan: &Plan, setup: &WorldSetup) -> Result<Ran, WorldError> {
    let mut drive = Drive::open(&setup.setup)?;
    run_on(plan, setup, &mut drive)
}

/// Runs a workload on a drive in the drive's present state.
pub fn run_on(plan: &Plan, setup: &WorldSetup, drive: &mut Drive) -> Result<Ran, WorldError> {
    run_beside(plan, setup, drive, Beside::default())
}

/// Does the same as [`run_on`], with receivers for events and progress.
pub fn run_beside(
    plan: &Plan,
    setup: &WorldSetup,
    drive: &mut Drive,
    beside: Beside<'_>,
) -> Result<Ran, WorldError> {
    let script = plan.clone();
    let name = plan.name();
    let mut ran = script_beside(name, setup, drive, beside, plan.span(), move |m| {
        script.run(m)
    })?;
    ran.record.params = plan.params();
    Ok(ran)
}

/// Does the same as [`run_on`], and passes every event of the block layer to `watch`, in time
/// order.
pub fn run_watched(
    plan: &Plan,
    setup: &WorldSetup,
    drive: &mut Drive,
    watch: Watch,
) -> Result<Ran, WorldError> {
    let beside = Beside {
        watch: Some(watch),
        ..Beside::default()
    };
    run_beside(plan, setup, drive, beside)
}

/// Runs a script as the first task, which is called `main`.
pub fn run_script<F, Fut>(
    name: &str,
    setup: &WorldSetup,
    drive: &mut Drive,
    script: F,
) -> Result<Ran, WorldError>
where
    F: FnOnce(SimMachine) -> Fut,
    Fut: Future<Output = Outcome> + 'static,
{
    script_beside(name, setup, drive, Beside::default(), None, script)
}

/// Does the same as [`run_script`], and passes every event of the block layer to a listener.
pub fn run_script_watched<F, Fut>(
    name: &str,
    setup: &WorldSetup,
    drive: &mut Drive,
    watch: Option<Watch>,
    script: F,
) -> Result<Ran, WorldError>
where
    F: FnOnce(SimMachine) -> Fut,
    Fut: Future<Output = Outcome> + 'static,
{
    let beside = Beside {
        watch,
        ..Beside::default()
    };
    script_beside(name, setup, drive, beside, None, script)
}

/// Does the same as [`run_script`], with receivers for events and progress. `span` is the duration
/// of the script's clock, if it is fixed.
pub fn script_beside<F, Fut>(
    name: &str,
    setup: &WorldSetup,
    drive: &mut Drive,
    beside: Beside<'_>,
    span: Option<Nanos>,
    script: F,
) -> Result<Ran, WorldError>
where
    F: FnOnce(SimMachine) -> Fut,
    Fut: Future<Output = Outcome> + 'static,
{
    let below = Setup {
        cpus: setup.config.cores,
        ..setup.setup.clone()
    };
    let meter = Handle::new(drive.queue(&below)?, beside.watch);
    let kernel = Kernel::new(setup.config.clone(), Box::new(meter.clone()));
    let tell = tell::Tell {
        progress: beside.progress,
        span,
    };
    let (capacity, below) = (drive.facts().capacity, meter.clone());
    let laps = interval::Laps::new(beside.each);
    let ended = exec::run(kernel, below, capacity, setup, (tell, laps), script);
    let mut record = setup.setup.record(name);
    record.duration_ns = ended.duration.0;
    record.scheduler_charged =
        setup.config.ablations.schedulers_cost() && !drive.facts().rotational && !drive.is_array();
    ended.measures.fill(&mut record);
    programs::add_results(ended.beside, &mut record, ended.stopped.is_none());
    record.warnings.extend(ended.warnings);
    record.marks.extend(ended.marks);
    record.marks.sort_by_key(|m| m.at_ns);
    let names = ended.names;
    meter.fill(&mut record, |task| {
        let own = names.iter().find(|n| n.0 == task);
        own.map_or_else(
            || kernel_thread_name(task).map_or_else(|| format!("task {}", task.0), str::to_owned),
            |n| n.1.clone(),
        )
    });
    record.starved = starved(&record);
    let warnings = record.starved.iter().map(Starved::words);
    record.warnings.extend(warnings.collect::<Vec<_>>());
    if let Some(q) = &mut record.queue {
        let pages = setup.config.constants.readahead_pages;
        let reads = !setup.config.ablations.no_readahead;
        q.read_ahead_kb = Some(if reads { pages as u32 * 4 } else { 0 });
    }
    drive.settle(ended.duration);
    match ended.error {
        Some(e) => Err(e),
        None => Ok(Ran {
            record,
            stats: ended.stats,
            stopped: ended.stopped,
            limited: ended.limited,
        }),
    }
}
