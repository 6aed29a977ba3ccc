//! Makes runs in guests: a real kernel on virtual time over modelled disks.

use crate::cli::{Bench, Substrate};
use crate::fail::Failure;
use seekwell::words;
use seekwell::{Cancel, MachineSpec, Progress, QueueSpec, Record, RunSpec};
use seekwell_core::result::DeviceInfo;
use seekwell_core::{DeviceFacts, Op, Sectors};
use seekwell_guest::{
    GuestError, Kernel, LogEntry, Outcome, PROGRAM, Run, SEGMENTS_MAX, cache_dir,
};
use seekwell_lab::conduct::{Job, Measured, NoRun, Runner};
use seekwell_sim::limits;
use std::path::PathBuf;
use std::time::Duration;

/// The largest request of the kernel without a limit of the device, in KiB
/// (`BLK_DEF_MAX_SECTORS_CAP`, 6.12).
pub const KERNEL_MAX_KB: u32 = 1280;
/// The command of the guest.
pub const INSIDE: [&str; 3] = [PROGRAM, "guest", "inside"];
/// The environment variable with the specification in JSON.
pub const INSIDE_SPEC: &str = "SEEKWELL_GUEST_SPEC";
/// The mark that is written when the clock of the record starts.
pub const INSIDE_STARTED: u64 = 1;

/// Schedulers of a kernel, if the user names none.
pub const SCHEDULERS: &str = "none,mq-deadline,kyber,bfq";
/// Memory of a guest, if the machine states none.
const MEMORY_BYTES: u64 = 512 << 20;
/// Most real time of a run.
const WALL_LIMIT: Duration = Duration::from_secs(1800);
/// Most virtual time of a run without a limit of its own.
const TIME_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// Makes runs in guests.
pub struct Guests {
    kernel: Kernel,
    segments: Option<u32>,
    program: PathBuf,
}

impl Guests {
    /// Returns a runner with a kernel of the cache; `None` for the newest.
    pub fn new(kernel: Option<&str>) -> Result<Self, Failure> {
        let cache = cache_dir().map_err(failed)?;
        let program = std::env::current_exe();
        Ok(Guests {
            segments: None,
            kernel: Kernel::find(&cache, kernel).map_err(failed)?,
            program: program.map_err(|e| {
                Failure::input(format!("this program cannot find its own file: {e}"))
            })?,
        })
    }
    /// Gives the disks a longest scatter list, instead of the one of the usual driver.
    pub fn with_segments(mut self, segments: u32) -> Self {
        self.segments = Some(segments);
        self
    }
    /// Returns the name of the kernel.
    pub fn name(&self) -> &str {
        &self.kernel.name
    }
    /// Returns the limitation that every result has.
    pub fn note(&self) -> String {
        format!(
            "Linux {} on virtual time over a modelled disk: the file system, the block layer and \
             the schedulers are real. The guest has one CPU, and code takes no time.",
            self.kernel.name
        )
    }

    /// Runs a specification. Returns its record with the figures of the disk.
    ///
    /// # Errors
    /// The reason why there is no record.
    pub fn record(&self, spec: &RunSpec, cancel: &Cancel) -> Result<(Record, Outcome), String> {
        let run = self.guest(spec, cancel).map_err(|e| e.to_string())?;
        let done = run.execute(&self.program);
        let done = done.map_err(|e: GuestError| e.to_string())?;
        if done.exit != 0 {
            let text = String::from_utf8_lossy(&done.stderr);
            let last = text.lines().rev().find(|l| !l.trim().is_empty());
            let last = last.map_or("the guest gave no reason", str::trim);
            return Err(last.strip_prefix("error: ").unwrap_or(last).to_owned());
        }
        let read: Result<Record, _> = serde_json::from_slice(&done.stdout);
        let mut record =
            read.map_err(|e| format!("the record of the guest cannot be read: {e}"))?;
        self.fill(&mut record, spec, &done);
        Ok((record, done))
    }

