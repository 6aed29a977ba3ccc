//! The one result record: every substrate fills it, every report, comparison and import reads it.
//!
//! A record holds only what the run itself produced; nothing of the wall clock or of the number of
//! threads is in it, so that equal runs give equal bytes.

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
/// 2: the record embeds the specification of its run with its hash, says when and why the run ended
/// early, what the host was, and which build made it. Records of schema 1 are read as they are.
pub const SCHEMA: u32 = 2;

/// Of which build a record is: what whoever built it said by the variable `SEEKWELL_BUILD`, or the
/// profile.
pub const BUILD: &str = match option_env!("SEEKWELL_BUILD") {
    Some(said) => said,
    None if cfg!(debug_assertions) => "debug",
    None => "release",
};

/// What one data direction did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Direction {
    /// Bios completed.
    pub ios: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Of them, failed.
    pub errors: u64,
    /// From when the program would have submitted, had it not been asleep for a request, to
    /// completion: waiting for a request or tag is part of it, also for one of an earlier bio of
    /// the same call. The kernel's own threads have nobody who asked earlier.
    pub latency: Latency,
    /// Of the sum of latencies, the time before the block layer was given the bio: its submitter
    /// slept for a request of an earlier bio of the same call, ns.
    #[serde(default)]
    pub held_ns: u64,
}

/// A process's part.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessShare {
    /// Task number (a pid in traces).
    pub task: u32,
    /// Name, where one is known.
    pub name: String,
    /// Bios completed.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// Mean latency, ns.
    pub mean_latency_ns: f64,
}

/// The number a workload is about.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Metric {
    /// What it is ("sequential read", "seeks").
    pub name: String,
    /// Unit.
    pub unit: String,
    /// Value.
    pub value: f64,
    /// Larger is better.
    pub higher_is_better: bool,
    /// Kind of the operations it counts or is the mean of; empty: not said. Several are separated
    /// by ", ".
    #[serde(default)]
    pub operation: String,
    /// How many of them stand behind the value; 0: not known.
    #[serde(default)]
    pub n: u64,
}

/// One second of an operation's series, by when operations ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpSecond {
    /// Operations that ended in it.
    pub ops: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Sum of their latencies, ns.
    pub latency_sum_ns: u64,
    /// Largest of them, ns.
    pub latency_max_ns: u64,
    /// Sum of their squares, in square microseconds.
    #[serde(default)]
    pub latency_square_us2: u64,
}

impl OpSecond {
    /// Counts one operation of that latency.
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
    /// Mean latency and its sample standard deviation, ns; the deviation is good to a microsecond
    /// and 0 for fewer than two operations.
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

/// What a workload did of one kind ("fsync", "transaction").
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Operation {
    /// Its kind, as the script names it.
    pub kind: String,
    /// Bytes moved by all.
    pub bytes: u64,
    /// From begin to end.
    pub latency: Latency,
    /// Second by second, from the start of the run; cut off behind the last one.
    pub seconds: Vec<OpSecond>,
    /// When the first began, since the run did, ns.
    #[serde(default)]
    pub began_ns: u64,
    /// When the last ended.
    #[serde(default)]
    pub ended_ns: u64,
}

impl Operation {
    /// `x` per second from the first one's begin to the last one's end: what was done before and
    /// after (laying files out, removing them) dilutes no rate.
    pub fn rate(&self, x: f64) -> f64 {
        let ns = self.ended_ns.saturating_sub(self.began_ns);
        if ns == 0 {
            0.0
        } else {
            x * NSEC_PER_SEC as f64 / ns as f64
        }
    }
    /// Standard deviation of operations a second over the whole seconds between the first one's
    /// begin and the last one's end; `None` of fewer than two.
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
        // The IEEE operation, the same everywhere.
        (mean, variance.sqrt())
    }
    /// Mean and standard deviation of operations a second over the first `seconds` of the run;
    /// seconds without any count as 0. The deviation of fewer than two seconds is 0.
    pub fn per_second(&self, seconds: usize) -> (f64, f64) {
        self.mean_and_deviation(0..seconds)
    }
}

