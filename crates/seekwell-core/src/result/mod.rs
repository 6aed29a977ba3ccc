//! The result record: all kinds of runs write it; all reports, comparisons and imports read it.
//!
//! A record holds only what the run itself produced. It contains no wall-clock time and no number
//! of threads, so that equal runs give equal bytes.

mod latency;
mod starved;

pub use latency::Latency;
pub use starved::{Starved, starved};

pub use crate::seconds::{SECONDS_MAX, Second};
use crate::spec::RunSpec;
use crate::time::{Instant, NSEC_PER_SEC};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of this layout; raised when a field changes its meaning.
///
/// 2: the record embeds the specification of its run and the hash of it, says when and why the run
/// ended early, and names the host and the build. Records of schema 1 are still read.
pub const SCHEMA: u32 = 2;

/// The build that made a record: the value of the variable `SEEKWELL_BUILD` at build time, or the
/// profile.
pub const BUILD: &str = match option_env!("SEEKWELL_BUILD") {
    Some(said) => said,
    None if cfg!(debug_assertions) => "debug",
    None => "release",
};

/// Results of one data direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Direction {
    /// Number of completed bios.
    pub ios: u64,
    /// Bytes of these bios.
    pub bytes: u64,
    /// Number of these bios that failed.
    pub errors: u64,
    /// Latency up to the completion. It starts when the program would have submitted the bio if it
    /// had not slept for a request. So it includes waiting for a request or tag, also for an
    /// earlier bio of the same call. The kernel's own threads have no such earlier time.
    pub latency: Latency,
    /// The part of the sum of latencies before the block layer got the bio, ns: its submitter slept
    /// for the request of an earlier bio of the same call.
    #[serde(default)]
    pub held_ns: u64,
}

/// One process's share.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessShare {
    /// Task number (a pid in traces).
    pub task: u32,
    /// Name, if known.
    pub name: String,
    /// Bios completed.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// Mean latency, ns.
    pub mean_latency_ns: f64,
}

/// The main figure of a workload.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Metric {
    /// Its name ("sequential read", "seeks").
    pub name: String,
    /// Unit.
    pub unit: String,
    /// Value.
    pub value: f64,
    /// Larger is better.
    pub higher_is_better: bool,
    /// Kind of the operations that it counts or averages; empty if not stated. Several kinds are
    /// separated by ", ".
    #[serde(default)]
    pub operation: String,
    /// Number of operations behind the value; 0 if unknown.
    #[serde(default)]
    pub n: u64,
}

/// One second in the series of an operation, by the end of the operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpSecond {
    /// Operations that ended in this second.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Sum of their latencies, ns.
    pub latency_sum_ns: u64,
    /// The largest of their latencies, ns.
    pub latency_max_ns: u64,
    /// Sum of the squared latencies, in square microseconds.
    #[serde(default)]
    pub latency_square_us2: u64,
}

impl OpSecond {
    /// Counts one operation with this latency.
    #[inline]
    pub fn count(&mut self, ns: u64, bytes: u64) {
        self.ops += 1;
        self.bytes += bytes;
        self.latency_sum_ns += ns;
        self.latency_max_ns = self.latency_max_ns.max(ns);
        let us = ns / 1000;
        self.latency_square_us2 = self
            .latency_square_us2
            .saturating_add(us.saturating_mul(us));
    }
    /// Mean latency and its sample standard deviation, ns. The deviation has a resolution of one
    /// microsecond and is 0 for fewer than two operations.
    pub fn latency_ns(&self) -> (f64, f64) {
        let n = self.ops as f64;
        let mean = self.latency_sum_ns as f64 / n.max(1.0);
        let us = mean / 1000.0;
        let variance = (self.latency_square_us2 as f64 - n * us * us) / (n - 1.0).max(1.0);
        let sd = if self.ops < 2 {
            0.0
        } else {
            variance.max(0.0).sqrt() * 1000.0
        };
        (mean, sd)
    }
}

/// A workload's operations of one kind ("fsync", "transaction").
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Operation {
    /// The kind, as the script names it.
    pub kind: String,
    /// Bytes moved by all operations.
    pub bytes: u64,
    /// Latency from begin to end.
    pub latency: Latency,
    /// Second by second from the start of the run; the series ends with the last operation.
    pub seconds: Vec<OpSecond>,
    /// Begin of the first operation, ns since the run began.
    #[serde(default)]
    pub began_ns: u64,
    /// End of the last operation.
    #[serde(default)]
    pub ended_ns: u64,
}

