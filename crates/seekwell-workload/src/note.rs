//! What scripts leave for the measures: operations with their times, marks, metrics.

use seekwell_core::Instant;
use std::borrow::Cow;

/// An operation that has begun; hand it to [`crate::Machine::op_end`].
#[must_use = "an operation that is never ended is not counted"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its kind ("fsync", "transaction"): one histogram each.
    pub kind: &'static str,
    /// When it began.
    pub since: Instant,
}

/// Something that happened at one instant, for the time axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A phase of the script begins ("create", "random write").
    Phase(&'static str),
    /// A database checkpoint begins.
    CheckpointStart,
    /// It has ended: every file it wrote is on disk.
    CheckpointEnd,
    /// The script asked for everything to be written (sync).
    Flush,
    /// A task was held back because too much is dirty (from the world, not from scripts).
    Throttled,
    /// What the metric is about begins: the clock of the original starts.
    ClockStart,
    /// It has ended; what follows (removal of files) belongs to no measure.
    ClockStop,
    /// Anything else.
    Other(&'static str),
}

impl Mark {
    /// As the time axis shows it.
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
        /// Bytes it moved; 0 if it moves none.
        bytes: u64,
    },
    /// A mark at an instant.
    Mark(Instant, Mark),
    /// The principal metric counts operations of this kind, or is their mean; once for each kind.
    Counts(&'static str),
    /// The metric of the original, or a further one. The first of a run is the one it is about.
    Metric {
        /// What it is ("files/s").
        name: Cow<'static, str>,
        /// Its unit as the original prints it.
        unit: &'static str,
        /// Its value, rounded as the original rounds.
        value: f64,
        /// Larger is better.
        higher_is_better: bool,
    },
}
