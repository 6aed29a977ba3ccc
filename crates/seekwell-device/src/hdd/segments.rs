//! The read cache: contiguous runs of sectors, least recently used replaced, no overlap.
//!
//! One pool of segments for reads and one for written data that stay readable. Left out: adaptive
//! segmentation (segments have one size).

use seekwell_core::{Links, List};

/// All segments of a drive. Searched on every command, so the loops have one branch a segment, and
/// that one goes the same way nearly always.
#[derive(Debug, Clone)]
pub(super) struct Segments {
    /// (first sector, length). An empty run starts at `NOWHERE`.
    runs: Vec<(u64, u64)>,
    /// Read pool and write pool, least recently used first.
    pools: [List; 2],
    links: Links,
    /// The first so many are the read pool.
    reads: usize,
    limit: u64,
    /// The segment filled last, and an address before which no other run begins behind it.
    barrier: (usize, u64),
}

/// Start of an empty run: no address is at or behind it.
const NOWHERE: u64 = u64::MAX;
const READ: usize = 0;
const WRITE: usize = 1;

impl Segments {
    pub fn new(reads: u32, writes: u32, limit: u64) -> Self {
        let n = reads + writes;
        let (mut links, mut pools) = (Links::new(), [List::new(); 2]);
        for i in 0..n {
            links.push_back(&mut pools[usize::from(i >= reads)], i);
        }
        Segments {
            runs: vec![(NOWHERE, 0); n as usize],
            pools,
            links,
            reads: reads as usize,
            limit: limit.max(1),
            barrier: (0, 0),
        }
    }
    /// Is there a read pool?
    pub fn any(&self) -> bool {
        self.reads > 0
    }
    /// The run of a segment: first sector, and behind the last.
    #[inline]
    pub fn run(&self, i: usize) -> (u64, u64) {
        let (s, n) = self.runs[i];
        (s, s.wrapping_add(n))
    }
    /// Marks it used.
    #[inline]
    pub fn touch(&mut self, i: usize) {
        let pool = &mut self.pools[usize::from(i >= self.reads)];
        if pool.last() != Some(i as u32) {
            self.links.remove(pool, i as u32);
            self.links.push_back(pool, i as u32);
        }
    }
    /// The segment that holds sector `a` or ends right before it; the first kind preferred.
    #[inline]
    pub fn find(&self, a: u64) -> Option<usize> {
        let mut next_to = None;
        for (i, &(s, n)) in self.runs.iter().enumerate() {
            if a.wrapping_sub(s) <= n && s != NOWHERE {
                if a - s < n {
                    return Some(i);
                }
                next_to = Some(i);
            }
        }
        next_to
    }
    /// Puts sectors read into the segment they continue, or into the one not used for longest.
    pub fn fill(&mut self, a: u64, b: u64) -> usize {
        self.put(READ, a, b)
    }
    /// Keeps written sectors readable.
    pub fn keep(&mut self, a: u64, b: u64) {
        if !self.pools[WRITE].is_empty() {
            self.put(WRITE, a, b);
        }
    }
    fn put(&mut self, pool: usize, a: u64, b: u64) -> usize {
        // One pass finds the run to continue and whether any other is in the way.
        let (mut into, mut clash, mut ahead) = (None, false, u64::MAX);
        for (i, &(s, n)) in self.runs.iter().enumerate() {
            let beyond = s.wrapping_sub(a);
            ahead = ahead.min(beyond.wrapping_sub(1));
            if ((a.wrapping_sub(s) <= n) | (beyond < b - a)) && s != NOWHERE {
                let ours = s <= a && usize::from(i >= self.reads) == pool;
                if ours && (into.is_none() || a - s < n) {
                    clash |= into.is_some();
                    into = Some(i);
                } else {
                    clash = true;
                }
            }
        }
        let i = into.unwrap_or_else(|| {
            let i = self.pools[pool].first().map_or(0, |i| i as usize);
            self.runs[i] = (a, 0);
            i
        });
        // A run cut off by this one begins at `b` now.
        let beyond = if clash {
            b
        } else {
            a.saturating_add(ahead).saturating_add(1)
        };
        self.barrier = (i, beyond);
        self.extend(i, b);
        self.touch(i);
        if clash {
            self.clear(a, b, i);
        }
        i
    }
    /// Lengthens a segment to `b`, as read-ahead goes on.
    #[inline]
    pub fn grow(&mut self, i: usize, b: u64) {
        let had = self.run(i).1;
        if b > had {
            self.extend(i, b);
            if i != self.barrier.0 || b > self.barrier.1 {
                self.clear(had, b, i);
            }
        }
    }
    /// Lengthens a segment to `b`; its oldest sectors make room.
    #[inline]
    fn extend(&mut self, i: usize, b: u64) {
        let (s, n) = self.runs[i];
        let end = (s + n).max(b);
        let s = s.max(end.saturating_sub(self.limit));
        self.runs[i] = (s, end - s);
    }
    /// Takes sectors [a, b) out of all segments but `but`; of a run cut in two the front stays.
    #[inline]
    fn clear(&mut self, a: u64, b: u64, but: usize) {
        for (i, run) in self.runs.iter_mut().enumerate() {
            let (s, n) = *run;
            if (a.wrapping_sub(s) < n) | (s.wrapping_sub(a) < b - a) && i != but && s != NOWHERE {
                *run = if s < a {
                    (s, a - s)
                } else if b < s + n {
                    (b, s + n - b)
                } else {
                    (NOWHERE, 0)
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn least_recently_used_goes() {
        let mut s = Segments::new(2, 0, 100);
        s.fill(0, 10);
        s.fill(1000, 1010);
        s.fill(10, 20); // continues the first
        s.fill(5000, 5001);
        assert_eq!(s.find(5), Some(0));
        assert_eq!(s.find(1005), None);
    }

    #[test]
    fn a_segment_is_circular() {
        let mut s = Segments::new(1, 0, 100);
        s.fill(0, 80);
        s.fill(80, 160);
        assert_eq!(s.run(0), (60, 160));
    }

    proptest! {
        /// Runs never overlap nor outgrow their limit, and what was just filled is there.
        #[test]
        fn no_overlap(fills in proptest::collection::vec(
            (0u64..500, 1u64..120, any::<bool>(), prop::option::of(1u64..100)), 1..60,
        )) {
            let mut s = Segments::new(4, 2, 64);
            for (a, n, write, ahead) in fills {
                let mut last = a + n - 1;
                if write {
                    s.keep(a, a + n);
                } else {
                    let i = s.fill(a, a + n);
                    if let Some(more) = ahead {
                        s.grow(i, a + n + more);
                        last += more;
                    }
                }
                prop_assert!(s.find(last).is_some_and(|i| s.run(i).1 > last));
                for i in 0..6 {
                    let (x, y) = s.run(i);
                    prop_assert!(y - x <= 64);
                    for j in 0..i {
                        let (u, v) = s.run(j);
                        prop_assert!(x == y || u == v || y <= u || v <= x, "{:?}", s.runs);
                    }
                }
            }
        }
    }
}
