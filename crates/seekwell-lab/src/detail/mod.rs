//! The details of a cell for a report: latencies of operations, their course over time, throughput
//! against latency, bytes per process, and facts about the disk.
//!
//! All runs of a treatment are merged. Their latencies form one histogram. Each second has the
//! mean, the lowest and the highest value over the runs, so that no spike is lost. The series of a
//! single run are only in the files of the results folder.

mod folder;
mod gather;
mod seconds;
#[cfg(test)]
mod tests;

pub use folder::of_folder;
pub use gather::Gather;
pub use seconds::Second;

use crate::results::Buckets;

/// The details of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// The kind of operation whose latencies and time series are shown. It is the kind that the
    /// metric counts. If the metric counts none, it is the most frequent kind. If the workload
    /// names no kind, it is "read", "write" or "I/O".
    pub operation: String,
    /// The treatments of the cell that have data.
    pub sides: Vec<Side>,
}

/// The details of one treatment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Index of the treatment in the results.
    pub treatment: usize,
    /// Number of runs.
    pub runs: u32,
    /// Histogram of the latencies of all runs.
    pub latency: Buckets,
    /// The seconds since the start of the runs, in ascending order and without gaps. Empty if the
    /// runs are too short for a series.
    pub seconds: Vec<Second>,
    /// The marked events of the first run.
    pub marks: Vec<Mark>,
    /// Name of each process and its bytes (mean over the runs), the largest first.
    pub shares: Vec<(String, u64)>,
    /// Facts about the disk (means over the runs).
    pub facts: Option<Facts>,
    /// Throughput and 99th percentile of latency (means over the runs).
    pub traded: Option<Traded>,
}

/// An event that lasted for a part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Kind of the event.
    pub what: MarkKind,
    /// Start, in ms since the start of the run.
    pub from_ms: u64,
    /// End, in ms since the start of the run. Equal to the start if the event has no length.
    pub to_ms: u64,
}

/// A kind of marked event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkKind {
    /// A checkpoint of a database.
    Checkpoint,
    /// A flush that the workload marked.
    Flush,
    /// A time in which writers were throttled.
    Throttled,
}

impl MarkKind {
    /// Returns the name of the kind, a single word.
    pub const fn name(self) -> &'static str {
        match self {
            MarkKind::Checkpoint => "checkpoint",
            MarkKind::Flush => "flush",
            MarkKind::Throttled => "throttled",
        }
    }
}

/// Facts about the disk (means over the runs).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Number of requests to the device.
    pub requests: f64,
    /// Number of bios merged into requests, plus the number of merges of two requests.
    pub merges: f64,
    /// Mean distance from one request to the next, in bytes.
    pub seek_bytes: f64,
    /// Fraction of the time in which the device was busy.
    pub busy: f64,
    /// Mean number of requests in the device.
    pub depth: f64,
    /// Mean number of bios that were submitted but not yet completed.
    pub outstanding: f64,
    /// Latency of the operations in ns: p50, p99, p99.9 and p99.99. A percentile is `None` if there
    /// are too few operations.
    pub percentiles_ns: [Option<u64>; 4],
}

/// Throughput and latency, between which schedulers often make a trade-off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traded {
    /// Mean throughput of the runs, in bytes per second.
    pub bytes_per_s: f64,
    /// 95 % confidence interval of `bytes_per_s`.
    pub bytes_95: Option<(f64, f64)>,
    /// Mean over the runs of the 99th percentile of latency, in ns.
    pub p99_ns: f64,
    /// 95 % confidence interval of `p99_ns`.
    pub p99_95: Option<(f64, f64)>,
}
