//! Details of a cell: how long operations took, the course over time, trade-offs, shares per
//! process, and facts about the disk.
//!
//! All runs of a treatment are merged. Latencies form one histogram; seconds become mean, lowest
//! and highest over the runs, so that no spike is lost. The series of single runs are only in the
//! folder's own files.

mod folder;
mod gather;
mod seconds;
#[cfg(test)]
mod tests;

pub use folder::of_folder;
pub use gather::Gather;
pub use seconds::Second;

use crate::results::Buckets;

/// Details of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// The kind of operations that latencies and seconds show: the one that the metric counts,
    /// otherwise the most frequent. "read", "write" or "I/O" if the workload names none.
    pub operation: String,
    /// The cell's treatments that have data.
    pub sides: Vec<Side>,
}

/// Details of one treatment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Treatment index in the results.
    pub treatment: usize,
    /// Number of runs.
    pub runs: u32,
    /// Latencies of all runs.
    pub latency: Buckets,
    /// Seconds since the start of the runs, ascending, without gaps; empty if too short for a
    /// series.
    pub seconds: Vec<Second>,
    /// Events of the first run with their times.
    pub marks: Vec<Mark>,
    /// Bytes per process, by name, as the mean over the runs; the largest first.
    pub shares: Vec<(String, u64)>,
    /// Facts about the disk, as means over the runs.
    pub facts: Option<Facts>,
    /// Bytes per second and the 99th percentile of the operations, over the runs.
    pub traded: Option<Traded>,
}

/// An event that lasted for some of the run's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its kind.
    pub what: MarkKind,
    /// Start, in ms since the run began.
    pub from_ms: u64,
    /// End, in ms; equal to the start for an instant.
    pub to_ms: u64,
}

/// Kinds of marked events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkKind {
    /// A checkpoint of a database.
    Checkpoint,
    /// A flush that the workload marks.
    Flush,
    /// Writers were throttled.
    Throttled,
}

impl MarkKind {
    /// Name of the kind in one word.
    pub const fn name(self) -> &'static str {
        match self {
            MarkKind::Checkpoint => "checkpoint",
            MarkKind::Flush => "flush",
            MarkKind::Throttled => "throttled",
        }
    }
}

/// Facts about the disk, as means over the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Requests to the device.
    pub requests: f64,
    /// Bios merged into requests, plus merges of two requests.
    pub merges: f64,
    /// Mean distance from one request to the next, in bytes.
    pub seek_bytes: f64,
    /// Fraction of time that the device was busy.
    pub busy: f64,
    /// Mean number of requests in the device.
    pub depth: f64,
    /// Mean number of bios that were submitted but not completed.
    pub outstanding: f64,
    /// Operation latency in ns: p50, p99, p99.9 and p99.99; `None` if there are too few operations.
    pub percentiles_ns: [Option<u64>; 4],
}

/// Two figures that often trade off against each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traded {
    /// Bytes per second, mean over the runs.
    pub bytes_per_s: f64,
    /// Its 95 % interval.
    pub bytes_95: Option<(f64, f64)>,
    /// 99th percentile of latency in ns, mean over the runs.
    pub p99_ns: f64,
    /// Its 95 % interval.
    pub p99_95: Option<(f64, f64)>,
}
