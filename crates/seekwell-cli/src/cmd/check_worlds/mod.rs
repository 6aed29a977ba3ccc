//! `seekwell check-worlds`: the same script on a real kernel over a modelled disk, and in the
//! simulation on the same model; what both asked of the disk, side by side.

mod judge;
mod needs;
mod server;
mod show;
mod sides;
mod tally;

use crate::cli::CheckWorlds;
use crate::fail::Failure;
use crate::out::{Out, note};
use crate::progress::Progress;
use judge::{Grounds, Null, Score, Verdict};
use seekwell_core::Device;
use seekwell_host::stop::{Signals, signal};
use seekwell_workload::{Needs, Plan};
use serde_json::{Value, json};
use server::Server;
use sides::{Below, Host, Order, Side, real};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
const BUSY: f64 = 30.0;

const PREFIX: &str = "seekwell-worlds-";

/// Share of the model's mean latency by which a disk may be late on the mean: a fifth of what rates
/// may differ by.
const LATE: f64 = 0.05;

/// How long the disk of a killed run may take to end.
const LETTING_GO: Duration = Duration::from_secs(2);

/// A directory of our own, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        let tmp = std::env::temp_dir();
        Self::sweep(&tmp);
        let path = tmp.join(format!("{PREFIX}{}", std::process::id()));
        // Ours alone: not one that somebody else has made, with links in it.
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| {
            let path = path.display();
            Failure::input(format!("{path}: {e}; name another directory by TMPDIR"))
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
struct Checked {
    verdict: Verdict,
    grounds: Grounds,
    real: Side,
    sim: Side,
    host: Host,
    account: Option<Value>,
}

/// Whether the disk's lateness shows in the rates of programs that wait for it: by the mean. The
/// disk's own verdict also looks at how late single completions are beside the median, which is that
/// of a write into the drive's buffer and of no weight beside a turn of the platter.
fn too_late(account: &Value) -> bool {
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

fn check(a: &CheckWorlds, plan: &Plan, name: &str, dir: &Path) -> Result<Checked, Failure> {
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
                Failure::input(format!("{path}: {e}; name another directory by TMPDIR"))
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
fn prepare(a: &CheckWorlds) -> Result<Vec<(&str, Plan)>, Failure> {
    let names: Vec<&str> = match a.workloads.is_empty() {
        true => WORKLOADS.to_vec(),
        false => a.workloads.iter().map(String::as_str).collect(),
    };
    let mut plans = Vec::new();
    for name in names {
        let plan = Plan::new(name, &[]).map_err(|e| Failure::input(e.to_string()))?;
        if plan.needs() == Needs::Device {
            return Err(Failure::input(format!(
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

fn interrupted(done: usize, all: usize) -> Result<(), Failure> {
    match signal() {
        None => Ok(()),
        Some(signal) => Err(Failure::Interrupted {
            signal,
            what: format!(
                "stopped by signal {signal}: {done} of {all} workloads were compared; nothing was \
                 left behind"
            ),
        }),
    }
}

/// Checks each workload in both worlds.
pub fn run(a: &CheckWorlds, quiet: bool) -> Result<(), Failure> {
    let plans = prepare(a)?;
    // A signal ends the run, and what was made is unmade on the way out.
    let caught = Signals::catch();
    let _caught = caught.map_err(|e| Failure::input(format!("signals cannot be caught: {e}")))?;
    // A script that waits for its turn on a busy machine looks like a slow disk.
    let _ = rustix::process::setpriority_process(None, -15);
    let mut out = Out::open(a.output.output.as_deref())?;
    let scratch = Scratch::new()?;
    let (mut all, mut missed) = (Vec::new(), Vec::new());
    let progress = Progress::new(quiet, "workloads", plans.len(), 1);
    for (name, plan) in &plans {
        let say = format!("{name}: on the running kernel, then simulated");
        progress.aside(|| note(quiet, &say));
        let task = progress.task(0, name);
        let checked = check(a, plan, name, &scratch.0);
        drop(task);
        if signal().is_some() {
            break;
        }
        let checked = match checked {
            Ok(checked) => checked,
            // One that cannot be run in one world is no reason not to run the others.
            Err(Failure::Input(why)) => {
                missed.push(json!({ "workload": name, "why": why }));
                progress.aside(|| note(false, &format!("{name} could not be compared: {why}")));
                continue;
            }
            Err(e) => return Err(e),
        };
        if !a.json {
            progress.aside(|| out.text(&show::text(&checked)))?;
        }
        all.push(checked);
    }
    drop(progress);
    drop(scratch);
    if a.json {
        out.json(&show::json(a, &all, &missed))?;
    } else if !all.is_empty() {
        out.line(&show::closing(&all, plans.len()))?;
    }
    out.done()?;
    interrupted(all.len(), plans.len())?;
    if all.is_empty() {
        return Err(Failure::input("no workload could be compared".to_owned()));
    }
    outcome(&all, !missed.is_empty())
}

/// What the figures make of the command.
fn outcome(all: &[Checked], missed: bool) -> Result<(), Failure> {
    if all.iter().any(|c| c.verdict.agrees() == Some(false)) || missed {
        return Err(Failure::Difference);
    }
    let left = |c: &&Checked| c.grounds == Grounds::Counts;
    match all.iter().filter(left).count() {
        0 => Ok(()),
        n => Err(Failure::NotJudged(format!(
            "the machine was busy during {n} of {} workloads: what depends on time was not judged; \
             run it again when it is quiet",
            all.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
