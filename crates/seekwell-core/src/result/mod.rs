//! The result record of one run. Simulations, replays and runs on a host write it. Reports and
//! comparisons read it.
//!
//! A record contains only results of the run itself. It contains no wall-clock time and no number
//! of threads, so that equal runs give equal bytes.

mod latency;
mod starved;

pub use latency::Latency;
pub use starved::{Starved, starved};

pub use crate::seconds::{SECONDS_MAX, Second};
pub use crate::spec::Carried;
use crate::spec::RunSpec;
use crate::time::{Instant, NSEC_PER_SEC};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the layout. It is incremented when a field changes its meaning.
///
/// Version 2 added the specification of the run and its hash, when and why the run ended early, the
/// host, and the build. Records of version 1 can still be read.
pub const SCHEMA: u32 = 2;

/// The build of Seekwell that made a record: the value of the variable `SEEKWELL_BUILD` at build
/// time, or else the build profile.
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
    /// Number of bytes of these bios.
    pub bytes: u64,
    /// Number of these bios that failed.
    pub errors: u64,
    /// Latency up to the completion. It starts when the program would have submitted the bio if it
    /// had not slept for a request. So it includes the wait for a request or tag, even the wait of
    /// an earlier bio of the same call. For the kernel's own threads it starts at the submission.
    pub latency: Latency,
    /// The part of the sum of latencies in which the submitter slept because an earlier bio of the
    /// same call waited for a request, ns. During that time, the block layer did not have the bio.
    #[serde(default)]
    pub held_ns: u64,
}

/// The part of one process in the results.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessShare {
    /// Number of the task (a pid in traces).
    pub task: u32,
    /// Name, if known.
    pub name: String,
    /// Number of bios completed.
    pub ios: u64,
    /// Number of bytes completed.
    pub bytes: u64,
    /// Mean latency, ns.
    pub mean_latency_ns: f64,
}

/// A value that a workload measures.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Metric {
    /// Name of the value ("sequential read", "seeks").
    pub name: String,
    /// Unit of the value.
    pub unit: String,
    /// The value.
    pub value: f64,
    /// True if a larger value is better.
    pub higher_is_better: bool,
    /// Kind of the operations that the value counts or averages. Several kinds are separated by ",
    /// ". Empty if not stated.
    #[serde(default)]
    pub operation: String,
    /// Number of operations from which the value is computed; 0 if unknown.
    #[serde(default)]
    pub n: u64,
}

/// Results of one kind of operation in one second of a run. Each operation is counted in the second
/// in which it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpSecond {
    /// Number of operations that ended in this second.
    pub ops: u64,
    /// Number of bytes of these operations.
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
    /// Returns the mean latency and its sample standard deviation, ns. The deviation is exact to
    /// one microsecond. It is 0 for fewer than two operations.
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

/// All operations of one kind in a workload ("fsync", "transaction").
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Operation {
    /// The kind, as the script calls it.
    pub kind: String,
    /// Number of bytes of all operations.
    pub bytes: u64,
    /// Latency from the start to the end of each operation.
    pub latency: Latency,
    /// One entry per second from the start of the run. The last entry is the second in which the
    /// last operation ended.
    pub seconds: Vec<OpSecond>,
    /// Start of the first operation, ns since the run began.
    #[serde(default)]
    pub began_ns: u64,
    /// End of the last operation, ns since the run began.
    #[serde(default)]
    pub ended_ns: u64,
}

impl Operation {
    /// Returns `x` per second, from the start of the first operation to the end of the last one.
    /// Work before and after (file layout, removal) does not count.
    pub fn rate(&self, x: f64) -> f64 {
        let ns = self.ended_ns.saturating_sub(self.began_ns);
        if ns == 0 {
            0.0
        } else {
            x * NSEC_PER_SEC as f64 / ns as f64
        }
    }
    /// Returns the standard deviation of operations per second, over the whole seconds between the
    /// start of the first operation and the end of the last one. `None` for fewer than two seconds.
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
        // The square root of IEEE 754 is the same on all platforms.
        (mean, variance.sqrt())
    }
    /// Returns the mean and the standard deviation of operations per second over the first
    /// `seconds` of the run. Seconds without operations count as 0. For fewer than two seconds the
    /// deviation is 0.
    pub fn per_second(&self, seconds: usize) -> (f64, f64) {
        self.mean_and_deviation(0..seconds)
    }
}

/// A mark: an event of the workload at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkAt {
    /// Time since the run began, ns.
    pub at_ns: u64,
    /// Name of the event ("checkpoint start").
    pub name: String,
    /// Name of the task.
    pub task: String,
}

/// The part of one task in the results of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPart {
    /// Path of task names from the first task down: "main/worker3".
    pub path: String,
    /// Start of the task, ns since the run began.
    pub began_ns: u64,
    /// End of the task, ns since the run began.
    pub ended_ns: u64,
    /// Number of operations that the task counted.
    pub ops: u64,
    /// Number of read calls.
    pub reads: u64,
    /// Number of bytes that these calls read.
    pub read_bytes: u64,
    /// Number of write calls.
    pub writes: u64,
    /// Number of bytes that these calls wrote.
    pub written_bytes: u64,
    /// I/O priority and cgroup ("BE7", "IDLE, cgroup 2"). Empty if neither is set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub priority: String,
}

