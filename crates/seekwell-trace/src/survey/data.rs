//! The survey as data, for the terminal, JSON, Markdown and HTML.

use seekwell_core::result::Latency;
use serde::Serialize;

/// Version of the written [`Survey`]; incremented when the meaning of a field changes.
pub const SURVEY_VERSION: u32 = 1;

/// The contents of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Survey {
    /// [`SURVEY_VERSION`].
    pub version: u32,
    /// File name without its directory.
    pub name: String,
    /// Format.
    pub format: String,
    /// Whether the trace has events, not only records: then merges and allocations are known.
    pub events: bool,
    /// Whether the trace has queue times. If false, it has only the times of issue to the driver,
    /// which replace them.
    pub queued: bool,
    /// Time from the first to the last event, ns.
    pub span_ns: u64,
    /// Devices with their numbers of requests, the busiest first.
    pub devices: Vec<(String, u64)>,
    /// Reads, writes, flushes, ...
    pub kinds: Vec<KindPart>,
    /// Phases in which time is spent, in btt's terms.
    pub phases: Vec<Phase>,
    /// Effects of merging.
    pub merges: Merges,
    /// Sizes as queued, and as issued to the driver.
    pub sizes: Vec<SizeClass>,
    /// Distances between consecutive accesses as queued.
    pub seeks_queued: Seeks,
    /// Distances between consecutive accesses as issued to the driver; `None`: unknown.
    pub seeks_issued: Option<Seeks>,
    /// Queue depths.
    pub depth: Depth,
    /// Processes, those with the most data first.
    pub tasks: Vec<TaskShare>,
    /// Number of processes that are not listed.
    pub tasks_more: u64,
    /// Activity over time.
    pub course: Course,
    /// Activity over time and place.
    pub heat: Heat,
    /// Number of queued accesses that are not complete at the end.
    pub unfinished: u64,
    /// Number of completions without an earlier submission.
    pub orphans: u64,
    /// Warnings of the reader.
    pub warnings: Vec<String>,
}

/// Summary of durations, ns. The quantiles have three significant digits; the other values are
/// exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Number of values.
    pub n: u64,
    /// Smallest.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

impl From<&Latency> for Spread {
    fn from(l: &Latency) -> Self {
        Spread {
            n: l.count(),
            min_ns: l.min_ns(),
            mean_ns: l.mean_ns(),
            p50_ns: l.percentile_ns(50.0),
            p99_ns: l.percentile_ns(99.0),
            max_ns: l.max_ns(),
        }
    }
}

/// A kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KindPart {
    /// "read", "write", "flush", "discard".
    pub kind: String,
    /// Number of queued operations.
    pub n: u64,
    /// Bytes queued.
    pub bytes: u64,
    /// Number of synchronous ones (a task waits; all reads).
    pub sync: u64,
    /// From queueing to completion.
    pub latency: Option<Spread>,
    /// From issue to completion.
    pub service: Option<Spread>,
}

/// A phase between two events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// "Q2G".
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Durations.
    #[serde(flatten)]
    pub spread: Spread,
    /// Share of the total time from Q to C; `None` if it is not a part of it.
    pub share: Option<f64>,
}

/// Effects of merging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Merges {
    /// Number of queued bios with data.
    pub queued: u64,
    /// Number of requests issued to the driver; 0: unknown.
    pub issued: u64,
    /// Number of back merges into waiting requests.
    pub back: u64,
    /// Number of front merges.
    pub front: u64,
    /// Number of requests that the driver returned.
    pub requeued: u64,
    /// Smallest issued request, sectors.
    pub issued_min: u64,
    /// Mean issued request, sectors.
    pub issued_mean: f64,
    /// Largest issued request, sectors.
    pub issued_max: u64,
    /// Total of issued requests, sectors.
    pub issued_sectors: u64,
}

/// A class of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SizeClass {
    /// Upper bound in bytes; the lower bound is the class before.
    pub bytes: u64,
    /// Number of queued reads.
    pub reads: u64,
    /// Number of queued writes and discards.
    pub writes: u64,
    /// Number of issued requests.
    pub issued: u64,
}

/// Upper bounds (exclusive) of the classes of distances, bytes; the first is 0, the last has none.
pub const SEEK_CLASSES: [u64; 5] = [64 << 10, 1 << 20, 16 << 20, 256 << 20, 4 << 30];

/// Distances defined as in btt: forwards from the end of one access to the start of the next,
/// backwards from start to start, 0 if they touch or overlap. The first is counted from sector 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Seeks {
    /// Number of distances.
    pub n: u64,
    /// Mean, sectors.
    pub mean: f64,
    /// Median, sectors (the lower median of an even number).
    pub median: u64,
    /// Most frequent distance, sectors; the shortest of several.
    pub mode: u64,
    /// Frequency of the mode.
    pub mode_n: u64,
    /// Number of accesses without a gap.
    pub sequential: u64,
    /// Number of accesses to lower sectors.
    pub backwards: u64,
    /// By class: 0, then below each of [`SEEK_CLASSES`], then the rest.
    pub classes: [u64; 7],
    /// Median and mode have an error of up to 0.2 %, because there were too many different
    /// distances.
    pub rounded: bool,
}

/// Queue depths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Depth {
    /// Mean number of requests waiting for the driver at the arrival of a bio.
    pub at_queue: f64,
    /// Mean number waiting for the driver, over time.
    pub waiting: f64,
    /// Largest number waiting.
    pub waiting_max: u64,
    /// Mean number of requests at the driver, over time; `None`: unknown.
    pub in_device: Option<f64>,
    /// Largest number at the driver.
    pub in_device_max: u64,
    /// Share of the time with at least one request at the driver.
    pub busy: Option<f64>,
}

/// The share of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskShare {
    /// Its pid; `None`: accesses without a known process.
    pub pid: Option<u32>,
    /// Its name, or empty.
    pub name: String,
    /// Number of queued reads.
    pub reads: u64,
    /// Number of queued writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Number of accesses that begin at the end of the process's previous one.
    pub sequential: u64,
    /// Number of merged accesses.
    pub merged: u64,
    /// Number of accesses with known latency, from queueing to completion.
    pub completed: u64,
    /// Mean latency, ns.
    pub mean_ns: f64,
    /// Greatest latency, ns.
    pub max_ns: u64,
}

/// Activity over time, in steps. An access counts at its completion, or, if that is unknown, at its
/// submission.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Course {
    /// Length of a step, ns: a power of ten times 1 ms.
    pub step_ns: u64,
    /// Number of reads.
    pub reads: Vec<u64>,
    /// Number of writes and discards.
    pub writes: Vec<u64>,
    /// Bytes read.
    pub read_bytes: Vec<u64>,
    /// Bytes written.
    pub write_bytes: Vec<u64>,
    /// Mean latency from queueing to completion, ns; 0: no completions.
    pub mean_ns: Vec<u64>,
    /// Greatest latency.
    pub max_ns: Vec<u64>,
    /// Mean number waiting for the driver.
    pub waiting: Vec<f64>,
    /// Mean number of requests at the driver.
    pub in_device: Vec<f64>,
}

/// Number of accesses by time and place.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Heat {
    /// Duration of a column, ns.
    pub step_ns: u64,
    /// Lowest sector of the lowest row.
    pub first_sector: u64,
    /// Height of a row, sectors.
    pub row_sectors: u64,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Reads by column and row, column after column, the lowest row first.
    pub reads: Vec<u32>,
    /// Writes and discards, likewise.
    pub writes: Vec<u32>,
}