    fn guest(&self, spec: &RunSpec, cancel: &Cancel) -> Result<Run, Failure> {
        let bad = |e: serde_json::Error| Failure::input(e.to_string());
        let device = seekwell_device::with_files(&spec.device.files, || {
            seekwell_device::open(&spec.device.spec, spec.run_seed())
        });
        let device = device.map_err(|e| Failure::input(e.to_string()))?;
        let machine = spec.machine.clone().unwrap_or_default();
        let mut writes = queue_writes(0, device.facts());
        writes.extend(settings(&spec.queue, &machine));
        for (name, value) in &spec.scheduler.tunables {
            let own = is_queue_attribute(name);
            let dir = if own { "" } else { "iosched/" };
            writes.push((format!("{dir}{name}"), value.clone()));
        }
        let fs = machine.fs.as_deref().unwrap_or("ext4");
        Ok(Run {
            kernel: self.kernel.clone(),
            segments: self.segments.unwrap_or_else(|| segments(device.facts())),
            disks: vec![device],
            scheduler: spec.scheduler.name.clone(),
            writes,
            file_system: Some(fs.parse().map_err(failed)?),
            mount_options: mount_options(&machine, fs),
            memory_bytes: machine.memory_bytes.unwrap_or(MEMORY_BYTES),
            seed: spec.run_seed(),
            command: INSIDE.iter().map(|w| (*w).to_owned()).collect(),
            environment: vec![(
                INSIDE_SPEC.to_owned(),
                serde_json::to_string(spec).map_err(bad)?,
            )],
            visible: Vec::new(),
            depth: spec.queue.depth,
            stop: Some(cancel.flag()),
            wall_limit: WALL_LIMIT,
            time_limit: spec
                .limit_s
                .map_or(TIME_LIMIT, |s| Duration::from_secs(s) * 2 + TIME_LIMIT / 24),
        })
    }

    /// Adds what the controller knows: the device, the kernel, and the requests of the measured
    /// time.
    fn fill(&self, record: &mut Record, spec: &RunSpec, done: &Outcome) {
        spec.substrate.name().clone_into(&mut record.substrate);
        record.host = None;
        record.seed = spec.run_seed();
        (record.spec_hash, record.spec) = (spec.hash(), Some(spec.clone()));
        if let Ok(device) = seekwell_device::with_files(&spec.device.files, || {
            seekwell_device::open(&spec.device.spec, spec.run_seed())
        }) {
            let f = device.facts();
            record.device = DeviceInfo {
                spec: spec.device.spec.clone(),
                name: f.name.clone(),
                rotational: f.rotational,
                depth: f.depth,
                capacity_sectors: f.capacity.0,
            };
        }
        record.scheduler.kernel.clone_from(&self.kernel.name);
        "blk-mq".clone_into(&mut record.scheduler.layer);
        record.scheduler.spec = spec.scheduler_label();
        if let Some((from_ns, to_ns)) = window(record, done) {
            requests(record, &done.logs, from_ns, to_ns);
        }
    }
}

/// Returns the measured time of a record in the guest's virtual time.
pub fn window(record: &Record, done: &Outcome) -> Option<(u64, u64)> {
    let began = done.marks.iter().find(|m| m.value == INSIDE_STARTED)?;
    let (from, to) = record.window_ns();
    Some((began.at_ns + from, began.at_ns + to))
}

