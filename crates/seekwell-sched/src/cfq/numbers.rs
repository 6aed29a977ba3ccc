//! Arithmetic that all versions share: mean think time, mean seek distance, and the choice between
//! two requests.

use super::tunables::Settings;
use seekwell_core::{Flags, Requests, RqId, Sector};

/// Returns true if a decaying mean has enough samples to be used (from the third sample on).
pub(super) const fn valid(samples: u64) -> bool {
    samples > 80
}

/// Think time: the decaying mean of the time from a completion to the next request, in jiffies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThinkTime {
    /// The jiffy of the last completion.
    pub last_end: u64,
    samples: u64,
    total: u64,
    mean: u64,
}

impl ThinkTime {
    /// Returns a record without samples whose last completion is at jiffy `now`.
    pub const fn starting(now: u64) -> Self {
        ThinkTime {
            last_end: now,
            samples: 0,
            total: 0,
            mean: 0,
        }
    }
    /// `__cfq_update_io_thinktime`: adds the time since the last completion to the mean. A time
    /// above twice `limit` counts as twice `limit`.
    #[inline]
    pub fn update(&mut self, now: u64, limit: u64) {
        let elapsed = now.wrapping_sub(self.last_end).min(2 * limit);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * elapsed) / 8;
        self.mean = (self.total + 128) / self.samples;
    }
    /// Returns the mean in jiffies, if there are enough samples.
    #[inline]
    pub fn mean(&self) -> Option<u64> {
        valid(self.samples).then_some(self.mean)
    }
    /// Returns true if there are enough samples and the mean is above `limit`.
    #[inline]
    pub fn big(&self, limit: u64) -> bool {
        self.mean().is_some_and(|m| m > limit)
    }
    /// Asserts that the sample count is below its limit.
    pub fn check(&self) {
        assert!(
            self.samples <= 249,
            "cfq: a sample count grows past its limit"
        );
    }
}

/// Mean distance between the requests of a context, in sectors (2.6 only).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SeekMean {
    /// End sector of the context's last request.
    pub last_pos: Sector,
    samples: u64,
    total: u64,
    mean: u64,
}

impl SeekMean {
    /// Adds the distance of a request to the mean. A cap limits the effect of one large distance.
    #[inline]
    pub fn update(&mut self, start: Sector) {
        let cap = if self.samples <= 60 { 2 << 20 } else { 2 << 16 };
        let d = start.distance(self.last_pos).min(self.mean * 4 + cap);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * d) / 8;
        self.mean = (self.total + self.samples / 2) / self.samples;
    }
    /// Returns the mean in sectors, even if there are too few samples.
    #[inline]
    pub fn mean(&self) -> u64 {
        self.mean
    }
    /// Returns true if there are enough samples.
    #[inline]
    pub fn valid(&self) -> bool {
        valid(self.samples)
    }
}

/// The criteria of [`choose`], apart from distance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// The flag that gives a request precedence: PRIO (3.x), META (2.6.24), or none (2.6.18).
    pub boost: Flags,
    /// The assumed position of the head.
    pub pos: Sector,
}

/// `cfq_choose_req`: returns the better of two requests of a queue. A sync request wins, then a
/// request with the boost flag, then the nearer request.
pub(super) fn choose(
    rqs: &Requests,
    set: &Settings,
    by: Choice,
    r1: Option<RqId>,
    r2: Option<RqId>,
) -> Option<RqId> {
    let (Some(a), Some(b)) = (r1, r2) else {
        return r1.or(r2);
    };
    if a == b {
        return r1;
    }
    let (x, y) = (&rqs[a], &rqs[b]);
    if x.sync != y.sync && !by.boost.is_empty() {
        return if x.sync { r1 } else { r2 };
    }
    let (bx, by_) = (x.flags.intersects(by.boost), y.flags.intersects(by.boost));
    if bx != by_ {
        return if bx { r1 } else { r2 };
    }
    let back_max = set.back_seek_max_kib * 2;
    let distance = |s: Sector| {
        if s >= by.pos {
            Some(s.0 - by.pos.0)
        } else if s.0 + back_max >= by.pos.0 {
            Some((by.pos.0 - s.0).saturating_mul(set.back_seek_penalty))
        } else {
            None
        }
    };
    match (distance(x.sector), distance(y.sector)) {
        (Some(dx), Some(dy)) if dx != dy => {
            if dx < dy {
                r1
            } else {
                r2
            }
        }
        (Some(_), Some(_)) => {
            if x.sector >= y.sector {
                r1
            } else {
                r2
            }
        }
        (Some(_), None) => r1,
        (None, Some(_)) => r2,
        // If both are too far behind the head, the next sweep starts at the lower one.
        (None, None) => {
            if x.sector <= y.sector {
                r1
            } else {
                r2
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_time_is_used_from_the_third_sample_on() {
        let mut t = ThinkTime::starting(1000);
        let mut seen = Vec::new();
        for _ in 0..5 {
            t.update(1010, 8);
            seen.push(t.samples);
            assert_eq!(t.mean().is_some(), seen.len() >= 3);
        }
        assert_eq!(seen, [32, 60, 84, 105, 123]);
        assert_eq!(
            t.mean(),
            Some(11),
            "the kernel rounds up while samples are few"
        );
        for _ in 0..1000 {
            t.update(1_000_000, 8);
        }
        assert_eq!(t.mean(), Some(16));
        t.check();
    }
}