/// The device of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The device as requested.
    pub spec: String,
    /// Model name.
    pub name: String,
    /// True if the medium rotates.
    pub rotational: bool,
    /// Number of commands that the device takes at once.
    pub depth: u32,
    /// Capacity in sectors.
    pub capacity_sectors: u64,
}

/// The scheduler of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SchedulerUsed {
    /// The scheduler as requested.
    pub spec: String,
    /// The kernel's name of the scheduler.
    pub name: String,
    /// Version of the scheduler.
    pub version: String,
    /// Block layer: "single-queue" or "blk-mq".
    pub layer: String,
    /// Kernel generation of the block layer.
    pub kernel: String,
    /// All tunables, as read after the run.
    pub tunables: BTreeMap<String, String>,
}

/// Settings of the request queue of the device during the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueUsed {
    /// Value of queue/max_sectors_kb, KiB.
    pub max_sectors_kb: u32,
    /// Value of queue/max_segments, the number of entries of the driver's scatter list. `None` if
    /// the list is long enough for the largest request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_segments: Option<u32>,
    /// The largest request that both limits allow if no pages are contiguous in memory, KiB. `None`
    /// if it depends on the layout of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_kb: Option<u32>,
    /// Value of queue/nr_requests.
    pub nr_requests: u32,
    /// Value of queue/read_ahead_kb, KiB. `None` for a replay, which has no read-ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_kb: Option<u32>,
    /// Number of commands that the driver takes at once for each hardware queue.
    pub depth: u32,
    /// Number of hardware queues in use.
    pub hw_queues: u32,
}

/// A run that ended early.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Early {
    /// The reason in words: a failure, a limit, a signal.
    pub why: String,
    /// Time of the end, ns since the run began.
    pub at_ns: u64,
    /// True if the run reached its limit before the workload's clock stopped. Then the run is
    /// censored: the work takes longer than the run, and the values are those of unfinished work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limit: bool,
}

/// The machine of a run on a host. A simulated run has none, because its result does not depend on
/// the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// Model name of the first CPU.
    pub cpu: String,
    /// Number of cores that are online.
    pub cores: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Type of the file system ("ext4"); empty on a raw device.
    pub fs: String,
    /// Mount options of the file system.
    pub mount_options: String,
}

/// Results of a background program, while the clock of the measured program ran.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BackgroundPart {
    /// Path of the program's first task: "beside/streams".
    pub name: String,
    /// Workload of the program.
    pub workload: String,
    /// The workload's parameters.
    pub params: BTreeMap<String, String>,
    /// Number of times that the background program was started.
    pub rounds: u32,
    /// End of the background program, ns since the run began. `None` if it ended together with the
    /// measured program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<u64>,
    /// Metrics of the program, if it was started once and ran to its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Operations of the program, by kind.
    pub operations: Vec<Operation>,
    /// Tasks of the program, in the order in which they began.
    pub tasks: Vec<TaskPart>,
}

