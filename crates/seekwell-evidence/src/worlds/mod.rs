//! Runs the same script on a real kernel with a modelled disk, and in the simulation with the same
//! disk model. It then compares the requests that reach the disk.
//!
//! This module needs root, FUSE, loop devices and block traces. It removes everything it created,
//! also after a signal. A separate process serves the modelled disk.

mod judge;
mod needs;
mod server;
mod sides;
mod tally;

pub use judge::{Grounds, Null, Row, Score, Verdict};
pub use sides::{Host, Side};

use seekwell_core::Device;
use seekwell_host::stop::Signals;
use seekwell_workload::{Needs, Plan};
use serde_json::Value;
use server::Server;
use sides::{Below, Order, real};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Options of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Workloads with their parameters; an empty list selects [`WORKLOADS`].
    pub workloads: Vec<String>,
    /// Specification of the modelled device.
    pub device: String,
    /// Kernel scheduler of the loop device; `None` keeps the active scheduler.
    pub scheduler: Option<String>,
    /// Size of the modelled disk in bytes.
    pub size: u64,
    /// Parameters of the simulated machine that differ from this machine, such as
    /// `memory=2G,cores=2`.
    pub machine: String,
    /// True for a loop device on a regular file without a model; results are not judged.
    pub raw: bool,
    /// Directory in which the kernel's block traces are saved; `None` to discard them.
    pub keep: Option<PathBuf>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Path of the `seekwell` program, which serves the modelled disk.
    pub program: PathBuf,
}

/// The reason why a workload could not be compared.
#[derive(Error, Debug)]
pub enum WorldsError {
    /// The options or this machine do not permit the comparison; the text says what to do.
    #[error("{0}")]
    Input(String),
    /// A signal stopped the comparison.
    #[error("{what}")]
    Interrupted {
        /// Number of the signal.
        signal: i32,
        /// Describes the traces that were saved.
        what: String,
    },
    /// A trace could not be written.
    #[error("{what}: {source}")]
    Output {
        /// Path of the trace.
        what: String,
        /// Error of the write.
        source: io::Error,
    },
}

impl WorldsError {
    pub(crate) fn input(why: impl Into<String>) -> Self {
        WorldsError::Input(why.into())
    }
}

/// The default workloads, one per kind of program. PostMark itself never syncs, so that on machines
/// with much memory no data would reach the disk; `sync=2000` adds syncs. Without `flush=yes`,
/// iozone would measure the page cache. Large files are written in calls of 16 KiB (fs-mark) or 64
/// KiB (iozone), because the split into requests can depend on this size.
pub const WORKLOADS: &[&str] = &[
    "fs-mark:files=400,size=16KiB",
    "fs-mark:files=50",
    "iozone:size=64MiB,flush=yes",
    "postmark:files=4000,transactions=8000,high=16KiB,low=512,sync=2000",
    "sqlite:transactions=40",
    "tiobench:size=16MiB,threads=4,random=200",
    "random-read:size=256MiB,seconds=6s",
];

/// Percentage of time in which at least one task waited for a CPU. Above this value, the CPU and
/// not the disk limits the program's rate.
pub const BUSY: f64 = 30.0;

const PREFIX: &str = "seekwell-worlds-";

/// Largest accepted mean delay of the served disk, as a fraction of the model's mean latency. It is
/// a fifth of the accepted difference in throughput.
const LATE: f64 = 0.05;

/// Time that the disk of a killed run may need to shut down.
const LETTING_GO: Duration = Duration::from_secs(2);

