//! What is shown of a cell when somebody looks closer: how long operations took, the course of
//! time, what is traded for what, who got what, what the disk did.
//!
//! All runs of a treatment are put together: latencies into one histogram, seconds into mean,
//! lowest and highest over the runs, so that no spike of any run is lost. Left out: single runs'
//! series, which are in the folder's own files.

mod folder;
mod gather;
mod seconds;
#[cfg(test)]
mod tests;

pub use folder::of_folder;
pub use gather::Gather;
pub use seconds::Second;

use crate::results::Buckets;

/// A cell, closer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// Kind of the operations that latencies and seconds are of: what the metric counts, else the
    /// most frequent; "read", "write" or "I/O" where the workload names none.
    pub operation: String,
    /// Those of its treatments of which something was kept.
    pub sides: Vec<Side>,
}

/// A treatment of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Which, by place in the results.
    pub treatment: usize,
    /// Runs behind it.
    pub runs: u32,
    /// Latencies of all runs.
    pub latency: Buckets,
    /// Seconds since the runs began, ascending, none left out; empty: too short for a series.
    pub seconds: Vec<Second>,
    /// What happened when, in the first run.
    pub marks: Vec<Mark>,
    /// Bytes a process got in the mean of the runs, by its name, the largest first.
    pub shares: Vec<(String, u64)>,
    /// What the disk did, means over the runs.
    pub facts: Option<Facts>,
    /// Bytes a second and the 99th percentile of the operations, by run.
    pub traded: Option<Traded>,
}

/// Something that took a part of the run's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What.
    pub what: MarkKind,
    /// From when, ms since the run began.
    pub from_ms: u64,
    /// Until when; the same for an instant.
    pub to_ms: u64,
}

/// What is marked in the course of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkKind {
    /// A checkpoint of a database.
    Checkpoint,
    /// A flush that the workload marks.
    Flush,
    /// Writers were held back.
    Throttled,
}

impl MarkKind {
    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            MarkKind::Checkpoint => "checkpoint",
            MarkKind::Flush => "flush",
            MarkKind::Throttled => "throttled",
        }
    }
}

/// What the disk did, means over the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Requests to the device.
    pub requests: f64,
    /// Bios merged into another's request, and requests joined.
    pub merges: f64,
    /// Mean distance from one request to the next, bytes.
    pub seek_bytes: f64,
    /// Share of the time the device was busy.
    pub busy: f64,
    /// Mean number of requests in the device.
    pub depth: f64,
    /// Mean number of bios that were submitted and not done.
    pub outstanding: f64,
    /// Latency of the operations: p50, p99, p99.9 and p99.99, ns; `None`: fewer operations than
    /// that needs.
    pub percentiles_ns: [Option<u64>; 4],
}

/// Two figures of which one is often had at the cost of the other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traded {
    /// Bytes a second, mean of the runs.
    pub bytes_per_s: f64,
    /// Its 95 % interval.
    pub bytes_95: Option<(f64, f64)>,
    /// 99th percentile of latency, ns, mean of the runs.
    pub p99_ns: f64,
    /// Its 95 % interval.
    pub p99_95: Option<(f64, f64)>,
}
