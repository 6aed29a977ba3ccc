//! The two request pools of a queue, with `nr_requests` requests each, congestion, and batching.
//!
//! Under overload, processes take turns in bursts of up to 32 requests. The elevator has at most
//! `nr_requests` requests of a pool, or half as many again in bursts. This limits every window in
//! which requests can be reordered.

use seekwell_core::event::Asleep;
use seekwell_core::{Bio, Era, Instant, IocId, Nanos, Side, TaskId};
use std::collections::VecDeque;

/// Number of requests that a batching process may take.
const BATCH_REQUESTS: u32 = 32;
/// Time for which a process may batch: 1/50 s.
const BATCH_TIME: Nanos = Nanos::from_ms(20);

#[derive(Clone, Copy, Debug, Default)]
struct Batcher {
    left: u32,
    until: Instant,
}

/// A bio that waits for a request.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The bio.
    pub bio: Bio,
    /// Io context of the bio.
    pub ioc: IocId,
    /// Time at which the bio arrived.
    pub arrived: Instant,
}

#[derive(Debug, Default)]
struct Pool {
    count: u32,
    full: bool,
    congested: bool,
    waiting: VecDeque<Waiting>,
}

/// Both pools of a queue, and the contexts that are batching.
#[derive(Debug)]
pub struct Pools {
    pool: [Pool; 2],
    batchers: Side<Batcher>,
    by_direction: bool,
}

/// The decision of a pool on a request. It takes the answer of the elevator into account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grant {
    /// A request was granted and counted.
    Yes,
    /// The bio must sleep.
    No,
}

impl Pools {
    /// Creates empty pools, for reads and writes (2.6) or for sync and async requests (3.x and
    /// later).
    pub fn new(era: Era) -> Self {
        Pools {
            pool: [Pool::default(), Pool::default()],
            batchers: Side::new(),
            by_direction: era <= Era::K2_6_24,
        }
    }
    /// Returns the index of the pool for a request.
    pub fn index(&self, is_write: bool, is_sync: bool) -> usize {
        if self.by_direction {
            is_write as usize
        } else {
            !is_sync as usize
        }
    }
    /// Returns the number of requests in use in a pool.
    pub fn count(&self, p: usize) -> u32 {
        self.pool[p].count
    }
    /// Returns whether a pool is congested. Writeback and read-ahead should then back off.
    pub fn congested(&self, p: usize) -> bool {
        self.pool[p].congested
    }
    /// Returns the number of bios that sleep on a pool.
    pub fn waiting(&self, p: usize) -> usize {
        self.pool[p].waiting.len()
    }

    fn batching(&mut self, ioc: IocId, now: Instant) -> bool {
        let b = self.batchers.at(ioc.idx());
        b.left == BATCH_REQUESTS || (b.left > 0 && now < b.until)
    }
    fn make_batcher(&mut self, ioc: IocId, now: Instant) {
        if self.batching(ioc, now) {
            return;
        }
        *self.batchers.at(ioc.idx()) = Batcher {
            left: BATCH_REQUESTS,
            until: now + BATCH_TIME,
        };
    }
    /// Forgets a context whose index was freed.
    pub fn forget(&mut self, ioc: IocId) {
        *self.batchers.at(ioc.idx()) = Batcher::default();
    }

