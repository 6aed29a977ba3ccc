//! Runs a workload on the real kernel or in the simulation, and counts its requests to the disk.
//! These are the two sides of the comparison.

use super::Options;
use super::WorldsError;
use super::server::Server;
use super::tally::Tally;
use seekwell::{DeviceSpec, RunSpec, SchedulerSpec, WorkloadSpec};
use seekwell_core::result::Record;
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{
    Accept, Command, Device, DeviceFacts, DeviceStats, Done, Instant, Sector, Snapshot, Tap, TaskId,
};
use seekwell_files::Sink;
use seekwell_host::MachineFacts;
use seekwell_host::block::Tree;
use seekwell_host::stop::signal;
use seekwell_host::watch::{BlockTrace, Ext4, LoopDevice, Queue};
use seekwell_lab::predict::Translation;
use seekwell_sim::world::{Drive, WorldSetup, run_watched};
use seekwell_workload::{Machine, Plan};
use serde::Serialize;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Interval between checks for a signal while a simulation runs.
const LOOK: Duration = Duration::from_millis(10);

/// Task ID of the simulated journal thread.
const JOURNAL: TaskId = TaskId(2);

/// Result of the real or the simulated side.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Side {
    /// Requests by kind during the timed part of the workload.
    pub tally: Tally,
    /// Value of the workload's metric.
    pub metric: f64,
    /// Unit of the metric.
    pub unit: String,
    /// Duration of the timed part in s.
    pub seconds: f64,
    /// Number of fsync and fdatasync calls. It is 0 for the real run, which does not count them.
    pub fsyncs: u64,
    /// Notes for the reader.
    pub warnings: Vec<String>,
}

/// Properties of the real machine, which the simulation uses as well.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Host {
    /// Queue of the loop device and the machine above it.
    #[serde(flatten)]
    pub facts: MachineFacts,
    /// Percentage of the run in which at least one task waited for a CPU.
    pub pressure: f64,
    /// Facts that the simulation cannot carry, in words.
    pub left: Vec<String>,
}

fn failed(e: impl std::fmt::Display) -> WorldsError {
    WorldsError::input(e.to_string())
}

/// Returns the start and end of the timed part, in ns since the run began. Only this part is
/// compared, because the original program measures neither its preparation nor its clean-up.
fn clock(r: &Record) -> (u64, u64) {
    let last = |name: &str| {
        let marks = r.marks.iter().filter(|m| m.name == name);
        marks.map(|m| m.at_ns).next_back()
    };
    let start = last("clock start").unwrap_or(0);
    (start, last("clock stop").unwrap_or(r.duration_ns))
}

/// Returns the total time in which tasks waited for a CPU, in us; 0 if the kernel does not report
/// it.
fn waited_us() -> u64 {
    let text = std::fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    let some = text.lines().next().and_then(|l| l.split("total=").nth(1));
    some.and_then(|s| s.trim().parse().ok()).unwrap_or_default()
}

fn side(r: &Record, tally: Tally) -> Side {
    let (start, stop) = clock(r);
    let seconds = (stop - start) as f64 / 1e9;
    let metric = r.metric.clone().unwrap_or_default();
    Side {
        tally,
        metric: metric.value,
        unit: metric.unit,
        seconds,
        fsyncs: 0,
        warnings: r.warnings.clone(),
    }
}