/// Something that happened at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkAt {
    /// Since the run began, ns.
    pub at_ns: u64,
    /// What ("checkpoint start").
    pub name: String,
    /// Which task's.
    pub task: String,
}

/// A task's part in a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPart {
    /// Names from the first task down: "main/worker3".
    pub path: String,
    /// When it began, since the run did, ns.
    pub began_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// Operations it counted.
    pub ops: u64,
    /// Calls that read.
    pub reads: u64,
    /// Bytes they read.
    pub read_bytes: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// Bytes they wrote.
    pub written_bytes: u64,
    /// I/O priority and cgroup, where they were set: "BE7", "IDLE, cgroup 2". Empty: neither.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub priority: String,
}

/// Of what device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// As asked for.
    pub spec: String,
    /// Model name.
    pub name: String,
    /// Spinning?
    pub rotational: bool,
    /// Commands at once.
    pub depth: u32,
    /// Sectors.
    pub capacity_sectors: u64,
}

/// Under what scheduler.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SchedulerUsed {
    /// As asked for.
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

/// The queue between scheduler and device, with the limits that the run had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueUsed {
    /// queue/max_sectors_kb, KiB.
    pub max_sectors_kb: u32,
    /// queue/max_segments, entries of the driver's scatter list; `None`: as long as the largest
    /// request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_segments: Option<u32>,
    /// The largest request that both allow, KiB, where memory lies in single pages; `None`: it
    /// depends on how memory lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_kb: Option<u32>,
    /// queue/nr_requests.
    pub nr_requests: u32,
    /// queue/read_ahead_kb, KiB; `None`: nothing reads ahead (a replay).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_kb: Option<u32>,
    /// Commands that the driver takes at once; of several hardware queues each.
    pub depth: u32,
    /// Hardware queues in use.
    pub hw_queues: u32,
}

/// A run did not come to its own end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Early {
    /// Why, in words: a failure, a limit, a signal.
    pub why: String,
    /// When, since the run began, ns.
    pub at_ns: u64,
    /// The run reached its limit before the workload's clock stopped. Its work would have taken
    /// longer, and its values are those of an unfinished run: it is censored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limit: bool,
}

/// The machine that a run for real took place on. Of simulated runs there is none: they depend on
/// nothing outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// Model name of the CPU; of several kinds the first.
    pub cpu: String,
    /// Cores on line.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Type of the file system ("ext4"); empty on a raw device.
    pub fs: String,
    /// Its mount options.
    pub mount_options: String,
}

/// A run on a drive that went through others before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// How many runs it went through.
    pub place: u32,
    /// [`Record::spec_hash`] of the last of them, which stands for all.
    pub after: String,
    /// It was idle since then, ns.
    pub pause_ns: u64,
    /// Everything on it was discarded.
    pub trim: bool,
}

/// A program beside the measured one: what it did while the clock of that one ran.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BesidePart {
    /// Path of its first task: "beside/streams".
    pub name: String,
    /// Its workload.
    pub workload: String,
    /// The parameters of that.
    pub params: BTreeMap<String, String>,
    /// How often it was begun.
    pub rounds: u32,
    /// When it ended, since the run began, ns; `None`: with the measured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<u64>,
    /// Its own metrics, if it came to its end and was begun once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// What it did, by kind.
    pub operations: Vec<Operation>,
    /// Its tasks, in the order they began.
    pub tasks: Vec<TaskPart>,
}

