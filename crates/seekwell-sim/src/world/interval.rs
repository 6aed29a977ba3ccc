//! Observes a run at intervals of simulated time, and switches the scheduler between them.

use super::exec::World;
use crate::setup::{Setup, SetupError};
use seekwell_core::result::{Direction, Record};
use seekwell_core::{Instant, Nanos};

/// The bios of one direction.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// The bios that completed in the interval.
    pub done: Direction,
    /// Number of bios in the queue or in the device at the end of the interval.
    pub waiting: u64,
}

/// What happened in an interval.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Length of the interval.
    pub span: Nanos,
    /// The reads.
    pub read: Way,
    /// The writes.
    pub write: Way,
    /// Time in which the device was busy.
    pub busy: Nanos,
    /// Integral over time of the number of bios in progress, ns.
    pub outstanding_ns: u128,
}

/// A run between two intervals.
pub struct Paused<'a>(&'a World);

impl Paused<'_> {
    /// Starts a switch to the scheduler and the tunables of another setup. The switch ends when the
    /// queue is empty.
    ///
    /// # Errors
    /// The queue cannot have this scheduler.
    pub fn switch(&self, to: &Setup) -> Result<(), SetupError> {
        let switched = self.0.meter().switch(self.0.now, to);
        self.0.kernel.disk_changed();
        switched
    }
    /// Adds the device, the active scheduler and the limits of the queue to a record.
    pub fn describe(&self, record: &mut Record) {
        self.0.meter().describe(record);
    }
}

/// Called when the workload's clock starts, and at the end of each interval. Returns the length of
/// the next interval; `None` ends the run.
pub type Each<'a> = &'a mut dyn FnMut(Interval, &Paused<'_>) -> Option<Nanos>;

/// Calls the receiver of the intervals.
pub(super) struct Laps<'a> {
    each: Option<Each<'a>>,
    /// Start of the present interval.
    from: Option<Instant>,
    /// End of the present interval.
    pub(super) at: Instant,
}

impl<'a> Laps<'a> {
    pub(super) fn new(each: Option<Each<'a>>) -> Self {
        Laps {
            at: match each {
                Some(_) => Instant::START,
                None => Instant::FAR,
            },
            each,
            from: None,
        }
    }
    /// Returns the end of the present interval.
    #[inline]
    pub(super) fn end(&self, w: &World) -> Instant {
        // Before the clock starts, there is no interval.
        match w.clock_start {
            Some(_) => self.at,
            None => Instant::FAR,
        }
    }
    /// Ends the present interval. Returns false if the run should end.
    #[cold]
    pub(super) fn next(&mut self, w: &World) -> bool {
        let (Some(each), Some(start)) = (&mut self.each, w.clock_start) else {
            return true;
        };
        let span = w.now.since(self.from.unwrap_or(start));
        let next = each(w.meter().interval(w.now, span), &Paused(w));
        self.from = Some(w.now);
        self.at = w.now + next.unwrap_or(Nanos::ZERO);
        next.is_some()
    }
}
