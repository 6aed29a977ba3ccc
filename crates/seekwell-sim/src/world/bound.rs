//! Limits that end runs which would not end by themselves.
//!
//! A starved task can prevent the end of a run. Every run therefore has a limit in simulated time.
//! A limit that the user sets counts from the start of the run. Otherwise these default limits are
//! used:
//!
//! - [`LAY_OUT`] limits the time until the workload's clock starts. The largest preparation of the
//!   catalogue (13 GB of `mysql-scan`) takes 4 min on a hard disk, and 22 min on a memory card of
//!   10 MB/s.
//! - [`FIXED`] limits the time after that, if the workload does a fixed amount of work. It is three
//!   times the longest run of the catalogue on a slow hard disk. That run is `app-start`, with 20
//!   min under mq-deadline on `hdd:hitachi-7k200`. The next is `compilebench` with 10 min.
//! - [`SPANS`] limits the time after that, if the workload has a fixed duration. It is a factor for
//!   the duration, and the limit is at least [`SPAN_LEAST`]. Such a run ends by itself, unless a
//!   task is stuck in a call.
//!
//! A fixed amount of work also has a limit in work: [`WORK`] system calls and block I/Os. It is
//! meant for fast drives, on which an hour of simulated time takes too long to compute. The limit
//! corresponds to some minutes of CPU time. It is about a hundred times the work of the largest
//! workload of the catalogue (2.2 million, `postmark`).

use seekwell_core::{Instant, Nanos};

/// Longest time until the workload's clock starts.
const LAY_OUT: Nanos = Nanos::from_secs(3600);
/// Longest time for a fixed amount of work.
pub const FIXED: Nanos = Nanos::from_secs(3600);
/// Factor between a fixed duration and its limit.
pub const SPANS: u64 = 3;
/// Least limit for a fixed duration.
pub const SPAN_LEAST: Nanos = Nanos::from_secs(600);
/// Largest number of system calls and block I/Os for a fixed amount of work.
pub const WORK: u64 = 200_000_000;

/// Returns the default limit, from the start of the workload's clock. `span` is the measured
/// duration of the workload, if this duration is fixed.
pub fn usual(span: Option<Nanos>) -> Nanos {
    match span {
        None => FIXED,
        Some(span) => Nanos(span.0.saturating_mul(SPANS)).max(SPAN_LEAST),
    }
}

/// The text that tells the user how to set a longer limit.
const MORE: &str = "change it with --machine limit=SECONDS";

/// The limits of an active run.
pub(super) struct Bound {
    /// Time at which the run ends.
    pub(super) at: Instant,
    /// Time from which the limit counts.
    from: Instant,
    /// Whether the user set the limit.
    given: bool,
    /// The default limit, as long as the workload's clock has not started.
    pending: Option<Nanos>,
    /// Largest number of system calls and block I/Os.
    work: u64,
}

impl Bound {
    /// Creates the limits: the one that the user set, or the default limits.
    pub(super) fn new(given: Option<Nanos>, span: Option<Nanos>) -> Self {
        let from = Instant::START;
        match given {
            Some(limit) => Bound {
                at: from + limit,
                from,
                given: true,
                pending: None,
                work: u64::MAX,
            },
            None => Bound {
                at: from + LAY_OUT,
                from,
                given: false,
                pending: Some(usual(span)),
                work: span.map_or(WORK, |_| u64::MAX),
            },
        }
    }
    /// Handles the start of the workload's clock.
    #[inline]
    pub(super) fn clock(&mut self, start: Option<Instant>) {
        if let Some(start) = start
            && let Some(limit) = self.pending.take()
        {
            (self.at, self.from) = (start + limit, start);
        }
    }
    /// Returns the reason for ending a run that reached its time limit.
    pub(super) fn time_is_up(&self) -> String {
        let s = self.at.since(self.from).as_secs_f64();
        match self.given {
            true => format!("stopped at the time limit of {s} s"),
            false => format!("stopped at the default limit of {s} s ({MORE})"),
        }
    }
    /// Returns the reason for ending the run, if the run did too much work.
    pub(super) fn too_much(&self, work: u64) -> Option<String> {
        (work >= self.work).then(|| {
            format!(
                "stopped at the default limit of {} million system calls and I/Os ({MORE})",
                self.work / 1_000_000
            )
        })
    }
}
