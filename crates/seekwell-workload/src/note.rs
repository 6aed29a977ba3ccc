//! Notes of scripts for the measures: operations with their times, marks, metrics.

use seekwell_core::Instant;
use std::borrow::Cow;

/// A running operation; pass it to [`crate::Machine::op_end`].
#[must_use = "an operation that is never ended is not counted"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its kind ("fsync", "transaction"), which has its own histogram.
    pub kind: &'static str,
    /// When it began.
    pub since: Instant,
}

/// An event for the time axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A phase of the script begins ("create", "random write").
    Phase(&'static str),
    /// A database checkpoint begins.
    CheckpointStart,
    /// A database checkpoint has ended: all its files are on disk.
    CheckpointEnd,
    /// The script requested that everything be written (sync).
    Flush,
    /// A task was throttled because too much memory is dirty. Recorded by the world, not by
    /// scripts.
    Throttled,
    /// The measured time begins: the clock of the original starts.
    ClockStart,
    /// The measured time has ended. Later work (removal of files) belongs to no measure.
    ClockStop,
    /// Anything else.
    Other(&'static str),
}

impl Mark {
    /// The text on the time axis.
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

/// A message from a script to the measures.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// An operation ended.
    Op {
        /// Its kind.
        kind: &'static str,
        /// When it began.
        start: Instant,
        /// When it ended.
        end: Instant,
        /// Bytes that it moved, or 0.
        bytes: u64,
    },
    /// A mark at an instant.
    Mark(Instant, Mark),
    /// The principal metric counts operations of this kind, or is their mean. One note per kind.
    Counts(&'static str),
    /// A metric. The first of a run is the principal one, which the original prints.
    Metric {
        /// Name ("files/s").
        name: Cow<'static, str>,
        /// Unit, as the original prints it.
        unit: &'static str,
        /// Value, rounded like the original's.
        value: f64,
        /// Larger is better.
        higher_is_better: bool,
    },
}