/// A whole run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of Seekwell.
    pub seekwell: String,
    /// [`BUILD`] of it.
    #[serde(default)]
    pub build: String,
    /// The whole specification: with it the run can be made again. None before schema 2, and of
    /// demos.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<RunSpec>,
    /// [`RunSpec::hash`] of it, on a carried drive [`RunSpec::hash_after`]: the key of result
    /// stores.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spec_hash: String,
    /// The drive was as an earlier run left it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
    /// When and why it ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early: Option<Early>,
    /// What it ran on, for real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// "sim", "serve", "host" or "import".
    pub substrate: String,
    /// What ran.
    pub workload: String,
    /// Its parameters, replay mode included.
    pub params: BTreeMap<String, String>,
    /// On what.
    pub device: DeviceInfo,
    /// Under what.
    pub scheduler: SchedulerUsed,
    /// Through what queue; of an array, of its first member. `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueUsed>,
    /// Ticks a second.
    pub hz: u32,
    /// Seed of every random stream.
    pub seed: u64,
    /// From the first submission to the last completion, ns: laying out and removing included.
    pub duration_ns: u64,
    /// When the workload's clock started, since the run did, ns. From then until the clock stops
    /// everything here is counted, except [`Record::seconds`], the seconds of operations and the
    /// marks, which cover the whole run. `None`: it has no clock, or ended before it started, and
    /// everything covers the whole run.
    #[serde(default)]
    pub clock_start_ns: Option<u64>,
    /// When it stopped, ns; `None`: with the run, or without a clock.
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
    /// Tasks paid CPU time for what the scheduler did; not so in records of before that was
    /// modelled, on hard disks, whose requests take a thousand times as long, on arrays of md, and
    /// in replays, which no task submits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduler_charged: bool,
    /// Time the device was busy, ns.
    pub device_busy_ns: u64,
    /// Mean number of requests in the device.
    pub depth_mean: f64,
    /// Mean number of bios submitted and not completed, from when the program submitted them.
    pub outstanding_mean: f64,
    /// Largest number of bios that the block layer had and had not completed.
    pub outstanding_max: u64,
    /// By bytes, largest first.
    pub processes: Vec<ProcessShare>,
    /// Second by second, those in which nothing completed left out: a pause of years costs nothing.
    /// After [`SECONDS_MAX`] of them the rest of a run is left out.
    pub seconds: Vec<Second>,
    /// What the workload did, by kind.
    #[serde(default)]
    pub operations: Vec<Operation>,
    /// What happened when.
    #[serde(default)]
    pub marks: Vec<MarkAt>,
    /// Metrics beside the one the run is about.
    #[serde(default)]
    pub more_metrics: Vec<Metric>,
    /// The workload's tasks, in the order they began.
    #[serde(default)]
    pub tasks: Vec<TaskPart>,
    /// What the programs beside it did meanwhile, in the order of the specification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BesidePart>,
    /// Kinds of tasks of which some were starved by others of their kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starved: Vec<Starved>,
    /// What to keep in mind when reading it.
    pub warnings: Vec<String>,
}

impl Record {
    /// Operations of a kind.
    pub fn operation(&self, kind: &str) -> Option<&Operation> {
        self.operations.iter().find(|o| o.kind == kind)
    }
    /// Bytes a second.
    pub fn bytes_per_sec(&self) -> f64 {
        self.rate((self.read.bytes + self.write.bytes) as f64)
    }
    /// Bios a second.
    pub fn iops(&self) -> f64 {
        self.rate((self.read.ios + self.write.ios) as f64)
    }
    /// What the figures cover, since the run began, ns: from the start of the clock to its stop, or
    /// the whole run.
    pub fn window_ns(&self) -> (u64, u64) {
        match self.clock_start_ns {
            Some(from) => (
                from,
                self.clock_stop_ns.unwrap_or(self.duration_ns).max(from),
            ),
            None => (0, self.duration_ns),
        }
    }
    /// The run reached its limit: its work takes longer than [`Record::span_ns`].
    pub fn censored(&self) -> bool {
        self.early.as_ref().is_some_and(|e| e.limit)
    }
    /// Length of what the figures cover, ns.
    pub fn span_ns(&self) -> u64 {
        let (from, to) = self.window_ns();
        to - from
    }
    /// `x` per second of what the figures cover.
    pub fn rate(&self, x: f64) -> f64 {
        match self.span_ns() {
            0 => 0.0,
            ns => x * NSEC_PER_SEC as f64 / ns as f64,
        }
    }
    /// Share of that time in which the device was busy, 0..=1.
    pub fn busy(&self) -> f64 {
        self.rate(self.device_busy_ns as f64 / NSEC_PER_SEC as f64)
            .min(1.0)
    }
    /// Counts one completed bio; `asked`: when its program submitted it.
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
    /// Counts one completed bio in the series only: it ended before or after the clock.
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