/// Counts the requests that a device completed within a time.
fn requests(record: &mut Record, logs: &[Vec<LogEntry>], from_ns: u64, to_ns: u64) {
    (record.read, record.write) = Default::default();
    (record.requests, record.device_busy_ns, record.depth_mean) = (0, 0, 0.0);
    let (mut weighted_ns, mut busy_until) = (0u64, from_ns);
    for e in logs.iter().flatten() {
        let Some(done_ns) = e.complete_ns else {
            continue;
        };
        let (a, b) = (e.arrive_ns.max(from_ns), done_ns.min(to_ns));
        if a < b {
            weighted_ns += b - a;
            record.device_busy_ns += b.saturating_sub(a.max(busy_until));
            busy_until = busy_until.max(b);
        }
        if !(from_ns..=to_ns).contains(&done_ns) {
            continue;
        }
        record.requests += 1;
        let kind = match e.op {
            Op::Read => &mut record.read,
            _ => &mut record.write,
        };
        if e.sectors == Sectors(0) {
            continue;
        }
        kind.ios += 1;
        kind.bytes += e.sectors.bytes();
        kind.errors += u64::from(e.error);
        kind.latency.record(done_ns - e.arrive_ns);
    }
    if to_ns > from_ns {
        record.depth_mean = weighted_ns as f64 / (to_ns - from_ns) as f64;
    }
}

/// Returns the settings of queue and machine as writes to files.
fn settings(q: &QueueSpec, m: &MachineSpec) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut set = |path: &str, value: Option<u64>| {
        all.extend(value.map(|v| (path.to_owned(), v.to_string())));
    };
    set("nr_requests", q.nr_requests.map(u64::from));
    set(
        "max_sectors_kb",
        q.max_sectors_kb.map(|kb| u64::from(kb.min(KERNEL_MAX_KB))),
    );
    set("nomerges", Some(u64::from(q.nomerges)).filter(|n| *n > 0));
    set("read_ahead_kb", m.read_ahead_kb.map(u64::from));
    set("/proc/sys/vm/dirty_ratio", m.dirty_ratio.map(u64::from));
    set(
        "/proc/sys/vm/dirty_background_ratio",
        m.dirty_background_ratio.map(u64::from),
    );
    set("/proc/sys/vm/dirty_bytes", m.dirty_bytes);
    set(
        "/proc/sys/vm/dirty_background_bytes",
        m.dirty_background_bytes,
    );
    set(
        "/proc/sys/vm/dirty_expire_centisecs",
        m.dirty_expire_centisecs.map(u64::from),
    );
    set(
        "/proc/sys/vm/dirty_writeback_centisecs",
        m.dirty_writeback_centisecs.map(u64::from),
    );
    all
}

fn mount_options(m: &MachineSpec, fs: &str) -> String {
    let mut all = Vec::new();
    if let Some(on) = m.barriers {
        all.push(match (fs, on) {
            ("ext4", true) => "barrier=1".to_owned(),
            ("ext4", false) => "barrier=0".to_owned(),
            (_, true) => String::new(),
            (_, false) => "nobarrier".to_owned(),
        });
    }
    all.extend(m.data.iter().map(|mode| format!("data={mode}")));
    all.extend(m.commit_s.filter(|s| *s > 0).map(|s| format!("commit={s}")));
    all.retain(|o| !o.is_empty());
    all.join(",")
}

impl Runner for Guests {
    fn run(
        &self,
        job: &Job,
        cancel: &Cancel,
        _told: &mut dyn FnMut(Progress),
    ) -> Result<Measured, NoRun> {
        if cancel.is_set() {
            return Err(NoRun::Cut("not begun".to_owned(), None));
        }
        match self.record(&job.spec, cancel) {
            Ok((record, _)) => Ok(Measured::from_record(record)),
            Err(why) if cancel.is_set() => Err(NoRun::Cut(why, None)),
            Err(why) => Err(NoRun::Failed(format!(
                "{} under {} on {}: {why}",
                job.spec.workload.name(),
                job.spec.scheduler_label(),
                job.spec.device.spec
            ))),
        }
    }
}

/// Converts an error of a guest.
pub fn failed(e: GuestError) -> Failure {
    Failure::input(e.to_string())
}

/// Returns whether the runs take place in guests.
pub fn is_asked(b: &Bench) -> bool {
    b.substrate == Substrate::Kernel
}

