//! Runs the same script on a real kernel over a modelled disk, and in the simulation on the same
//! model. The requests that reach the disk are then compared.
//!
//! It needs root, a FUSE that can mount, loop devices and block traces. It removes everything it
//! creates, even after a signal. A separate process serves the modelled disk.

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
    /// Workloads with their parameters; if empty, [`WORKLOADS`].
    pub workloads: Vec<String>,
    /// Modelled device.
    pub device: String,
    /// Kernel scheduler on the loop device; `None` leaves the active one.
    pub scheduler: Option<String>,
    /// Size of the disk in bytes.
    pub size: u64,
    /// Changes to the simulated machine, `memory=2G,cores=2`.
    pub machine: String,
    /// Use a loop device over a plain file: results are reported but not judged.
    pub raw: bool,
    /// Directory for the kernel's block traces.
    pub keep: Option<PathBuf>,
    /// Seed of every random stream.
    pub seed: u64,
    /// The `seekwell` program that serves the modelled disk.
    pub program: PathBuf,
}

/// Why a workload could not be compared.
#[derive(Error, Debug)]
pub enum WorldsError {
    /// The request is not possible here; the text says what to do.
    #[error("{0}")]
    Input(String),
    /// A signal stopped it; the text says what was kept.
    #[error("{what}")]
    Interrupted {
        /// The signal's number.
        signal: i32,
        /// What was kept.
        what: String,
    },
    /// A trace could not be written.
    #[error("{what}: {source}")]
    Output {
        /// The destination.
        what: String,
        /// The cause.
        source: io::Error,
    },
}

impl WorldsError {
    pub(crate) fn input(why: impl Into<String>) -> Self {
        WorldsError::Input(why.into())
    }
}

/// The default workloads, each of a different kind. PostMark never syncs by itself: with today's
/// memory none of its data would reach the disk. Without its flush, iozone would measure memory.
/// The large writes use calls of 16 and of 64 KiB, to show where requests are split.
pub const WORKLOADS: &[&str] = &[
    "fs-mark:files=400,size=16KiB",
    "fs-mark:files=50",
    "iozone:size=64MiB,flush=yes",
    "postmark:files=4000,transactions=8000,high=16KiB,low=512,sync=2000",
    "sqlite:transactions=40",
    "tiobench:size=16MiB,threads=4,random=200",
    "random-read:size=256MiB,seconds=6s",
];

/// Percentage of time in which a task waited for a CPU. Above this, the CPU limits a program's
/// rate, not the disk.
pub const BUSY: f64 = 30.0;

const PREFIX: &str = "seekwell-worlds-";

/// Largest mean lateness of the disk, as a fraction of the model's mean latency: a fifth of the
/// difference allowed for rates.
const LATE: f64 = 0.05;

/// How long the disk of a killed run may take to end.
const LETTING_GO: Duration = Duration::from_secs(2);

/// A private directory, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, WorldsError> {
        let tmp = std::env::temp_dir();
        Self::sweep(&tmp);
        let path = tmp.join(format!("{PREFIX}{}", std::process::id()));
        // Create it for this user only; never reuse a directory of someone else, which may contain
        // links.
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| {
            let path = path.display();
            WorldsError::input(format!("{path}: {e}; name another directory by TMPDIR"))
        })?;
        Ok(Scratch(path))
    }
    /// Whether this is a directory (not a link) that this user created; anybody can use the name.
    fn is_ours(path: &Path) -> bool {
        let me = rustix::process::geteuid().as_raw();
        path.symlink_metadata()
            .is_ok_and(|m| m.is_dir() && m.uid() == me)
    }
    /// Removes directories of killed runs; their disks may still be shutting down.
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
        // Never delete inside a file system that is still mounted: remove only known names.
        for name in ["account.json", "raw.img"] {
            let _ = std::fs::remove_file(self.0.join(name));
        }
        for name in ["mnt", "fuse", ""] {
            let _ = std::fs::remove_dir(self.0.join(name));
        }
    }
}

/// Result of a workload.
pub struct Checked {
    /// The comparison.
    pub verdict: Verdict,
    /// What it could be judged by.
    pub grounds: Grounds,
    /// The kernel's requests to the disk.
    pub real: Side,
    /// The simulation's requests to the disk.
    pub sim: Side,
    /// The kernel and its machine.
    pub host: Host,
    /// Statistics of the served disk.
    pub account: Option<Value>,
}

/// Whether the disk's mean lateness affects the rates of programs that wait for it. The disk's own
/// check compares single late completions with the median. The median is the time of a write into
/// the drive's buffer, which is negligible next to a revolution of the disk.
pub fn too_late(account: &Value) -> bool {
    let mean = |which: &str| account[which]["mean_ns"].as_f64().unwrap_or(0.0);
    account["verdict"] == "invalid" && mean("delivered") > mean("model") * (1.0 + LATE)
}

/// Determines what the run can be judged by.
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
                WorldsError::input(format!("{path}: {e}; name another directory by TMPDIR"))
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
    // A disk with constant latency: every command takes the modelled disk's mean time.
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
        verdict: Verdict::of(name.to_owned(), &real, &sim, null, grounds),
        grounds,
        real,
        sim,
        host,
        account,
    })
}

/// Checks everything that can be checked before a disk is created.
///
/// # Errors
/// Invalid options, or missing requirements of this machine.
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

/// The environment for comparisons. It catches signals, so that everything created is removed.
pub struct Place {
    scratch: Scratch,
    _caught: Signals,
}

impl Place {
    /// Creates the environment.
    ///
    /// # Errors
    /// Signals cannot be caught, or the directory cannot be created.
    pub fn new() -> Result<Self, WorldsError> {
        let caught = Signals::catch();
        let caught =
            caught.map_err(|e| WorldsError::input(format!("signals cannot be caught: {e}")))?;
        // On a busy machine, a script that waits for a CPU would look like a slow disk.
        let _ = rustix::process::setpriority_process(None, -15);
        Ok(Place {
            scratch: Scratch::new()?,
            _caught: caught,
        })
    }
    /// Compares one workload from [`prepare`].
    ///
    /// # Errors
    /// The reason why the real or the simulated run failed.
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
