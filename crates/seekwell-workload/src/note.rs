//! Notes of scripts for the measures of a run: operations with their times, marks and metrics.

use seekwell_core::Instant;
use std::borrow::Cow;

/// An operation that has begun. Pass it to [`crate::Machine::op_end`].
#[must_use = "an operation that is never ended is not counted"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Kind of the operation, for example "fsync" or "transaction". Each kind has its own
    /// histogram.
    pub kind: &'static str,
    /// Time at which the operation began.
    pub since: Instant,
}

/// An event on the time axis of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A phase of the script begins, for example "create" or "random write".
    Phase(&'static str),
    /// A database checkpoint begins.
    CheckpointStart,
    /// A database checkpoint has ended, so all its files are on disk.
    CheckpointEnd,
    /// The script has requested that all dirty data be written (sync).
    Flush,
    /// A task was throttled because too much memory is dirty. The machine records this mark, not
    /// the script.
    Throttled,
    /// The measured time begins, because the original program starts its clock here.
    ClockStart,
    /// The measured time ends. Later work, for example the removal of files, does not count.
    ClockStop,
    /// Any other event.
    Other(&'static str),
}

impl Mark {
    /// Returns the text for the time axis.
    pub fn name(self) -> &'static str {
        match self {
            Mark::Phase(name) | Mark::Other(name) => name,
            Mark::CheckpointStart => "checkpoint start",
            Mark::CheckpointEnd => "checkpoint end",
            Mark::Flush => "flush",
            Mark::Throttled => "throttled",
            Mark::ClockStart => "clock start",
            Mark::ClockStop => "clock stop",
        }
    }
}

/// A message from a script to the measures of the run.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// An operation that has ended.
    Op {
        /// Kind of the operation.
        kind: &'static str,
        /// Time at which the operation began.
        start: Instant,
        /// Time at which the operation ended.
        end: Instant,
        /// Number of bytes that it transferred, or 0.
        bytes: u64,
    },
    /// A mark at a time.
    Mark(Instant, Mark),
    /// The principal metric counts operations of this kind, or is their mean. There is one note per
    /// kind.
    Counts(&'static str),
    /// A metric. The first metric of a run is the principal metric, which the original program
    /// prints.
    Metric {
        /// Name, for example "files/s".
        name: Cow<'static, str>,
        /// Unit that the original program prints.
        unit: &'static str,
        /// Value, rounded as in the original program.
        value: f64,
        /// True if a larger value is better.
        higher_is_better: bool,
    },
}
