//! A run on the host: from an empty directory to a result record.

use crate::inforce::in_force;
use crate::machine::HostMachine;
use crate::place::{self, PlaceError, Scratch};
use crate::shared::Shared;
use crate::sqlite;
use crate::stop::{AT_LIMIT, Signals, Stop};
use crate::tasks;
use seekwell_core::result::{
    BUILD, DeviceInfo, Early, Record, SCHEMA, SchedulerUsed, Starved, starved,
};
use seekwell_workload::{Fail, Mark, Needs, Note, Outcome, Plan};
use std::future::Future;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use thiserror::Error;

/// Where and how to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The user's directory; the run creates its own inside.
    pub dir: PathBuf,
    /// The user's device or file, for workloads on a raw device.
    pub device: Option<PathBuf>,
    /// Seed of every random stream.
    pub seed: u64,
    /// Time limit.
    pub limit: Option<Duration>,
    /// Whether SIGINT, SIGTERM and SIGHUP stop the run.
    pub signals: bool,
    /// Progress, for an observer.
    pub pulse: Option<Arc<Pulse>>,
    /// Stops the run when the caller sets it.
    pub stop: Option<Arc<AtomicBool>>,
}

/// Progress of a run, for observers in other threads.
#[derive(Debug, Default)]
pub struct Pulse {
    operations: AtomicU64,
    /// When the workload's clock started; empty before.
    clock: OnceLock<std::time::Instant>,
}

impl Pulse {
    /// Operations that completed.
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }
    /// Time since the workload's clock started; `None` before it started.
    pub fn clock(&self) -> Option<Duration> {
        self.clock.get().map(std::time::Instant::elapsed)
    }
    /// Updates the progress from a script's note.
    pub(crate) fn note(&self, note: &Note) {
        match note {
            Note::Op { .. } => {
                self.operations.fetch_add(1, Ordering::Relaxed);
            }
            Note::Mark(_, Mark::ClockStart) => {
                self.clock.get_or_init(std::time::Instant::now);
            }
            _ => {}
        }
    }
}

impl Options {
    /// Options for a directory, with signals caught and no limit.
    pub fn new(dir: impl Into<PathBuf>, seed: u64) -> Self {
        Options {
            dir: dir.into(),
            device: None,
            seed,
            limit: None,
            signals: true,
            pulse: None,
            stop: None,
        }
    }
}

impl Options {
    /// What the run reads and writes: the raw device, if one was named, else the directory.
    pub fn place(&self) -> &Path {
        self.device.as_deref().unwrap_or(&self.dir)
    }
}

/// Why a run could not start.
#[derive(Error, Debug)]
pub enum HostError {
    /// No directory to work in.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Too little space.
    #[error(
        "{dir}: {free} MB are free, and {name} may need {need} MB; free some, or choose smaller parameters"
    )]
    Space {
        /// The directory.
        dir: PathBuf,
        /// Free, MB.
        free: u64,
        /// Needed, MB.
        need: u64,
        /// Name of the workload.
        name: String,
    },
    /// The workload needs a raw device, and none was named.
    #[error("{0} works on a raw device: name a device or file with --raw")]
    NoDevice(String),
    /// A raw device was named for a workload that works on files.
    #[error(
        "{0} works on files in the directory, not on a raw device: leave --raw out, or take one of {1}"
    )]
    NotRaw(String, String),
    /// The workload would change the user's device.
    #[error(
        "{0} writes to the raw device or trims it, which would destroy its data: only reads are \
         allowed on a raw device"
    )]
    Destroys(String),
    /// The raw device cannot be read.
    #[error("{path}: {source}; name a block device or a plain file you may read with --raw")]
    Raw {
        /// Its path.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// Another error of the host.
    #[error("{what}: {source}")]
    Host {
        /// The operation that failed.
        what: &'static str,
        /// The kernel's error.
        source: std::io::Error,
    },
}

/// A run that started. Its record holds the measurements, also if the run ended early.
#[derive(Debug)]
pub struct Ran {
    /// The measurements.
    pub record: Record,
    /// Why it ended early, if it did: the failure, or what stopped it.
    pub stopped: Option<String>,
    /// The signal that stopped it, if one did.
    pub signal: Option<i32>,
}