/// Returns the schedulers of a guest: the requested ones, or those of every kernel.
pub fn schedulers(b: &Bench) -> Result<Vec<words::TypedScheduler>, Failure> {
    let list = b.schedulers.as_deref().unwrap_or(SCHEDULERS);
    let mut typed = words::schedulers(list).map_err(|e| Failure::words("", &e))?;
    for t in &b.tunable {
        let prefix = format!("--tunable {t}: ");
        words::spread(t, &mut typed).map_err(|e| Failure::words(&prefix, &e))?;
    }
    for t in &mut typed {
        t.spec.version = None;
    }
    Ok(typed)
}

/// Returns the writes that give the queue of disk `i` the properties of its device.
pub fn queue_writes(i: usize, f: &DeviceFacts) -> Vec<(String, String)> {
    let queue = format!(
        "/sys/block/vd{}/queue",
        char::from(b'a' + (i as u8).min(25))
    );
    let rotational = u8::from(f.rotational).to_string();
    let mut all = vec![(format!("{queue}/rotational"), rotational)];
    let kb = f.max_sectors.0 / 2;
    if kb < KERNEL_MAX_KB {
        all.push((format!("{queue}/max_sectors_kb"), kb.to_string()));
    }
    all
}

/// Returns the length of the scatter list that the usual driver of a device has.
pub fn segments(f: &DeviceFacts) -> u32 {
    limits::segments(f).unwrap_or(SEGMENTS_MAX)
}

/// Returns whether a setting is an attribute of the queue, and not of its scheduler.
pub fn is_queue_attribute(name: &str) -> bool {
    [
        "wbt_lat_usec",
        "nr_requests",
        "read_ahead_kb",
        "max_sectors_kb",
        "nomerges",
        "rotational",
    ]
    .contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_core::Sector;

    fn entry(arrive_ns: u64, complete_ns: u64, op: Op, sectors: u32) -> LogEntry {
        LogEntry {
            arrive_ns,
            complete_ns: Some(complete_ns),
            op,
            sector: Sector(0),
            sectors: Sectors(sectors),
            error: false,
        }
    }

    #[test]
    fn only_requests_that_complete_in_the_measured_time_are_counted() {
        let log = vec![
            entry(0, 90, Op::Write, 8),
            entry(80, 150, Op::Read, 8),
            entry(120, 180, Op::Write, 16),
            entry(180, 190, Op::Flush, 0),
            entry(195, 250, Op::Write, 8),
        ];
        let mut record = Record::default();
        requests(&mut record, &[log], 100, 200);
        assert_eq!(
            (record.requests, record.read.ios, record.write.ios),
            (3, 1, 1)
        );
        assert_eq!((record.read.bytes, record.write.bytes), (4096, 8192));
        // Busy from 100 to 190 and from 195 to 200.
        assert_eq!(record.device_busy_ns, 95);
        assert_eq!(record.depth_mean, f64::from(50 + 60 + 10 + 5) / 100.0);
    }

    #[test]
    fn machine_and_queue_become_writes_and_mount_options() {
        let machine = MachineSpec {
            barriers: Some(false),
            data: Some("writeback".to_owned()),
            commit_s: Some(1),
            dirty_ratio: Some(5),
            read_ahead_kb: Some(64),
            ..MachineSpec::default()
        };
        assert_eq!(
            mount_options(&machine, "ext4"),
            "barrier=0,data=writeback,commit=1"
        );
        assert_eq!(mount_options(&MachineSpec::default(), "xfs"), "");
        let queue = QueueSpec {
            nr_requests: Some(16),
            max_sectors_kb: Some(4096),
            ..QueueSpec::default()
        };
        let all = settings(&queue, &machine);
        let has = |path: &str, value: &str| all.contains(&(path.to_owned(), value.to_owned()));
        assert!(has("nr_requests", "16") && has("max_sectors_kb", "1280"));
        assert!(has("read_ahead_kb", "64") && has("/proc/sys/vm/dirty_ratio", "5"));
        assert_eq!(all.len(), 4);
    }
}