    /// Tries to take a request from pool `p` for `ioc`. `n` is nr_requests. `must`: the elevator
    /// answered MUST.
    pub fn take(&mut self, p: usize, ioc: IocId, n: u32, must: bool, now: Instant) -> Grant {
        let count = self.pool[p].count;
        let congested_on = (n - n / 8 + 1).min(n);
        if count.saturating_add(1) >= congested_on {
            if count.saturating_add(1) >= n {
                if !self.pool[p].full {
                    self.make_batcher(ioc, now);
                    self.pool[p].full = true;
                } else if !must && !self.batching(ioc, now) {
                    return Grant::No;
                }
            }
            self.pool[p].congested = true;
        }
        if u64::from(count) >= u64::from(n) * 3 / 2 {
            return Grant::No;
        }
        self.pool[p].count += 1;
        if self.batching(ioc, now) {
            let b = self.batchers.at(ioc.idx());
            b.left = b.left.saturating_sub(1);
        }
        Grant::Yes
    }
    /// Returns whether a bio of `task` sleeps on a pool.
    pub fn has_waiting(&self, task: TaskId) -> bool {
        let asleep =
            |p: &Pool| !p.waiting.is_empty() && p.waiting.iter().any(|w| w.bio.task == task);
        self.pool.iter().any(asleep)
    }
    /// Returns all sleeping bios, pool by pool. The longest sleep of a pool comes first.
    pub fn asleep(&self, now: Instant) -> Vec<Asleep> {
        let all = self.pool.iter().flat_map(|p| &p.waiting);
        all.map(|w| Asleep::new(now, &w.bio, w.arrived)).collect()
    }
    /// Puts a bio to sleep on pool `p`.
    pub fn sleep(&mut self, p: usize, w: Waiting) {
        self.pool[p].waiting.push_back(w);
    }
    /// Frees a request of pool `p`. Returns true if a sleeping bio may be woken.
    pub fn give(&mut self, p: usize, n: u32) -> bool {
        let pool = &mut self.pool[p];
        pool.count -= 1;
        let off = (n - n / 8).saturating_sub(n / 16 + 1).max(1);
        if pool.count < off {
            pool.congested = false;
        }
        if pool.count < n {
            pool.full = false;
            return !pool.waiting.is_empty();
        }
        false
    }
    /// Wakes the bio that has slept longest. Its context becomes a batcher.
    pub fn wake(&mut self, p: usize, now: Instant) -> Option<Waiting> {
        let w = self.pool[p].waiting.pop_front()?;
        self.make_batcher(w.ioc, now);
        Some(w)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_of_128_requests_is_congested_from_the_113th_and_full_at_the_128th() {
        let (mut p, t) = (Pools::new(Era::K4_0), Instant::START);
        let hog = IocId(0);
        for i in 0..112 {
            assert_eq!(p.take(0, hog, 128, false, t), Grant::Yes);
            assert_eq!(p.congested(0), i + 1 >= 113, "at {i}");
        }
        assert_eq!(p.take(0, hog, 128, false, t), Grant::Yes);
        assert!(p.congested(0), "113th request");
        for _ in 113..128 {
            assert_eq!(p.take(0, hog, 128, false, t), Grant::Yes);
        }
        // The context that filled the pool is a batcher. It has 32 credits, of which it used one to
        // fill the pool.
        for _ in 0..31 {
            assert_eq!(p.take(0, hog, 128, false, t), Grant::Yes);
        }
        assert_eq!(p.take(0, hog, 128, false, t), Grant::No);
        assert_eq!(p.take(0, IocId(1), 128, false, t), Grant::No);
        assert_eq!(p.take(0, IocId(1), 128, true, t), Grant::Yes, "must");
        assert_eq!(
            p.take(1, IocId(1), 128, false, t),
            Grant::Yes,
            "the other pool is empty"
        );
    }

    /// The pool is congested from the 113th request on, until fewer than 103 requests are in use.
    /// The next 113th request makes it congested again.
    #[test]
    fn congestion_ends_at_a_lower_threshold_than_it_begins() {
        let (mut p, t) = (Pools::new(Era::K4_0), Instant::START);
        let take = |p: &mut Pools, n| {
            for _ in 0..n {
                assert_eq!(p.take(0, IocId(0), 128, false, t), Grant::Yes);
            }
        };
        take(&mut p, 113);
        for in_use in (100..113).rev() {
            p.give(0, 128);
            assert_eq!(p.congested(0), in_use >= 103, "{in_use} in use");
        }
        take(&mut p, 12);
        assert!(p.count(0) == 112 && !p.congested(0));
        take(&mut p, 1);
        assert!(p.congested(0));
        // The smallest possible pool is congested from its last request on, until no request is in
        // use.
        let mut p = Pools::new(Era::K4_0);
        for n in [4u32, 1] {
            for _ in 0..n {
                p.take(0, IocId(0), n, false, t);
            }
            assert!(p.congested(0));
            for _ in 1..n {
                p.give(0, n);
            }
            let off = (n - n / 8 - n / 16).saturating_sub(1).max(1);
            assert_eq!(p.congested(0), 1 >= off, "{n}");
            p.give(0, n);
            assert!(!p.congested(0));
        }
    }

    #[test]
    fn forced_allocation_stops_at_one_and_a_half_times_nr_requests() {
        let (mut p, t) = (Pools::new(Era::K4_0), Instant::START);
        let taken = (0..1000)
            .filter(|_| p.take(0, IocId(0), 128, true, t) == Grant::Yes)
            .count();
        assert_eq!(taken, 192);
    }
}