/// The results of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// Version of the layout, [`SCHEMA`].
    pub schema: u32,
    /// Version of Seekwell.
    pub seekwell: String,
    /// [`BUILD`] of Seekwell.
    #[serde(default)]
    pub build: String,
    /// The complete specification, from which the run can be repeated. `None` in records of schema
    /// 1 and in demos.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<RunSpec>,
    /// The key of the run in result stores: [`RunSpec::hash`], or [`RunSpec::hash_after`] if
    /// earlier runs have used the drive.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spec_hash: String,
    /// The history of the drive, if it kept its state from an earlier run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
    /// When and why the run ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early: Option<Early>,
    /// The host, for a run that is not simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// "sim", "serve", "host", "kernel" or "import".
    pub substrate: String,
    /// Name of the workload.
    pub workload: String,
    /// Parameters of the workload. They include the replay mode.
    pub params: BTreeMap<String, String>,
    /// The device.
    pub device: DeviceInfo,
    /// The scheduler.
    pub scheduler: SchedulerUsed,
    /// The queue. For an array: the queue of its first member. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueUsed>,
    /// Number of ticks per second.
    pub hz: u32,
    /// Seed of all random streams.
    pub seed: u64,
    /// Time from the first submission to the last completion, ns. It includes file layout and
    /// removal.
    pub duration_ns: u64,
    /// Start of the workload's clock, ns since the run began. The values of the record cover the
    /// time from the start to the stop of this clock. Only [`Record::seconds`],
    /// [`Operation::seconds`] and [`Record::marks`] cover the whole run. `None` if the workload has
    /// no clock, or if the run ended before the clock started. Then all values cover the whole run.
    #[serde(default)]
    pub clock_start_ns: Option<u64>,
    /// Stop of the workload's clock, ns since the run began. `None` if the clock stopped at the end
    /// of the run, or if there is no clock.
    #[serde(default)]
    pub clock_stop_ns: Option<u64>,
    /// The main metric of the workload.
    pub metric: Option<Metric>,
    /// Results of reads.
    pub read: Direction,
    /// Results of writes, discards and flushes with data.
    pub write: Direction,
    /// Number of requests issued to the device.
    pub requests: u64,
    /// Number of bios merged at the end of a request.
    pub back_merges: u64,
    /// Number of bios merged at the front of a request.
    pub front_merges: u64,
    /// Number of times that two adjacent requests were merged into one.
    pub joins: u64,
    /// Number of bios that waited for a request or tag.
    pub waits: u64,
    /// Mean distance from one issued request to the next, sectors.
    pub mean_seek_sectors: f64,
    /// True if the simulation charged the tasks for the CPU time of the scheduler's work. It does
    /// not charge them on an md array, nor on a hard disk, where a request takes about a thousand
    /// times as long as that work. A replay has no tasks that could be charged. The field is also
    /// false in results of program versions without this feature, and if the machine leaves out
    /// this cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduler_charged: bool,
    /// Time in which the device was busy, ns.
    pub device_busy_ns: u64,
    /// Mean number of requests that were in the device.
    pub depth_mean: f64,
    /// Mean number of bios that were submitted and not yet completed. A bio counts from the time at
    /// which the program submitted it.
    pub outstanding_mean: f64,
    /// Largest number of bios that were in the block layer at once.
    pub outstanding_max: u64,
    /// Results of each process. The process with the most bytes comes first.
    pub processes: Vec<ProcessShare>,
    /// Results of each second. Seconds without a completion are left out, so that a pause of years
    /// needs no space. The series ends after [`SECONDS_MAX`] entries.
    pub seconds: Vec<Second>,
    /// Operations of the workload, by kind.
    #[serde(default)]
    pub operations: Vec<Operation>,
    /// Marks: events of the workload, with their times.
    #[serde(default)]
    pub marks: Vec<MarkAt>,
    /// Further metrics of the workload.
    #[serde(default)]
    pub more_metrics: Vec<Metric>,
    /// Tasks of the workload, in the order in which they began.
    #[serde(default)]
    pub tasks: Vec<TaskPart>,
    /// Results of the background programs, in the order of the specification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BackgroundPart>,
    /// Kinds of tasks in which some tasks were starved by others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starved: Vec<Starved>,
    /// Notes that are needed to interpret the record.
    pub warnings: Vec<String>,
}

impl Record {
    /// Returns the operations of a kind.
    pub fn operation(&self, kind: &str) -> Option<&Operation> {
        self.operations.iter().find(|o| o.kind == kind)
    }
    /// Returns the number of bytes per second.
    pub fn bytes_per_sec(&self) -> f64 {
        self.rate((self.read.bytes + self.write.bytes) as f64)
    }
    /// Returns the number of bios per second.
    pub fn iops(&self) -> f64 {
        self.rate((self.read.ios + self.write.ios) as f64)
    }
    /// Returns the interval that the values cover, ns since the run began: from start to stop of
    /// the clock, or the whole run.
    pub fn window_ns(&self) -> (u64, u64) {
        match self.clock_start_ns {
            Some(from) => (
                from,
                self.clock_stop_ns.unwrap_or(self.duration_ns).max(from),
            ),
            None => (0, self.duration_ns),
        }
    }
    /// Returns true if the run reached its limit, so that its work takes longer than
    /// [`Record::span_ns`].
    pub fn censored(&self) -> bool {
        self.early.as_ref().is_some_and(|e| e.limit)
    }
    /// Returns the length of the interval that the values cover, ns.
    pub fn span_ns(&self) -> u64 {
        let (from, to) = self.window_ns();
        to - from
    }
    /// Returns `x` per second of that interval.
    pub fn rate(&self, x: f64) -> f64 {
        match self.span_ns() {
            0 => 0.0,
            ns => x * NSEC_PER_SEC as f64 / ns as f64,
        }
    }
    /// Returns the fraction of that interval in which the device was busy, 0..=1.
    pub fn busy(&self) -> f64 {
        self.rate(self.device_busy_ns as f64 / NSEC_PER_SEC as f64)
            .min(1.0)
    }
    /// Counts a completed bio. `asked` is the time at which the program submitted it.
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
    /// Counts a completed bio only in [`Record::seconds`]. This is for a bio that completed while
    /// the workload's clock did not run.
    pub fn count_second(&mut self, write: bool, bytes: u64, asked: Instant, done: Instant) {
        let ns = done.since(asked).0;
        let at_s = done.since_start() / NSEC_PER_SEC;
        let Some(sec) = Second::entry(&mut self.seconds, at_s) else {
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
    fn merged_latency_has_exact_mean_and_extremes() {
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
    fn second_of_results_has_mean_and_sample_deviation() {
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