impl Operation {
    /// `x` per second from the first operation's begin to the last one's end. Work before and after
    /// (file layout, removal) does not dilute the rate.
    pub fn rate(&self, x: f64) -> f64 {
        let ns = self.ended_ns.saturating_sub(self.began_ns);
        if ns == 0 {
            0.0
        } else {
            x * NSEC_PER_SEC as f64 / ns as f64
        }
    }
    /// Standard deviation of operations per second over the whole seconds between the first
    /// operation's begin and the last one's end; `None` for fewer than two seconds.
    pub fn deviation(&self) -> Option<f64> {
        let from = self.began_ns.div_ceil(NSEC_PER_SEC) as usize;
        let to = (self.ended_ns / NSEC_PER_SEC) as usize;
        (to >= from + 2).then(|| self.mean_and_deviation(from..to).1)
    }
    fn mean_and_deviation(&self, seconds: std::ops::Range<usize>) -> (f64, f64) {
        let n = seconds.len() as f64;
        let of = |s: usize| self.seconds.get(s).map_or(0.0, |s| s.ops as f64);
        let mean = seconds.clone().map(of).sum::<f64>() / n.max(1.0);
        let square = |s: usize| (of(s) - mean) * (of(s) - mean);
        let variance = seconds.map(square).sum::<f64>() / (n - 1.0).max(1.0);
        // The IEEE square root, which is the same on all platforms.
        (mean, variance.sqrt())
    }
    /// Mean and standard deviation of operations per second over the first `seconds` of the run.
    /// Seconds without operations count as 0. The deviation of fewer than two seconds is 0.
    pub fn per_second(&self, seconds: usize) -> (f64, f64) {
        self.mean_and_deviation(0..seconds)
    }
}

/// An event at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkAt {
    /// Time since the run began, ns.
    pub at_ns: u64,
    /// The event ("checkpoint start").
    pub name: String,
    /// The task.
    pub task: String,
}

/// One task's share of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPart {
    /// Path of names from the first task down: "main/worker3".
    pub path: String,
    /// Begin, ns since the run began.
    pub began_ns: u64,
    /// End, ns since the run began.
    pub ended_ns: u64,
    /// Number of operations it counted.
    pub ops: u64,
    /// Number of read calls.
    pub reads: u64,
    /// Bytes they read.
    pub read_bytes: u64,
    /// Number of write calls.
    pub writes: u64,
    /// Bytes they wrote.
    pub written_bytes: u64,
    /// I/O priority and cgroup, if set: "BE7", "IDLE, cgroup 2". Empty if neither is set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub priority: String,
}

/// The device of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// As requested.
    pub spec: String,
    /// Model name.
    pub name: String,
    /// Whether the medium rotates.
    pub rotational: bool,
    /// Number of commands at once.
    pub depth: u32,
    /// Capacity in sectors.
    pub capacity_sectors: u64,
}

/// The scheduler of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SchedulerUsed {
    /// As requested.
    pub spec: String,
    /// Kernel name.
    pub name: String,
    /// Version of it.
    pub version: String,
    /// "single-queue" or "blk-mq".
    pub layer: String,
    /// Kernel generation of the layer.
    pub kernel: String,
    /// All tunables as read back after the run.
    pub tunables: BTreeMap<String, String>,
}

/// The queue between scheduler and device, with the limits in force during the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueUsed {
    /// queue/max_sectors_kb, KiB.
    pub max_sectors_kb: u32,
    /// queue/max_segments, entries of the driver's scatter list; `None` if the list is as long as
    /// the largest request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_segments: Option<u32>,
    /// The largest request that both limits allow, KiB, if memory is in single pages; `None` if it
    /// depends on the layout of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_kb: Option<u32>,
    /// queue/nr_requests.
    pub nr_requests: u32,
    /// queue/read_ahead_kb, KiB; `None` if there is no read-ahead (a replay).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_kb: Option<u32>,
    /// Commands that the driver takes at once, for each hardware queue.
    pub depth: u32,
    /// Number of hardware queues in use.
    pub hw_queues: u32,
}

/// A run that ended early.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Early {
    /// The reason in words: a failure, a limit, a signal.
    pub why: String,
    /// The time, ns since the run began.
    pub at_ns: u64,
    /// The run reached its limit before the workload's clock stopped. The work would have taken
    /// longer and the values are those of an unfinished run: the run is censored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limit: bool,
}

