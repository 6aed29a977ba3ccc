//! Progress of a run, for observers in other threads.

use seekwell_workload::{Mark, Note};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Progress of a run, for observers in other threads.
#[derive(Debug, Default)]
pub struct Pulse {
    operations: AtomicU64,
    /// Time at which the clock of the workload started. Not set before that time.
    clock: OnceLock<std::time::Instant>,
}

impl Pulse {
    /// Returns the number of completed operations.
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }
    /// Returns the time since the clock of the workload started, or `None` before that.
    pub fn clock(&self) -> Option<Duration> {
        self.clock.get().map(std::time::Instant::elapsed)
    }
    /// Updates the progress from a script's note.
    pub(crate) fn note(&self, note: &Note) {
        match note {
            Note::Op { .. } => {
                self.operations.fetch_add(1, Ordering::Relaxed);
            }
            Note::Mark(_, Mark::ClockStart) => {
                self.clock.get_or_init(std::time::Instant::now);
            }
            _ => {}
        }
    }
}