/// Returns the monotonic time in ns. Traces use the same clock.
fn monotonic_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Runs the workload on the real kernel, on ext4 on a loop device that uses `file`.
pub fn real(
    a: &Options,
    plan: &Plan,
    dir: &Path,
    file: &Path,
    depth: Option<u32>,
) -> Result<(Side, Host), WorldsError> {
    let mut device = LoopDevice::attach(file).map_err(failed)?;
    let queue = Queue {
        scheduler: a.scheduler.clone(),
        depth,
        ..Queue::default()
    };
    device.settle(&queue).map_err(failed)?;
    let fs = Ext4::make(device.path()).map_err(failed)?;
    let at = dir.join("mnt");
    std::fs::create_dir_all(&at).map_err(failed)?;
    let mounted = fs.mount(&at).map_err(failed)?;
    settle(&at)?;
    let facts = MachineFacts::read(&Tree::default(), mounted.path()).map_err(failed)?;
    // The modelled disk has its own depth, to which the tags of the loop device were set. The loop
    // device has no other layer below it that both sides do not have.
    let facts = MachineFacts {
        depth: None,
        tags: None,
        layers: Vec::new(),
        ..facts
    };
    let translation = Translation::new(&facts, &a.device).map_err(failed)?;
    let mut host = Host {
        left: translation.left().to_vec(),
        facts,
        pressure: 0.0,
    };
    let mut trace = BlockTrace::open(device.number()).map_err(failed)?;
    let options = seekwell_host::Options::new(mounted.path(), a.seed);
    let (began, waited) = (std::time::Instant::now(), waited_us());
    trace.start().map_err(failed)?;
    // The clock of the trace and the clock of the run, read at the same instant. Their difference
    // converts times of the run to times of the trace.
    let offset = std::sync::OnceLock::new();
    let script = plan.clone();
    let ran = seekwell_host::run_script(plan.name(), &options, |m| {
        // The parent directory of the script's files must be on disk before the script starts.
        rustix::fs::sync();
        let _ = offset.set((monotonic_ns(), m.now().since_start()));
        script.run(m)
    });
    let waited = waited_us().saturating_sub(waited) as f64;
    host.pressure = waited / 1e4 / began.elapsed().as_secs_f64().max(1e-3);
    let recorded = trace.stop().map_err(failed)?;
    let ran = ran.map_err(failed)?;
    if let Some(why) = ran.stopped {
        return Err(WorldsError::input(format!("{}: {why}", plan.name())));
    }
    if let Some(dir) = &a.keep {
        keep(dir, plan.name(), &recorded.text)?;
    }
    let (mono, run) = offset.get().copied().unwrap_or_default();
    let (start, stop) = clock(&ran.record);
    // The trace has a resolution of 1 us, so the interval is extended by 1 us at both ends.
    let from = mono + start.saturating_sub(run) - 1_000;
    let to = mono + stop.saturating_sub(run) + 1_000;
    let tally = Tally::of_trace(&recorded.events, &fs.journal, (from, to));
    let mut side = side(&ran.record, tally);
    if recorded.lost > 0 {
        side.warnings.push(format!(
            "the kernel lost {} events: counts are too low",
            recorded.lost
        ));
    }
    drop(trace);
    drop(mounted);
    fs.check().map_err(failed)?;
    Ok((side, host))
}

/// Commits the effects of mounting before the timed part begins. When the first file is opened,
/// ext4 writes the mount point into the superblock. The first commit writes the journal's
/// superblock.
fn settle(mounted: &Path) -> Result<(), WorldsError> {
    let first = mounted.join("first");
    std::fs::write(&first, "").map_err(failed)?;
    rustix::fs::sync();
    std::fs::remove_file(&first).map_err(failed)?;
    rustix::fs::sync();
    Ok(())
}

/// Writes a trace to a new file in `dir`. If this process has already written a trace of that name,
/// a number is appended to the name.
fn keep(dir: &Path, name: &str, text: &str) -> Result<(), WorldsError> {
    static KEPT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let names = std::iter::once(format!("{name}.ftrace"))
        .chain((2..).map(|n| format!("{name}-{n}.ftrace")));
    let mut paths = names.map(|n| dir.join(n));
    let path = paths.find(|p| !kept.contains(p)).unwrap_or_default();
    let done = Sink::open(&path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.finish()
    });
    done.map_err(|source| WorldsError::Output {
        what: format!("--keep {}: cannot be written", path.display()),
        source,
    })?;
    kept.push(path);
    Ok(())
}

/// Opens the model of the disk.
pub fn model(a: &Options) -> Result<impl Device + use<>, WorldsError> {
    seekwell_device::open(&a.device, a.seed).map_err(failed)
}

/// Returns the simulated machine with the given device.
pub fn world(a: &Options, host: &Host, device: &str) -> Result<WorldSetup, WorldsError> {
    let name = match host.facts.scheduler.as_str() {
        "" => a.scheduler.clone().unwrap_or_else(|| "none".to_owned()),
        name => name.to_owned(),
    };
    let scheduler = SchedulerSpec {
        name,
        ..SchedulerSpec::default()
    };
    let workload = WorkloadSpec::Script {
        name: String::new(),
        params: BTreeMap::new(),
    };
    let mut spec = RunSpec {
        seed: a.seed,
        ..RunSpec::new(DeviceSpec::default(), scheduler, workload)
    };
    let translation = Translation::new(&host.facts, device).map_err(failed)?;
    translation.carry(&mut spec);
    let mut world = seekwell_sim::spec::world(&spec).map_err(failed)?;
    let applied = world.apply(&a.machine);
    applied.map_err(|e| WorldsError::input(format!("--machine: {e}")))?;
    Ok(world)
}