/// The machine of a run on a host. Simulated runs have none, because they do not depend on the
/// machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// Model name of the CPU; the first one if there are several kinds.
    pub cpu: String,
    /// Number of online cores.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Type of the file system ("ext4"); empty on a raw device.
    pub fs: String,
    /// Its mount options.
    pub mount_options: String,
}

/// A run on a drive that earlier runs have used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Number of earlier runs.
    pub place: u32,
    /// [`Record::spec_hash`] of the last earlier run; it stands for all of them.
    pub after: String,
    /// Idle time since that run, ns.
    pub pause_ns: u64,
    /// All data on the drive was discarded.
    pub trim: bool,
}

/// A program next to the measured one: its results while the measured program's clock ran.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BesidePart {
    /// Path of its first task: "beside/streams".
    pub name: String,
    /// Its workload.
    pub workload: String,
    /// The workload's parameters.
    pub params: BTreeMap<String, String>,
    /// How often it was started.
    pub rounds: u32,
    /// Its end, ns since the run began; `None` if it ended with the measured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<u64>,
    /// Its own metrics, if it was started once and ran to its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Its operations, by kind.
    pub operations: Vec<Operation>,
    /// Its tasks, in the order of their begins.
    pub tasks: Vec<TaskPart>,
}

/// A whole run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of Seekwell.
    pub seekwell: String,
    /// [`BUILD`] of Seekwell.
    #[serde(default)]
    pub build: String,
    /// The whole specification, from which the run can be repeated. `None` before schema 2 and for
    /// demos.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<RunSpec>,
    /// [`RunSpec::hash`] of the specification, or [`RunSpec::hash_after`] on a carried drive: the
    /// key in result stores.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spec_hash: String,
    /// The drive kept its state from an earlier run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
    /// When and why the run ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early: Option<Early>,
    /// The host, for a run on real hardware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// "sim", "serve", "host" or "import".
    pub substrate: String,
    /// The workload.
    pub workload: String,
    /// Its parameters, replay mode included.
    pub params: BTreeMap<String, String>,
    /// The device.
    pub device: DeviceInfo,
    /// The scheduler.
    pub scheduler: SchedulerUsed,
    /// The queue; for an array, the queue of its first member. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueUsed>,
    /// Ticks per second.
    pub hz: u32,
    /// Seed of every random stream.
    pub seed: u64,
    /// Time from the first submission to the last completion, ns, including file layout and
    /// removal.
    pub duration_ns: u64,
    /// Start of the workload's clock, ns since the run began. All figures here count from then
    /// until the clock stops, except [`Record::seconds`], the seconds of operations and the marks,
    /// which cover the whole run. `None` if there is no clock or the run ended before the start;
    /// then all figures cover the whole run.
    #[serde(default)]
    pub clock_start_ns: Option<u64>,
    /// Stop of that clock, ns; `None` if it stopped with the run, or if there is no clock.
    #[serde(default)]
    pub clock_stop_ns: Option<u64>,
    /// The workload's own metric.
    pub metric: Option<Metric>,
    /// Reads.
    pub read: Direction,
    /// Writes, discards and flushes with data.
    pub write: Direction,
    /// Requests issued to the device.
    pub requests: u64,
    /// Bios merged at the end of a request.
    pub back_merges: u64,
    /// Bios merged at the start.
    pub front_merges: u64,
    /// Requests joined with a neighbour.
    pub joins: u64,
    /// Bios that waited for a request or tag.
    pub waits: u64,
    /// Mean distance between one issued request and the next, sectors.
    pub mean_seek_sectors: f64,
    /// Tasks paid CPU time for the scheduler's work. False in four cases: records from versions
    /// without this model, hard disks (whose requests take a thousand times as long), md arrays,
    /// and replays, which no task submits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduler_charged: bool,
    /// Time the device was busy, ns.
    pub device_busy_ns: u64,
    /// Mean number of requests in the device.
    pub depth_mean: f64,
    /// Mean number of bios submitted and not completed, counted from the program's submission.
    pub outstanding_mean: f64,
    /// Largest number of uncompleted bios in the block layer.
    pub outstanding_max: u64,
    /// Processes by bytes, the largest first.
    pub processes: Vec<ProcessShare>,
    /// Second by second, without seconds in which nothing completed, so that a pause of years costs
    /// nothing. The series ends after [`SECONDS_MAX`] entries.
    pub seconds: Vec<Second>,
    /// The workload's operations, by kind.
    #[serde(default)]
    pub operations: Vec<Operation>,
    /// Events with their times.
    #[serde(default)]
    pub marks: Vec<MarkAt>,
    /// Further metrics.
    #[serde(default)]
    pub more_metrics: Vec<Metric>,
    /// The workload's tasks, in the order of their begins.
    #[serde(default)]
    pub tasks: Vec<TaskPart>,
    /// The other programs' results meanwhile, in the order of the specification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BesidePart>,
    /// Kinds of tasks of which some were starved by others of the same kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starved: Vec<Starved>,
    /// Notes for the interpretation of the record.
    pub warnings: Vec<String>,
}

