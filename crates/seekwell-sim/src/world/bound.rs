//! Limits of a run: what ends a run that would not end by itself.
//!
//! A starved task can keep a run from its end for ever. Every run therefore has a limit in
//! simulated time. A limit that is given counts from the start of the run. Without one, the usual
//! limits hold:
//!
//! - [`LAY_OUT`] until the workload's clock starts. The largest lay-out of the catalogue (13 GB of
//!   `mysql-scan`) takes 4 min on a hard disk, and 22 min on a memory card of 10 MB/s.
//! - From then on [`FIXED`] for a given amount of work: three times the longest of the catalogue on
//!   a slow hard disk. That is `app-start` with 20 min under mq-deadline on `hdd:hitachi-7k200`;
//!   the next is `compilebench` with 10 min.
//! - From then on [`SPANS`] times a given duration, at least [`SPAN_LEAST`]: such a run ends by
//!   itself, unless a task waits in a call.
//!
//! A given amount of work also has a limit in work, [`WORK`] system calls and block I/Os, for fast
//! drives, on which an hour is too long to wait for. That is some minutes of CPU time, and a
//! hundred times what any workload of the catalogue does (2.2 million, `postmark`).

use seekwell_core::{Instant, Nanos};

/// Until the workload's clock starts.
const LAY_OUT: Nanos = Nanos::from_secs(3600);
/// For a given amount of work.
pub const FIXED: Nanos = Nanos::from_secs(3600);
/// For a given duration: so many times as long.
pub const SPANS: u64 = 3;
/// For a given duration, at least.
pub const SPAN_LEAST: Nanos = Nanos::from_secs(600);
/// System calls and block I/Os for a given amount of work.
pub const WORK: u64 = 200_000_000;

/// The usual limit in time from the start of the workload's clock; `span`: how long the workload
/// measures, if that is given.
pub fn usual(span: Option<Nanos>) -> Nanos {
    match span {
        None => FIXED,
        Some(span) => Nanos(span.0.saturating_mul(SPANS)).max(SPAN_LEAST),
    }
}

/// How to go on for longer.
const MORE: &str = "--machine limit=SECONDS sets another";

/// The limits of a run that goes on.
pub(super) struct Bound {
    /// The run ends here.
    pub(super) at: Instant,
    /// Counted from here.
    from: Instant,
    /// It was given.
    given: bool,
    /// The usual limit, as long as the workload's clock has not started.
    pending: Option<Nanos>,
    /// System calls and block I/Os at most.
    work: u64,
}

impl Bound {
    /// A limit that was given, or the usual ones.
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
    /// The workload's clock started then.
    #[inline]
    pub(super) fn clock(&mut self, start: Option<Instant>) {
        if let Some(start) = start
            && let Some(limit) = self.pending.take()
        {
            (self.at, self.from) = (start + limit, start);
        }
    }
    /// Why the run ends: its time is up.
    pub(super) fn time_is_up(&self) -> String {
        let s = self.at.since(self.from).as_secs_f64();
        match self.given {
            true => format!("stopped at the time limit of {s} s"),
            false => format!("stopped at the usual limit of {s} s ({MORE})"),
        }
    }
    /// Why the run ends, if it did too much work.
    pub(super) fn too_much(&self, work: u64) -> Option<String> {
        (work >= self.work).then(|| {
            format!(
                "stopped at the usual limit of {} million system calls and I/Os ({MORE})",
                self.work / 1_000_000
            )
        })
    }
}
