//! The survey of a trace as data, for the terminal, JSON, Markdown and HTML.

use seekwell_core::result::Latency;
use serde::Serialize;

/// Version of the written [`Survey`]. It is incremented when the meaning of a field changes.
pub const SURVEY_VERSION: u32 = 1;

/// A summary of the contents of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Survey {
    /// The version, [`SURVEY_VERSION`].
    pub version: u32,
    /// Name of the file, without its directory.
    pub name: String,
    /// Name of the format.
    pub format: String,
    /// True if the trace has events and not only records. Then merges and allocations are known.
    pub events: bool,
    /// True if the trace has queue times. If false, the times of issue to the driver replace them.
    pub queued: bool,
    /// Time from the first to the last event, in ns.
    pub span_ns: u64,
    /// Devices with their numbers of requests; the device with the most requests is first.
    pub devices: Vec<(String, u64)>,
    /// One entry per kind of operation: reads, writes, flushes and so on.
    pub kinds: Vec<KindPart>,
    /// Phases of a bio between two events, with the names that btt uses.
    pub phases: Vec<Phase>,
    /// Numbers about merging.
    pub merges: Merges,
    /// Sizes of queued bios and of issued requests.
    pub sizes: Vec<SizeClass>,
    /// Distances between consecutive queued accesses.
    pub seeks_queued: Seeks,
    /// Distances between consecutive issued requests; `None` if unknown.
    pub seeks_issued: Option<Seeks>,
    /// Queue depths.
    pub depth: Depth,
    /// Processes; the process with the most data is first.
    pub tasks: Vec<TaskShare>,
    /// Number of processes that are not listed.
    pub tasks_more: u64,
    /// Activity over time.
    pub course: Course,
    /// Activity over time and sector.
    pub heat: Heat,
    /// Number of queued accesses that are not complete at the end of the trace.
    pub unfinished: u64,
    /// Number of completions without an earlier submission.
    pub orphans: u64,
    /// Warnings of the reader.
    pub warnings: Vec<String>,
}

/// Summary of durations in ns. Quantiles have three significant digits. The other values are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Number of values.
    pub n: u64,
    /// Shortest duration.
    pub min_ns: u64,
    /// Mean duration.
    pub mean_ns: f64,
    /// Median duration.
    pub p50_ns: u64,
    /// 99th percentile of the durations.
    pub p99_ns: u64,
    /// Longest duration.
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

/// Numbers about one kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KindPart {
    /// Name of the kind: "read", "write", "flush" or "discard".
    pub kind: String,
    /// Number of queued operations.
    pub n: u64,
    /// Number of bytes in queued operations.
    pub bytes: u64,
    /// Number of synchronous operations, for which a task waits. All reads count as synchronous.
    pub sync: u64,
    /// Time from queueing to completion.
    pub latency: Option<Spread>,
    /// Time from issue to completion.
    pub service: Option<Spread>,
}

/// A phase of a bio between two events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Name, for example "Q2G".
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Durations.
    #[serde(flatten)]
    pub spread: Spread,
    /// Fraction of the total time from Q to C, 0 to 1. `None` if the phase is not a part of this
    /// time.
    pub share: Option<f64>,
}

/// Numbers about merging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Merges {
    /// Number of queued bios with data.
    pub queued: u64,
    /// Number of requests issued to the driver; 0 if unknown.
    pub issued: u64,
    /// Number of back merges into waiting requests.
    pub back: u64,
    /// Number of front merges.
    pub front: u64,
    /// Number of requeued requests, which the driver returned.
    pub requeued: u64,
    /// Size of the smallest issued request, in sectors.
    pub issued_min: u64,
    /// Mean size of issued requests, in sectors.
    pub issued_mean: f64,
    /// Size of the largest issued request, in sectors.
    pub issued_max: u64,
    /// Total size of issued requests, in sectors.
    pub issued_sectors: u64,
}

/// A class of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SizeClass {
    /// Upper bound in bytes. The lower bound is that of the previous class.
    pub bytes: u64,
    /// Number of queued reads.
    pub reads: u64,
    /// Number of queued writes and discards.
    pub writes: u64,
    /// Number of issued requests.
    pub issued: u64,
}