impl Record {
    /// The operations of a kind.
    pub fn operation(&self, kind: &str) -> Option<&Operation> {
        self.operations.iter().find(|o| o.kind == kind)
    }
    /// Bytes per second.
    pub fn bytes_per_sec(&self) -> f64 {
        self.rate((self.read.bytes + self.write.bytes) as f64)
    }
    /// Bios per second.
    pub fn iops(&self) -> f64 {
        self.rate((self.read.ios + self.write.ios) as f64)
    }
    /// The interval that the figures cover, ns since the run began: from start to stop of the
    /// clock, or the whole run.
    pub fn window_ns(&self) -> (u64, u64) {
        match self.clock_start_ns {
            Some(from) => (
                from,
                self.clock_stop_ns.unwrap_or(self.duration_ns).max(from),
            ),
            None => (0, self.duration_ns),
        }
    }
    /// Whether the run reached its limit: its work takes longer than [`Record::span_ns`].
    pub fn censored(&self) -> bool {
        self.early.as_ref().is_some_and(|e| e.limit)
    }
    /// Length of the interval that the figures cover, ns.
    pub fn span_ns(&self) -> u64 {
        let (from, to) = self.window_ns();
        to - from
    }
    /// `x` per second of that interval.
    pub fn rate(&self, x: f64) -> f64 {
        match self.span_ns() {
            0 => 0.0,
            ns => x * NSEC_PER_SEC as f64 / ns as f64,
        }
    }
    /// Share of that interval in which the device was busy, 0..=1.
    pub fn busy(&self) -> f64 {
        self.rate(self.device_busy_ns as f64 / NSEC_PER_SEC as f64)
            .min(1.0)
    }
    /// Counts a completed bio; `asked` is the time of the program's submission.
    pub fn count(&mut self, write: bool, bytes: u64, asked: Instant, done: Instant, ok: bool) {
        let ns = done.since(asked).0;
        let d = if write {
            &mut self.write
        } else {
            &mut self.read
        };
        d.ios += 1;
        d.bytes += bytes;
        d.errors += u64::from(!ok);
        d.latency.record(ns);
        self.count_second(write, bytes, asked, done);
    }
    /// Counts a completed bio in the series only, because it ended outside the clock.
    pub fn count_second(&mut self, write: bool, bytes: u64, asked: Instant, done: Instant) {
        let ns = done.since(asked).0;
        let at_s = done.since_start() / NSEC_PER_SEC;
        let Some(sec) = Second::of(&mut self.seconds, at_s) else {
            return;
        };
        if write {
            sec.writes += 1;
        } else {
            sec.reads += 1;
        }
        sec.bytes += bytes;
        sec.latency_sum_ns += ns;
        sec.latency_max_ns = sec.latency_max_ns.max(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_merges_and_keeps_exact_mean_and_extremes() {
        let (mut a, mut b) = (Latency::default(), Latency::default());
        for ns in [1_000, 2_000, 3_000] {
            a.record(ns);
        }
        b.record(1_000_000_007);
        a.merge(&b);
        assert_eq!(a.count(), 4);
        assert_eq!(a.max_ns(), 1_000_000_007);
        assert_eq!(a.min_ns(), 1_000);
        assert!((a.mean_ns() - 250_001_501.75).abs() < 1e-6);
        assert!(a.percentile_ns(50.0).abs_diff(2_000) < 4);
        assert_eq!(a.percentile_ns(100.0), 1_000_000_007);
    }

    #[test]
    fn a_second_has_mean_and_sample_deviation() {
        let mut s = OpSecond::default();
        for ms in [2, 4, 6] {
            s.count(ms * 1_000_000, 10);
        }
        let (mean, sd) = s.latency_ns();
        assert!(
            (mean - 4e6).abs() < 1.0 && (sd - 2e6).abs() < 1e3,
            "{mean} {sd}"
        );
        let mut one = OpSecond::default();
        one.count(5_000_999, 0);
        assert_eq!(one.latency_ns(), (5_000_999.0, 0.0));
    }
}
