//! Runs a workload on the real kernel or in the simulation, and counts its requests to the disk.
//! These are the two sides of the comparison.

use super::Options;
use super::WorldsError;
use super::server::Server;
use super::tally::Tally;
use seekwell_core::result::Record;
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{
    Accept, Command, Device, DeviceFacts, DeviceStats, Done, Instant, Sector, Snapshot, Tap, TaskId,
};
use seekwell_files::Sink;
use seekwell_host::stop::signal;
use seekwell_host::watch::{BlockTrace, Ext4, LoopDevice, Queue};
use seekwell_sched::WBT_LAT_USEC;
use seekwell_sim::Setup;
use seekwell_sim::world::{Drive, WorldSetup, run_watched};
use seekwell_workload::{Machine, Plan};
use serde::Serialize;
use serde_json::Value;
use std::cell::RefCell;
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
    /// Active scheduler of the loop device.
    pub scheduler: String,
    /// `nr_requests` of the scheduler; `None` for a scheduler that does not queue requests.
    pub nr_requests: Option<u32>,
    /// Largest size of a request in KiB.
    pub max_sectors_kb: Option<u32>,
    /// Largest number of segments of a request.
    pub max_segments: Option<u32>,
    /// Latency target of writeback throttling in us; 0 if throttling is off.
    pub wbt_lat_usec: Option<u32>,
    /// Percentage of the run in which at least one task waited for a CPU.
    pub pressure: f64,
    /// True if the kernel sends flushes. Loop devices always report a write cache.
    pub write_back: bool,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Number of CPUs.
    pub cpus: u16,
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
    let number = |name: &str| device.queue(name).ok().and_then(|n| n.parse::<u32>().ok());
    let mut host = Host {
        max_sectors_kb: number("max_sectors_kb"),
        max_segments: number("max_segments"),
        wbt_lat_usec: number("wbt_lat_usec"),
        pressure: 0.0,
        scheduler: device.scheduler().map_err(failed)?,
        nr_requests: number("nr_requests"),
        write_back: device.queue("write_cache").is_ok_and(|c| c == "write back"),
        memory_bytes: memory_bytes(),
        cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u16),
    };
    let fs = Ext4::make(device.path()).map_err(failed)?;
    let at = dir.join("mnt");
    std::fs::create_dir_all(&at).map_err(failed)?;
    let mounted = fs.mount(&at).map_err(failed)?;
    settle(&at)?;
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

fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let kib = total.and_then(|t| t.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(4 << 20) << 10
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
    let scheduler = match host.scheduler.as_str() {
        "" => a.scheduler.clone().unwrap_or_else(|| "none".to_owned()),
        name => name.to_owned(),
    };
    let none = scheduler == "none";
    // The scheduler's version for the running kernel.
    let scheduler = match seekwell_sim::spec::kernel::version_here(&scheduler) {
        Some(version) => format!("{scheduler}-{version}"),
        None => scheduler,
    };
    // The single-queue block layer has no writeback throttling.
    let has_wbt = seekwell_sched::find(&scheduler).is_some_and(|(.., era)| era.is_mq());
    let wbt = host.wbt_lat_usec.filter(|_| has_wbt);
    let wbt = wbt.map(|us| (WBT_LAT_USEC.name.to_owned(), us.to_string()));
    let setup = Setup {
        device: device.to_owned(),
        seed: a.seed,
        nr_requests: host.nr_requests.filter(|_| !none),
        max_sectors_kb: host.max_sectors_kb,
        max_segments: host.max_segments,
        tunables: wbt.into_iter().collect(),
        scheduler,
        ..Setup::default()
    };
    let mut world = WorldSetup::new(setup).map_err(failed)?;
    world.config.memory_bytes = host.memory_bytes;
    world.config.cores = host.cpus;
    let applied = world.apply(&a.machine);
    applied.map_err(|e| WorldsError::input(format!("--machine: {e}")))?;
    Ok(world)
}

/// A simulation that is ready to run.
pub struct Order {
    world: Result<WorldSetup, WorldsError>,
    plan: Plan,
    device: String,
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
            device: device.to_owned(),
            size: a.size,
            write_back: host.write_back,
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
        let model = seekwell_device::open(&self.device, self.seed).map_err(failed)?;
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
