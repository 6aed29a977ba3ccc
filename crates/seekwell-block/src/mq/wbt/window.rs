//! The window in which read latencies are observed, and the verdict at its end.

use super::super::jiffies::fires_at;
use super::{Moment, Verdict};

/// Length of the window at step 0 and below, ns.
const LENGTH_NS: u64 = 100_000_000;
/// With fewer writes than this, a window gives no verdict.
const WRITES: u32 = 3;

/// The present window, if any, and the read that is observed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    hz: u32,
    ends: Option<i64>,
    length_ns: u64,
    reads: u32,
    read_min_ns: u64,
    writes: u32,
    /// The observed read and its start time. It is the first read that is issued while no read is
    /// observed.
    watched: Option<(u64, u64)>,
}

impl Window {
    pub fn new(hz: u32) -> Self {
        Window {
            hz,
            ends: None,
            length_ns: LENGTH_NS,
            reads: 0,
            read_min_ns: u64::MAX,
            writes: 0,
            watched: None,
        }
    }
    pub fn ends(&self) -> Option<i64> {
        self.ends
    }
    /// Starts a window, if none is running (`rwb_arm_timer`). The fewer writes are allowed, the
    /// shorter is the window.
    pub fn start(&mut self, now: Moment, step: i32) {
        if self.ends.is_some() {
            return;
        }
        self.length_ns = match u64::try_from(step) {
            Ok(s @ 1..) => (LENGTH_NS << 4) / (256 * (s + 1)).isqrt(),
            _ => LENGTH_NS,
        };
        let ticks = (u128::from(self.length_ns) * u128::from(self.hz) / 1_000_000_000) as i64;
        self.ends = Some(fires_at(now.jiffy, now.jiffy + ticks));
        (self.reads, self.read_min_ns, self.writes) = (0, u64::MAX, 0);
    }
    /// Ends the window when its timer has fired.
    pub fn close(&mut self) {
        self.ends = None;
    }
    /// Stops the window and the observation of a read.
    pub fn stop(&mut self) {
        self.ends = None;
        self.watched = None;
    }
    pub fn watch(&mut self, id: u64, start_ns: u64) {
        self.watched.get_or_insert((id, start_ns));
    }
    pub fn forget(&mut self, id: u64) {
        self.watched = self.watched.filter(|w| w.0 != id);
    }
    pub fn read(&mut self, latency_ns: u64) {
        if self.ends.is_some() {
            self.reads += 1;
            self.read_min_ns = self.read_min_ns.min(latency_ns);
        }
    }
    pub fn write(&mut self) {
        if self.ends.is_some() {
            self.writes += 1;
        }
    }
    /// Returns the verdict of the window (`latency_exceeded`). `busy`: a task was recently held for
    /// dirty pages, or writes are in progress.
    pub fn judge(&self, now: Moment, target_ns: u64, busy: bool) -> Verdict {
        let age_ns = self.watched.map_or(0, |w| now.ns.saturating_sub(w.1));
        if age_ns > self.length_ns || (age_ns > target_ns && self.reads == 0) {
            return Verdict::Exceeded;
        }
        if self.reads == 0 || self.writes < WRITES {
            return match self.writes > 0 || busy {
                true => Verdict::OnlyWrites,
                false => Verdict::Unknown,
            };
        }
        match self.read_min_ns > target_ns {
            true => Verdict::Exceeded,
            false => Verdict::Ok,
        }
    }
}
