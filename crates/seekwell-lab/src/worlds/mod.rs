//! The same script on a real kernel over a modelled disk, and in the simulation on the same model:
//! what both asked of the disk, side by side.
//!
//! Needs root, a FUSE that mounts, loop devices and block traces; everything it makes is its own
//! and is removed, also after a signal. The modelled disk is served by a process of its own.

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

/// What is checked, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Workloads with their parameters; none: [`WORKLOADS`].
    pub workloads: Vec<String>,
    /// Modelled device.
    pub device: String,
    /// Scheduler of the kernel on the loop device; `None`: the one in force.
    pub scheduler: Option<String>,
    /// Size of the disk, bytes.
    pub size: u64,
    /// Changes to the simulated machine, `memory=2G,cores=2`.
    pub machine: String,
    /// Straight on a loop device over a file: reported, not judged.
    pub raw: bool,
    /// Where to keep the kernel's block traces.
    pub keep: Option<PathBuf>,
    /// Seed of every random stream.
    pub seed: u64,
    /// The `seekwell` that serves the modelled disk.
    pub program: PathBuf,
}

/// Why a workload could not be compared.
#[derive(Error, Debug)]
pub enum WorldsError {
    /// What was asked for does not work here; says what to do about it.
    #[error("{0}")]
    Input(String),
    /// A signal stopped it; says what was kept.
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
        /// Where to.
        what: String,
        /// Why.
        source: io::Error,
    },
}

impl WorldsError {
    pub(crate) fn input(why: impl Into<String>) -> Self {
        WorldsError::Input(why.into())
    }
}

/// What is run unless asked otherwise: each of another kind. PostMark never syncs by itself, and
/// with today's memory nothing of it would reach the disk; without its flush iozone's figure would be
/// the memory's. The large writes are of 16 and of 64 KiB calls: where requests are cut.
pub const WORKLOADS: &[&str] = &[
    "fs-mark:files=400,size=16KiB",
    "fs-mark:files=50",
    "iozone:size=64MiB,flush=yes",
    "postmark:files=4000,transactions=8000,high=16KiB,low=512,sync=2000",
    "sqlite:transactions=40",
    "tiobench:size=16MiB,threads=4,random=200",
    "random-read:size=256MiB,seconds=6s",
];

/// Share of the time, %, in which something waited for a CPU: above it a program's own rate is not
/// that of its disk.
pub const BUSY: f64 = 30.0;

const PREFIX: &str = "seekwell-worlds-";

/// Share of the model's mean latency by which a disk may be late on the mean: a fifth of what rates
/// may differ by.
const LATE: f64 = 0.05;

/// How long the disk of a killed run may take to end.
const LETTING_GO: Duration = Duration::from_secs(2);

/// A directory of our own, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, WorldsError> {
        let tmp = std::env::temp_dir();
        Self::sweep(&tmp);
        let path = tmp.join(format!("{PREFIX}{}", std::process::id()));
        // Ours alone: not one that somebody else has made, with links in it.
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| {
            let path = path.display();
            WorldsError::input(format!("{path}: {e}; name another directory by TMPDIR"))
        })?;
        Ok(Scratch(path))
    }
    /// A directory, not a link to one, and made by this user: its name alone anybody may take.
    fn is_ours(path: &Path) -> bool {
        let me = rustix::process::geteuid().as_raw();
        path.symlink_metadata()
            .is_ok_and(|m| m.is_dir() && m.uid() == me)
    }
    /// Removes what killed runs left; their disk may still be on its way out.
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
        // Never into something still mounted: directories by name, files by name.
        for name in ["account.json", "raw.img"] {
            let _ = std::fs::remove_file(self.0.join(name));
        }
        for name in ["mnt", "fuse", ""] {
            let _ = std::fs::remove_dir(self.0.join(name));
        }
    }
}

/// A workload's outcome.
pub struct Checked {
    /// What agrees and what not.
    pub verdict: Verdict,
    /// By what it could be judged.
    pub grounds: Grounds,
    /// What the kernel asked of the disk.
    pub real: Side,
    /// What the simulation asked of it.
    pub sim: Side,
    /// The kernel and its machine.
    pub host: Host,
    /// The served disk's account of itself.
    pub account: Option<Value>,
}

/// Whether the disk's lateness shows in the rates of programs that wait for it: by the mean. The
/// disk's own verdict also looks at how late single completions are beside the median, which is that
/// of a write into the drive's buffer and of no weight beside a turn of the platter.
pub fn too_late(account: &Value) -> bool {
    let mean = |which: &str| account[which]["mean_ns"].as_f64().unwrap_or(0.0);
    account["verdict"] == "invalid" && mean("delivered") > mean("model") * (1.0 + LATE)
}

/// By what the run can be judged.
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
    // A disk of no law: every command takes what the modelled one took on average.
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

/// Everything that can be refused before a disk is made.
///
/// # Errors
/// What cannot be, or what this machine lacks.
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
                "{name} works on a raw device, and check-worlds compares what a file system asks: \
                 choose one that works in a directory (seekwell workloads)"
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

/// A place for the experiment, with signals caught: what was made is unmade on the way out.
pub struct Place {
    scratch: Scratch,
    _caught: Signals,
}

impl Place {
    /// Makes it.
    ///
    /// # Errors
    /// Signals that cannot be caught, a directory that cannot be made.
    pub fn new() -> Result<Self, WorldsError> {
        let caught = Signals::catch();
        let caught =
            caught.map_err(|e| WorldsError::input(format!("signals cannot be caught: {e}")))?;
        // A script that waits for its turn on a busy machine looks like a slow disk.
        let _ = rustix::process::setpriority_process(None, -15);
        Ok(Place {
            scratch: Scratch::new()?,
            _caught: caught,
        })
    }
    /// Compares one workload of [`prepare`].
    ///
    /// # Errors
    /// Why it could not be run in one of the worlds.
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