/// Checks whether a run can start, without writing anything.
pub fn check(plan: &Plan, o: &Options) -> Result<(), HostError> {
    let name = || plan.name().to_owned();
    match (plan.needs(), &o.device) {
        (Needs::Device, None) => return Err(HostError::NoDevice(name())),
        (Needs::Directory, Some(_)) => {
            let all = seekwell_workload::workloads();
            let raw = all.iter().filter(|w| w.needs == Needs::Device);
            let raw: Vec<&str> = raw.map(|w| w.name).collect();
            return Err(HostError::NotRaw(name(), raw.join(", ")));
        }
        (_, Some(_)) if plan.destroys() => return Err(HostError::Destroys(plan.title())),
        (_, Some(path)) => readable(path)?,
        (_, None) => {}
    }
    place::usable(&o.dir)?;
    enough_space(plan, &o.dir)
}

fn readable(path: &Path) -> Result<(), HostError> {
    let bad = |source| HostError::Raw {
        path: path.to_owned(),
        source,
    };
    // Checked before it is opened: opening a pipe would wait for its other end.
    let kind = std::fs::metadata(path).map_err(bad)?.file_type();
    if !(kind.is_file() || kind.is_block_device()) {
        return Err(bad(std::io::Error::other(
            "is neither a block device nor a file",
        )));
    }
    std::fs::File::open(path).map(drop).map_err(bad)
}

/// Runs a workload.
pub fn run_real(plan: &Plan, o: &Options) -> Result<Ran, HostError> {
    check(plan, o)?;
    let mut ran = match plan.name() {
        // The library runs in place of the script that imitates it.
        sqlite::WORKLOAD => sqlite::run(plan, o)?,
        name => {
            let script = plan.clone();
            run_script(name, o, move |m| script.run(m))?
        }
    };
    ran.record.params = plan.params();
    Ok(ran)
}

/// Checks the free space first, so that a run does not fill the user's disk.
fn enough_space(plan: &Plan, dir: &Path) -> Result<(), HostError> {
    let Ok(s) = rustix::fs::statvfs(dir) else {
        // A missing directory is reported when the run's directory is created.
        return Ok(());
    };
    let (free, need) = (s.f_bavail.saturating_mul(s.f_frsize), plan.space());
    if free < need {
        return Err(HostError::Space {
            dir: dir.to_owned(),
            free: free / 1_000_000,
            need: need.div_ceil(1_000_000),
            name: plan.name().to_owned(),
        });
    }
    Ok(())
}

/// Runs a script as the first task, `main`, on the calling thread.
pub fn run_script<F, Fut>(name: &str, o: &Options, script: F) -> Result<Ran, HostError>
where
    F: FnOnce(HostMachine) -> Fut,
    Fut: Future<Output = Outcome>,
{
    let host = |what| move |source| HostError::Host { what, source };
    let stop = Stop::new(o.limit, o.signals).outside(o.stop.clone());
    // Before the directory is created, so that no signal comes in between.
    let signals = match o.signals {
        true => Some(Signals::catch().map_err(host("catch signals"))?),
        false => None,
    };
    let place = Scratch::new(&o.dir, name)?;
    let force = in_force(o.place());
    let shared = Shared::new(place.path(), o.seed, o.device.clone(), stop);
    let mut shared = shared.map_err(host("open our directory"))?;
    shared.pulse.clone_from(&o.pulse);
    let shared = Arc::new(shared);

    let main = HostMachine::new(Arc::clone(&shared), "main".to_owned());
    let outcome = tasks::run(main, script);
    let duration_ns = shared.now().since_start();
    if outcome.is_ok() {
        // Tasks that the script left running end with it, as on a shutdown.
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
    // Files are closed before they are removed.
    drop(shared);
    if let Err(e) = place.remove() {
        record
            .warnings
            .push(format!("our files could not all be removed: {e}"));
    }
    // Last, so that a signal during the removal does not leave files behind.
    drop(signals);
    Ok(Ran {
        record,
        stopped,
        signal,
    })
}

/// Whether the workload's clock had stopped before the limit was reached.
fn measured_before(limit: Option<Duration>, r: &Record) -> bool {
    let limit_ns = limit.map_or(u128::MAX, |l| l.as_nanos());
    r.clock_stop_ns.is_some_and(|at| u128::from(at) < limit_ns)
}

/// Reason for a script that came to its end.
const ENDED: &str = "ended";

fn failure(outcome: Result<(), Fail>) -> Option<String> {
    outcome.err().map(|f| format!("main: {f}"))
}

/// Adds the host, the place and the schedulers of a run to its record.
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