/// A simulation that is ready to run.
pub struct Order {
    world: Result<WorldSetup, WorldsError>,
    plan: Plan,
    size: u64,
    write_back: bool,
    seed: u64,
}

impl Order {
    /// Prepares a simulation. `device` is the modelled device, or another device for the null
    /// model.
    pub fn new(a: &Options, plan: &Plan, host: &Host, device: &str) -> Self {
        Order {
            world: world(a, host, device),
            plan: plan.clone(),
            size: a.size,
            write_back: host.facts.write_back.unwrap_or_default(),
            seed: a.seed,
        }
    }

    /// Runs the simulation in a thread. After a signal, returns without waiting for the thread.
    /// This is safe because the thread owns only memory.
    pub fn run(self) -> Result<Side, WorldsError> {
        let thread = std::thread::spawn(|| self.simulate());
        while !thread.is_finished() {
            if let Some(signal) = signal() {
                let what = "in the simulation".to_owned();
                return Err(WorldsError::Interrupted { signal, what });
            }
            std::thread::sleep(LOOK);
        }
        let name = |_| WorldsError::input("the simulation panicked: please report it");
        thread.join().map_err(name)?
    }

    fn simulate(self) -> Result<Side, WorldsError> {
        let (plan, world) = (&self.plan, self.world?);
        // The translation may have stated parameters of the device.
        let model = seekwell_device::open(&world.setup.device, self.seed).map_err(failed)?;
        let mut drive = Drive::new(Box::new(Cut::new(model, self.size, self.write_back)));
        let tally = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&tally);
        let watch = Box::new(move |e: &seekwell_core::Event| {
            if e.action == seekwell_core::Action::Issue {
                seen.borrow_mut().push(e.clone());
            }
        });
        let ran = run_watched(plan, &world, &mut drive, watch).map_err(failed)?;
        if let Some(why) = ran.stopped {
            let name = plan.name();
            return Err(WorldsError::input(format!("{name} (simulated): {why}")));
        }
        let (start, stop) = clock(&ran.record);
        let window = Instant::at_ns(start)..=Instant::at_ns(stop);
        let mut counted = Tally::default();
        for e in tally.borrow().iter().filter(|e| window.contains(&e.at)) {
            counted.event(e, JOURNAL);
        }
        let mut side = side(&ran.record, counted);
        side.fsyncs = ran.stats.fsyncs;
        Ok(side)
    }
}

/// The simulated disk with the same properties as the loop device of the real run. Its capacity is
/// at most the size of the loop device's backing file. It has a volatile write cache if the kernel
/// reported one for the loop device. It does not support FUA.
struct Cut<D> {
    inner: D,
    facts: DeviceFacts,
}

impl<D: Device> Cut<D> {
    fn new(inner: D, bytes: u64, write_back: bool) -> Self {
        let mut facts = inner.facts().clone();
        facts.capacity = Sector((bytes / SECTOR_BYTES).min(facts.capacity.0));
        (facts.write_cache, facts.fua) = (write_back, false);
        Cut { inner, facts }
    }
}

impl<D: Device> Device for Cut<D> {
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        self.inner.accept(now, command)
    }
    fn next_event(&self) -> Option<Instant> {
        self.inner.next_event()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        self.inner.advance(to, out);
    }
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn stats(&self) -> DeviceStats {
        self.inner.stats()
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        self.inner.listen(tap);
    }
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        self.inner.snapshot(now, out);
    }
}

/// The backing file of the loop device in the real run.
pub enum Below {
    /// A file that a server presents as the modelled disk.
    Model(Server),
    /// A regular sparse file without a model (`--raw`), as fast as the host.
    File(std::path::PathBuf),
}

impl Below {
    /// Returns the path of the file.
    pub fn file(&self) -> std::path::PathBuf {
        match self {
            Below::Model(s) => s.file(),
            Below::File(f) => f.clone(),
        }
    }
    /// Ends the server of a modelled disk and returns the server's statistics. For a regular file,
    /// removes the file and returns `None`.
    pub fn stop(self) -> Result<Option<Value>, WorldsError> {
        match self {
            Below::Model(s) => s.stop().map(Some),
            Below::File(f) => {
                let _ = std::fs::remove_file(f);
                Ok(None)
            }
        }
    }
}
