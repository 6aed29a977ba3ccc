//! The window in which latencies are watched, and what it says at its end.

use super::super::jiffies::fires_at;
use super::{Moment, Verdict};

/// Length at step 0 and below, ns.
const LENGTH_NS: u64 = 100_000_000;
/// Writes without which a window says nothing.
const WRITES: u32 = 3;

/// The window that runs, if one does, and the read that is watched always.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    hz: u32,
    ends: Option<i64>,
    length_ns: u64,
    reads: u32,
    read_min_ns: u64,
    writes: u32,
    /// The first read that was handed to the driver while none was watched, and when.
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
    /// Begins one, if none runs (`rwb_arm_timer`): shorter the fewer writes pass.
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
    /// Its timer fired.
    pub fn close(&mut self) {
        self.ends = None;
    }
    /// It is given up, and nothing watched any more.
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
    /// `latency_exceeded`. `busy`: somebody was held for dirty pages lately, or writes are under
    /// way.
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