/// Upper bounds (exclusive) of the distance classes, in bytes. The class of distance 0 comes before
/// them, and the class without an upper bound after them.
pub const SEEK_CLASSES: [u64; 5] = [64 << 10, 1 << 20, 16 << 20, 256 << 20, 4 << 30];

/// Distances as btt defines them. A forward distance is from the end of an access to the start of
/// the next access. A backward distance is from start to start. The distance is 0 if the accesses
/// touch or overlap. The first distance counts from sector 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Seeks {
    /// Number of distances.
    pub n: u64,
    /// Mean distance, in sectors.
    pub mean: f64,
    /// Median distance, in sectors (the lower median of an even number).
    pub median: u64,
    /// Most frequent distance, in sectors. If several are equally frequent, the shortest.
    pub mode: u64,
    /// Number of occurrences of the most frequent distance.
    pub mode_n: u64,
    /// Number of accesses that follow the previous access without a gap.
    pub sequential: u64,
    /// Number of accesses to a lower sector than the previous access.
    pub backwards: u64,
    /// Number of distances per class: 0, then less than each of [`SEEK_CLASSES`], then all larger
    /// distances.
    pub classes: [u64; 7],
    /// True if there were too many different distances to store all of them. Then median and mode
    /// have an error of up to 0.2 %.
    pub rounded: bool,
}

/// Queue depths. A bio waits from queueing to issue. A request is at the driver from issue to
/// completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Depth {
    /// Mean number of waiting bios when a bio arrives. Merged bios do not count.
    pub at_queue: f64,
    /// Mean number of waiting bios over time. Merged bios count.
    pub waiting: f64,
    /// Maximum number of waiting bios.
    pub waiting_max: u64,
    /// Mean number of requests at the driver over time; `None` if unknown.
    pub in_device: Option<f64>,
    /// Maximum number of requests at the driver.
    pub in_device_max: u64,
    /// Fraction of the time with at least one request at the driver, 0 to 1.
    pub busy: Option<f64>,
}

/// The accesses of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskShare {
    /// Process id; `None` for accesses without a known process.
    pub pid: Option<u32>,
    /// Name of the process; can be empty.
    pub name: String,
    /// Number of queued reads.
    pub reads: u64,
    /// Number of queued writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Number of accesses that begin at the end of the previous access of the process.
    pub sequential: u64,
    /// Number of merged accesses.
    pub merged: u64,
    /// Number of accesses with a known latency (from queueing to completion).
    pub completed: u64,
    /// Mean latency, in ns.
    pub mean_ns: f64,
    /// Maximum latency, in ns.
    pub max_ns: u64,
}

/// Activity over time, in steps. An access counts at the time of its completion, or of its
/// submission if the completion is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Course {
    /// Length of a step in ns. It is 1 ms times a power of ten.
    pub step_ns: u64,
    /// Number of reads.
    pub reads: Vec<u64>,
    /// Number of writes and discards.
    pub writes: Vec<u64>,
    /// Bytes read.
    pub read_bytes: Vec<u64>,
    /// Bytes written.
    pub write_bytes: Vec<u64>,
    /// Mean latency from queueing to completion, in ns; 0 if there are no completions.
    pub mean_ns: Vec<u64>,
    /// Maximum latency, in ns.
    pub max_ns: Vec<u64>,
    /// Mean number of waiting bios.
    pub waiting: Vec<f64>,
    /// Mean number of requests at the driver.
    pub in_device: Vec<f64>,
}

/// Numbers of accesses by time and sector, in a grid.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Heat {
    /// Duration of a column of the grid, in ns.
    pub step_ns: u64,
    /// First sector of the lowest row of the grid.
    pub first_sector: u64,
    /// Number of sectors per row.
    pub row_sectors: u64,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Numbers of reads, column after column; within a column, the lowest row is first.
    pub reads: Vec<u32>,
    /// Numbers of writes and discards, in the same order.
    pub writes: Vec<u32>,
}
