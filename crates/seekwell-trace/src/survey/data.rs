//! The survey as data: what is told on a terminal, in JSON, in Markdown and on a page.

use seekwell_core::result::Latency;
use serde::Serialize;

/// Version of [`Survey`] as it is written; raised when a field changes its meaning.
pub const SURVEY_VERSION: u32 = 1;

/// What a trace holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Survey {
    /// [`SURVEY_VERSION`].
    pub version: u32,
    /// File name, without its folder.
    pub name: String,
    /// Format.
    pub format: String,
    /// It tells of events, not only of records: merges and allocation are known.
    pub events: bool,
    /// It tells when each was asked for; false: only when requests went to the driver, which stand
    /// for what was asked for.
    pub queued: bool,
    /// From the first to the last event, ns.
    pub span_ns: u64,
    /// Devices with what was asked of each, the busiest first.
    pub devices: Vec<(String, u64)>,
    /// Reads, writes, flushes, ...
    pub kinds: Vec<KindPart>,
    /// Where time is spent, in btt's words.
    pub phases: Vec<Phase>,
    /// What merging did.
    pub merges: Merges,
    /// Sizes as asked for, and as sent to the driver.
    pub sizes: Vec<SizeClass>,
    /// Distances from one to the next as asked for.
    pub seeks_queued: Seeks,
    /// Distances from one to the next as sent to the driver; `None`: not told.
    pub seeks_issued: Option<Seeks>,
    /// How many at a time.
    pub depth: Depth,
    /// Processes, those that moved most first.
    pub tasks: Vec<TaskShare>,
    /// Processes beyond those listed.
    pub tasks_more: u64,
    /// Over time.
    pub course: Course,
    /// Over time and place.
    pub heat: Heat,
    /// Asked for and not complete at the end.
    pub unfinished: u64,
    /// Completions of nothing that was asked for before.
    pub orphans: u64,
    /// What the reader tolerated.
    pub warnings: Vec<String>,
}

/// Durations in a few numbers, ns. The quantiles are good to three digits, the others exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// How many.
    pub n: u64,
    /// Smallest.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 99 % are below.
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

/// One kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KindPart {
    /// "read", "write", "flush", "discard".
    pub kind: String,
    /// How many were asked for.
    pub n: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Of them synchronous (somebody waits; reads always).
    pub sync: u64,
    /// From asked for to complete.
    pub latency: Option<Spread>,
    /// From the driver to complete.
    pub service: Option<Spread>,
}

/// A phase between two letters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// "Q2G".
    pub name: &'static str,
    /// In words.
    pub about: &'static str,
    /// How long.
    #[serde(flatten)]
    pub spread: Spread,
    /// Its part of all time from Q to C; `None` for what is no part of it.
    pub share: Option<f64>,
}

/// What merging did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Merges {
    /// Asked for (bios with data).
    pub queued: u64,
    /// Sent to the driver (requests); 0: not told.
    pub issued: u64,
    /// Merged at the end of one that waited.
    pub back: u64,
    /// Merged at the front.
    pub front: u64,
    /// Given back by the driver.
    pub requeued: u64,
    /// Smallest request sent, sectors.
    pub issued_min: u64,
    /// Mean, sectors.
    pub issued_mean: f64,
    /// Largest, sectors.
    pub issued_max: u64,
    /// All that were sent, sectors.
    pub issued_sectors: u64,
}

/// Sizes up to a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SizeClass {
    /// At most so many bytes, and more than the class before.
    pub bytes: u64,
    /// Reads asked for.
    pub reads: u64,
    /// Writes (and discards) asked for.
    pub writes: u64,
    /// Sent to the driver.
    pub issued: u64,
}

/// Upper bounds (exclusive) of the classes of distances, bytes; the first is 0, the last has none.
pub const SEEK_CLASSES: [u64; 5] = [64 << 10, 1 << 20, 16 << 20, 256 << 20, 4 << 30];

/// Distances as btt has them: forwards from the end of one to the start of the next, backwards from
/// start to start, 0 where they touch or overlap. The first counts from sector 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Seeks {
    /// How many.
    pub n: u64,
    /// Mean, sectors.
    pub mean: f64,
    /// Median, sectors (of an even number the lower of the middle two).
    pub median: u64,
    /// Most frequent, sectors; of several the shortest.
    pub mode: u64,
    /// How often.
    pub mode_n: u64,
    /// Without a gap.
    pub sequential: u64,
    /// To lower sectors.
    pub backwards: u64,
    /// By class: 0, then below each of [`SEEK_CLASSES`], then the rest.
    pub classes: [u64; 7],
    /// Median and mode are good to 0.2 % only: there were too many different distances.
    pub rounded: bool,
}

/// How many at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Depth {
    /// Requests that waited for the driver when another bio was asked for, mean.
    pub at_queue: f64,
    /// Waiting for the driver, mean over time.
    pub waiting: f64,
    /// Most that waited.
    pub waiting_max: u64,
    /// Requests at the driver, mean over time; `None`: not told.
    pub in_device: Option<f64>,
    /// Most at a time.
    pub in_device_max: u64,
    /// Share of the time with at least one at the driver.
    pub busy: Option<f64>,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskShare {
    /// Its number; `None`: those the trace does not name.
    pub pid: Option<u32>,
    /// Its name, or empty.
    pub name: String,
    /// Reads asked for.
    pub reads: u64,
    /// Writes asked for.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Begin where its last one ended.
    pub sequential: u64,
    /// Were merged.
    pub merged: u64,
    /// From asked for to complete: how many are known.
    pub completed: u64,
    /// Mean of it, ns.
    pub mean_ns: f64,
    /// Longest, ns.
    pub max_ns: u64,
}

/// Over time, in steps. Counted where it was complete, else where it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Course {
    /// Length of a step, ns: a power of ten times 1 ms.
    pub step_ns: u64,
    /// Reads.
    pub reads: Vec<u64>,
    /// Writes and discards.
    pub writes: Vec<u64>,
    /// Bytes read.
    pub read_bytes: Vec<u64>,
    /// Bytes written.
    pub write_bytes: Vec<u64>,
    /// Mean time from asked for to complete, ns; 0: none was.
    pub mean_ns: Vec<u64>,
    /// Longest.
    pub max_ns: Vec<u64>,
    /// Mean number that waited for the driver.
    pub waiting: Vec<f64>,
    /// Mean number of requests at the driver.
    pub in_device: Vec<f64>,
}

/// How often each place was asked for at each time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Heat {
    /// Length of a column, ns.
    pub step_ns: u64,
    /// Lowest sector of the lowest row.
    pub first_sector: u64,
    /// Height of a row, sectors.
    pub row_sectors: u64,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Reads by column and row, column after column, the lowest row first.
    pub reads: Vec<u32>,
    /// Writes and discards, likewise.
    pub writes: Vec<u32>,
}