/// A private temporary directory, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, WorldsError> {
        let tmp = std::env::temp_dir();
        Self::sweep(&tmp);
        let path = tmp.join(format!("{PREFIX}{}", std::process::id()));
        // Only this user can access the directory. An existing directory is never used, because
        // another user may have put symbolic links into it.
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| {
            let path = path.display();
            WorldsError::input(format!("{path}: {e}; set TMPDIR to another directory"))
        })?;
        Ok(Scratch(path))
    }
    /// Returns whether `path` is a directory, not a symbolic link, that this user created. The name
    /// alone proves nothing, because any user can create it.
    fn is_ours(path: &Path) -> bool {
        let me = rustix::process::geteuid().as_raw();
        path.symlink_metadata()
            .is_ok_and(|m| m.is_dir() && m.uid() == me)
    }
    /// Removes directories that killed runs left behind. Their disks may still be shutting down.
    fn sweep(tmp: &Path) {
        for e in std::fs::read_dir(tmp).into_iter().flatten().flatten() {
            let name = e.file_name().to_string_lossy().into_owned();
            let pid = name
                .strip_prefix(PREFIX)
                .and_then(|p| p.parse::<u32>().ok());
            let gone = |p: u32| !Path::new("/proc").join(p.to_string()).exists();
            if pid.is_some_and(gone) && Self::is_ours(&e.path()) {
                let end = Instant::now() + LETTING_GO;
                drop(Scratch(e.path()));
                while e.path().exists() && Instant::now() < end {
                    std::thread::sleep(Duration::from_millis(20));
                    drop(Scratch(e.path()));
                }
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A file system may still be mounted inside, so only files with known names are removed.
        for name in ["account.json", "raw.img"] {
            let _ = std::fs::remove_file(self.0.join(name));
        }
        for name in ["mnt", "fuse", ""] {
            let _ = std::fs::remove_dir(self.0.join(name));
        }
    }
}

/// Result of one workload.
pub struct Checked {
    /// The comparison.
    pub verdict: Verdict,
    /// The rows by which the run can be judged.
    pub grounds: Grounds,
    /// Requests of the real kernel to the disk.
    pub real: Side,
    /// Requests of the simulation to the disk.
    pub sim: Side,
    /// Properties of the kernel and of its machine.
    pub host: Host,
    /// Statistics of the served disk; `None` without a modelled disk.
    pub account: Option<Value>,
}

/// Returns whether the served disk was so late that the rates of waiting programs changed. The
/// disk's own check compares single late completions with the median latency. That median is the
/// time of a write into the drive's cache, which is much shorter than a revolution.
pub fn too_late(account: &Value) -> bool {
    let mean = |which: &str| account[which]["mean_ns"].as_f64().unwrap_or(0.0);
    account["verdict"] == "invalid" && mean("delivered") > mean("model") * (1.0 + LATE)
}

/// Decides by which rows the run can be judged.
fn grounds(raw: bool, host: &Host, account: Option<&Value>) -> Grounds {
    let late = account.is_some_and(too_late);
    match raw {
        true => Grounds::Nothing,
        false if late || host.pressure > BUSY => Grounds::Counts,
        false => Grounds::All,
    }
}

fn check(a: &Options, plan: &Plan, name: &str, dir: &Path) -> Result<Checked, WorldsError> {
    let model = sides::model(a)?;
    let depth = (!a.raw).then(|| model.facts().depth);
    let below = match a.raw {
        false => Below::Model(Server::start(a, dir)?),
        true => {
            let path = dir.join("raw.img");
            let made = std::fs::File::create(&path).and_then(|f| f.set_len(a.size));
            let below = Below::File(path.clone());
            made.map_err(|e| {
                let path = path.display();
                WorldsError::input(format!("{path}: {e}; set TMPDIR to another directory"))
            })?;
            below
        }
    };
    let ran = real(a, plan, dir, &below.file(), depth);
    let account = below.stop();
    let (real, host) = ran?;
    let account = account?;
    let order = |device: &str| Order::new(a, plan, &host, device);
    let sim = order(&a.device).run()?;
    // Null model: every command takes the mean time of the modelled disk's commands.
    let mean_us = account
        .as_ref()
        .and_then(|v| v["model"]["mean_ns"].as_f64());
    let flat = format!(
        "constant:depth={},service_us={:.1},write_cache=yes,rotational=yes",
        model.facts().depth,
        mean_us.unwrap_or(1e5) / 1e3
    );
    let null = order(&flat).run()?;
    let null = Null {
        fsyncs: sim.fsyncs,
        rate: null.metric,
    };
    let grounds = grounds(a.raw, &host, account.as_ref());
    Ok(Checked {
        verdict: Verdict::compare(name.to_owned(), &real, &sim, null, grounds),
        grounds,
        real,
        sim,
        host,
        account,
    })
}

/// Checks the options and the machine before a disk is created. Returns the workloads to run.
///
/// # Errors
/// An option is invalid, or this machine lacks a requirement.
pub fn prepare(a: &Options) -> Result<Vec<(&str, Plan)>, WorldsError> {
    let names: Vec<&str> = match a.workloads.is_empty() {
        true => WORKLOADS.to_vec(),
        false => a.workloads.iter().map(String::as_str).collect(),
    };
    let mut plans = Vec::new();
    for name in names {
        let plan = Plan::new(name, &[]).map_err(|e| WorldsError::input(e.to_string()))?;
        if plan.needs() == Needs::Device {
            return Err(WorldsError::input(format!(
                "{name} needs a raw device, but check-worlds compares a file system's requests: \
                 choose a workload for directories (seekwell workloads)"
            )));
        }
        plans.push((name, plan));
    }
    sides::model(a)?;
    sides::world(a, &Host::default(), &a.device)?;
    needs::check(a.raw)?;
    if let Some(keep) = &a.keep {
        needs::directory(keep)?;
    }
    Ok(plans)
}

/// The temporary directory and the signal handlers for comparisons. Everything is removed on drop.
pub struct Place {
    scratch: Scratch,
    _caught: Signals,
}

impl Place {
    /// Creates the temporary directory and catches signals.
    ///
    /// # Errors
    /// Signals cannot be caught, or the directory cannot be created.
    pub fn new() -> Result<Self, WorldsError> {
        let caught = Signals::catch();
        let caught =
            caught.map_err(|e| WorldsError::input(format!("signals cannot be caught: {e}")))?;
        // Without a high priority, waiting for a busy CPU would look like a slow disk.
        let _ = rustix::process::setpriority_process(None, -15);
        Ok(Place {
            scratch: Scratch::new()?,
            _caught: caught,
        })
    }
    /// Compares one workload that [`prepare`] returned.
    ///
    /// # Errors
    /// The real or the simulated run failed.
    pub fn check(&self, a: &Options, plan: &Plan, name: &str) -> Result<Checked, WorldsError> {
        check(a, plan, name, &self.scratch.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_disk_is_too_late_by_its_mean() {
        let account = |verdict: &str, delivered: f64| {
            json!({
                "verdict": verdict,
                "model": {"mean_ns": 16_000_000.0},
                "delivered": {"mean_ns": delivered},
            })
        };
        assert!(!too_late(&account("invalid", 16_018_000.0)));
        assert!(too_late(&account("invalid", 16_900_000.0)));
        assert!(!too_late(&account("usable", 16_900_000.0)));
    }
}
