//! Runs a script on the host, from an empty directory to a result record.

use crate::inforce::in_force;
use crate::machine::{HostMachine, tasks};
use crate::place::{PlaceError, Scratch};
use crate::pulse::Pulse;
use crate::shared::Shared;
use crate::stop::{AT_LIMIT, Signals, Stop};
use seekwell_core::result::{
    BUILD, DeviceInfo, Early, Record, SCHEMA, SchedulerUsed, Starved, starved,
};
use seekwell_workload::{Fail, Outcome};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use thiserror::Error;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory of the user. The run creates its own directory inside.
    pub dir: PathBuf,
    /// Device or file of the user, for workloads on a raw device.
    pub device: Option<PathBuf>,
    /// Seed of all random streams.
    pub seed: u64,
    /// Time limit of the run.
    pub limit: Option<Duration>,
    /// Whether SIGINT, SIGTERM and SIGHUP stop the run.
    pub signals: bool,
    /// Progress of the run, for an observer.
    pub pulse: Option<Arc<Pulse>>,
    /// Flag by which the caller stops the run.
    pub stop: Option<Arc<AtomicBool>>,
    /// Called when the clock of the record starts.
    pub on_start: Option<fn()>,
}

impl Options {
    /// Returns options for a directory, with signals caught and no time limit.
    pub fn new(dir: impl Into<PathBuf>, seed: u64) -> Self {
        Options {
            dir: dir.into(),
            device: None,
            seed,
            limit: None,
            signals: true,
            pulse: None,
            stop: None,
            on_start: None,
        }
    }
}

impl Options {
    /// Returns the path that the run reads and writes: the raw device if the user named one, else
    /// the directory.
    pub fn place(&self) -> &Path {
        self.device.as_deref().unwrap_or(&self.dir)
    }
}

/// Reasons why a run could not start.
#[derive(Error, Debug)]
pub enum HostError {
    /// No working directory can be created.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// There is too little free space.
    #[error(
        "{dir}: {free} MB are free, and {name} may need {need} MB; free some, or choose smaller parameters"
    )]
    Space {
        /// Path of the directory.
        dir: PathBuf,
        /// Free space, MB.
        free: u64,
        /// Required space, MB.
        need: u64,
        /// Name of the workload.
        name: String,
    },
    /// The workload requires a raw device, but the user did not name one.
    #[error("{0} works on a raw device: name a device or file with --raw")]
    NoDevice(String),
    /// The user named a raw device for a workload that uses files.
    #[error(
        "{0} works on files in the directory, not on a raw device: omit --raw, or choose one of {1}"
    )]
    NotRaw(String, String),
    /// The workload would change the user's device.
    #[error(
        "{0} writes to the raw device or trims it, which would destroy its data: only reads are \
         allowed on a raw device"
    )]
    Destroys(String),
    /// The raw device cannot be read.
    #[error("{path}: {source}; give --raw a block device or a regular file that you may read")]
    Raw {
        /// Path of the device or file.
        path: PathBuf,
        /// The error of the kernel.
        source: std::io::Error,
    },
    /// Any other error of the host.
    #[error("{what}: {source}")]
    Host {
        /// The operation that failed.
        what: &'static str,
        /// The error of the kernel.
        source: std::io::Error,
    },
}

/// A run that was started. Its record contains the measurements, even if the run ended early.
#[derive(Debug)]
pub struct Ran {
    /// The measurements.
    pub record: Record,
    /// Reason why the run ended early: a failure, or what stopped it. `None` if it ended normally.
    pub stopped: Option<String>,
    /// The signal that stopped the run, if a signal did.
    pub signal: Option<i32>,
}

/// Runs a script on the calling thread, as the first task. The name of the task is `main`.
pub fn run_script<F, Fut>(name: &str, o: &Options, script: F) -> Result<Ran, HostError>
where
    F: FnOnce(HostMachine) -> Fut,
    Fut: Future<Output = Outcome>,
{
    let host = |what| move |source| HostError::Host { what, source };
    let stop = Stop::new(o.limit, o.signals).outside(o.stop.clone());
    // Signals are caught before the directory is created, so that no signal can leave the directory
    // behind.
    let signals = match o.signals {
        true => Some(Signals::catch().map_err(host("catch signals"))?),
        false => None,
    };
    let place = Scratch::new(&o.dir, name)?;
    let force = in_force(o.place());
    let shared = Shared::new(place.path(), o.seed, o.device.clone(), stop);
    let mut shared = shared.map_err(host("open the directory of the run"))?;
    shared.pulse.clone_from(&o.pulse);
    let shared = Arc::new(shared);
    if let Some(tell) = o.on_start {
        tell();
    }

    let main = HostMachine::new(Arc::clone(&shared), "main".to_owned());
    let outcome = tasks::run(main, script);
    let duration_ns = shared.now().since_start();
    if outcome.is_ok() {
        // When the script ends, its remaining tasks are stopped, as on a shutdown.
        shared.stop.raise(ENDED);
    }
    tasks::join_all(&shared);

    let mut record = Record {
        schema: SCHEMA,
        seekwell: env!("CARGO_PKG_VERSION").to_owned(),
        build: BUILD.to_owned(),
        substrate: "host".to_owned(),
        workload: name.to_owned(),
        seed: o.seed,
        duration_ns,
        ..Record::default()
    };
    describe(&mut record, o, &force);
    std::mem::take(&mut *shared.measures()).fill(&mut record);
    record.warnings = shared.warnings();
    record.starved = starved(&record);
    let warnings: Vec<String> = record.starved.iter().map(Starved::words).collect();
    record.warnings.extend(warnings);
    let why = shared.stop.why().filter(|w| w != ENDED);
    let stopped = why.or_else(|| failure(outcome));
    record.early = stopped.clone().map(|why| Early {
        limit: why == AT_LIMIT && !measured_before(o.limit, &record),
        why,
        at_ns: duration_ns,
    });
    let signal = shared.stop.signal();
    // The files must be closed before they are removed.
    drop(shared);
    if let Err(e) = place.remove() {
        record
            .warnings
            .push(format!("some files of the run could not be removed: {e}"));
    }
    // Signals are released last, so that a signal during the removal does not leave files behind.
    drop(signals);
    Ok(Ran {
        record,
        stopped,
        signal,
    })
}

/// Returns whether the clock of the workload stopped before the time limit.
fn measured_before(limit: Option<Duration>, r: &Record) -> bool {
    let limit_ns = limit.map_or(u128::MAX, |l| l.as_nanos());
    r.clock_stop_ns.is_some_and(|at| u128::from(at) < limit_ns)
}

/// Reason for stopping the remaining tasks when the script has ended.
const ENDED: &str = "ended";

fn failure(outcome: Result<(), Fail>) -> Option<String> {
    outcome.err().map(|f| format!("main: {f}"))
}

/// Adds the host, the path and the schedulers of a run to its record.
pub(crate) fn describe(r: &mut Record, o: &Options, force: &crate::InForce) {
    r.host = Some(crate::host::describe(o.place(), o.device.is_some()));
    r.device = DeviceInfo {
        spec: o.place().display().to_string(),
        name: force.to_string(),
        rotational: force.lowest().is_some_and(|l| l.rotational),
        ..DeviceInfo::default()
    };
    let name = force.lowest().and_then(|l| l.scheduler.clone());
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    r.scheduler = SchedulerUsed {
        spec: "in force".to_owned(),
        name: name.unwrap_or_else(|| "none in sight".to_owned()),
        layer: "host".to_owned(),
        kernel: kernel.trim().to_owned(),
        ..SchedulerUsed::default()
    };
}
