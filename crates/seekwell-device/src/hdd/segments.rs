//! The read cache of the disk. It consists of segments; each segment holds a contiguous run of
//! sectors. The runs do not overlap. The least recently used segment is replaced first.
//!
//! One pool of segments holds sectors that were read. Another pool keeps written sectors readable.
//! The model leaves out adaptive segmentation: all segments have the same size.

use seekwell_core::{Links, List};

/// All segments of a drive. An index by address makes the search fast, because every command
/// searches.
#[derive(Debug, Clone)]
pub(super) struct Segments {
    /// The run of each segment: (first sector, length). An empty run starts at `NOWHERE`.
    runs: Vec<(u64, u64)>,
    /// First sectors of the runs in ascending order; empty runs are last. `order` holds the segment
    /// of each. The list is short, so a linear scan is faster than a binary search.
    starts: Vec<u64>,
    order: Vec<u32>,
    /// The read pool and the write pool. In each, the least recently used segment is first.
    pools: [List; 2],
    links: Links,
    /// Number of segments in the read pool. Their indices are lower than those of the write pool.
    reads: usize,
    limit: u64,
}

/// Start of an empty run. It is greater than every address.
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
            starts: vec![NOWHERE; n as usize],
            order: (0..n).collect(),
            pools,
            links,
            reads: reads as usize,
            limit: limit.max(1),
        }
    }
    /// Returns true if the read pool has segments.
    pub fn any(&self) -> bool {
        self.reads > 0
    }
    /// Returns the run of a segment: [first, end).
    #[inline]
    pub fn run(&self, i: usize) -> (u64, u64) {
        let (s, n) = self.runs[i];
        (s, s.wrapping_add(n))
    }
    /// Marks a segment as most recently used.
    #[inline]
    pub fn touch(&mut self, i: usize) {
        let pool = &mut self.pools[usize::from(i >= self.reads)];
        if pool.last() != Some(i as u32) {
            self.links.remove(pool, i as u32);
            self.links.push_back(pool, i as u32);
        }
    }
    /// Returns the number of runs that begin before sector `a`.
    #[inline]
    fn before(&self, a: u64) -> usize {
        self.starts.iter().map(|&s| usize::from(s < a)).sum()
    }
    /// Returns the segment whose run begins exactly at `a`. `place` is the number of runs that
    /// begin before `a`.
    #[inline]
    fn begins(&self, place: usize, a: u64) -> Option<usize> {
        (self.starts.get(place) == Some(&a) && a != NOWHERE).then(|| self.order[place] as usize)
    }
    /// Returns the segment of the last run that begins before `a`, if this run contains `a` or ends
    /// at `a`.
    #[inline]
    fn reaches(&self, place: usize, a: u64) -> Option<usize> {
        let i = self.order[place.checked_sub(1)?] as usize;
        (self.run(i).1 >= a).then_some(i)
    }
    /// Returns the segment that contains sector `a`, or else the segment that ends just before `a`.
    #[inline]
    pub fn find(&self, a: u64) -> Option<usize> {
        let place = self.before(a);
        self.begins(place, a).or_else(|| self.reaches(place, a))
    }
    /// Stores sectors [a, b) that were read. They go into the segment that they continue, or else
    /// into the least recently used segment of the read pool. Returns the segment.
    pub fn fill(&mut self, a: u64, b: u64) -> usize {
        self.put(READ, a, b)
    }
    /// Stores sectors [a, b) that were written in the write pool, so that they can be read from the
    /// cache.
    pub fn keep(&mut self, a: u64, b: u64) {
        if !self.pools[WRITE].is_empty() {
            self.put(WRITE, a, b);
        }
    }
    fn put(&mut self, pool: usize, a: u64, b: u64) -> usize {
        let mut place = self.before(a);
        let ours = |i: &usize| usize::from(*i >= self.reads) == pool;
        let i = if let Some(i) = self.begins(place, a).filter(ours) {
            i
        } else if let Some(i) = self.reaches(place, a).filter(ours) {
            place -= 1;
            i
        } else {
            let i = self.pools[pool].first().map_or(0, |i| i as usize);
            place = self.shift(i, place);
            self.runs[i] = (a, 0);
            self.starts[place] = a;
            i
        };
        self.clear(place, a, b);
        self.extend(place, b);
        self.touch(i);
        i
    }
    /// Returns the position of segment `i` in `order`.
    #[inline]
    fn place(&self, i: usize) -> usize {
        // Every segment is in `order`.
        let found = self.order.iter().position(|&x| x == i as u32);
        found.unwrap_or(0)
    }
    /// Moves segment `i` in `order` to the position before the run at `place`. Returns its new
    /// position.
    #[inline]
    fn shift(&mut self, i: usize, place: usize) -> usize {
        let from = self.place(i);
        let to = if from < place {
            self.starts.copy_within(from + 1..place, from);
            self.order.copy_within(from + 1..place, from);
            place - 1
        } else {
            self.starts.copy_within(place..from, place + 1);
            self.order.copy_within(place..from, place + 1);
            place
        };
        self.order[to] = i as u32;
        to
    }
    /// Extends segment `i` up to sector `b`, while read-ahead progresses.
    #[inline]
    pub fn grow(&mut self, i: usize, b: u64) {
        let had = self.run(i).1;
        if b > had {
            let place = self.place(i);
            self.clear(place, had, b);
            self.extend(place, b);
        }
    }
    /// Extends the segment at position `place` up to `b`. Removes its oldest sectors if it becomes
    /// too long. No other run may contain the new sectors.
    #[inline]
    fn extend(&mut self, place: usize, b: u64) {
        let run = &mut self.runs[self.order[place] as usize];
        let end = (run.0 + run.1).max(b);
        let s = run.0.max(end.saturating_sub(self.limit));
        *run = (s, end - s);
        self.starts[place] = s;
    }
    /// Removes sectors [a, b) from all segments except the segment at `place`, which begins at `a`
    /// or ends at `a`. If a run is cut in two, its front part remains.
    #[inline]
    fn clear(&mut self, place: usize, a: u64, b: u64) {
        if let Some(before) = place.checked_sub(1) {
            let (s, n) = &mut self.runs[self.order[before] as usize];
            *n = (*n).min(a - *s);
        }
        let next = place + 1;
        while let Some(&s) = self.starts.get(next)
            && s < b
        {
            let i = self.order[next] as usize;
            let end = self.run(i).1;
            if b < end {
                self.runs[i] = (b, end - b);
                self.starts[next] = b;
                return;
            }
            let last = self.shift(i, self.order.len());
            self.runs[i] = (NOWHERE, 0);
            self.starts[last] = NOWHERE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn least_recently_used_segment_is_evicted() {
        let mut s = Segments::new(2, 0, 100);
        s.fill(0, 10);
        s.fill(1000, 1010);
        s.fill(10, 20); // continues the first run
        s.fill(5000, 5001);
        assert_eq!(s.find(5), Some(0));
        assert_eq!(s.find(1005), None);
    }

    #[test]
    fn full_segment_drops_its_oldest_sectors() {
        let mut s = Segments::new(1, 0, 100);
        s.fill(0, 80);
        s.fill(80, 160);
        assert_eq!(s.run(0), (60, 160));
    }

    /// A simple implementation without the index, for comparison. Every operation scans all
    /// segments.
    struct Plain {
        runs: Vec<(u64, u64)>,
        used: Vec<u32>,
        reads: usize,
        limit: u64,
        clock: u32,
    }

    impl Plain {
        fn new(reads: usize, writes: usize, limit: u64) -> Self {
            let n = reads + writes;
            Plain {
                runs: vec![(NOWHERE, NOWHERE); n],
                used: (0..n as u32).collect(),
                reads,
                limit,
                clock: n as u32,
            }
        }
        fn holds(&self, a: u64) -> Option<usize> {
            self.runs.iter().position(|r| r.0 <= a && a < r.1)
        }
        fn find(&self, a: u64) -> Option<usize> {
            let ends = |r: &(u64, u64)| r.1 == a && r.0 < a;
            self.holds(a).or_else(|| self.runs.iter().position(ends))
        }
        fn put(&mut self, write: bool, a: u64, b: u64) -> usize {
            let pool = if write {
                self.reads..self.runs.len()
            } else {
                0..self.reads
            };
            let ends = |i: &usize| self.runs[*i].1 == a && self.runs[*i].0 < a;
            let into = self.holds(a).filter(|i| pool.contains(i));
            let into = into.or_else(|| pool.clone().find(ends));
            let i = into.unwrap_or_else(|| {
                let i = pool.min_by_key(|&i| self.used[i]).unwrap();
                self.runs[i] = (a, a);
                i
            });
            self.used[i] = self.clock;
            self.clock += 1;
            self.grow(i, a, b);
            i
        }
        fn grow(&mut self, but: usize, a: u64, b: u64) {
            for (i, r) in self.runs.iter_mut().enumerate() {
                if i == but || r.0 >= b || r.1 <= a {
                } else if r.0 < a {
                    r.1 = a;
                } else if r.1 > b {
                    r.0 = b;
                } else {
                    *r = (NOWHERE, NOWHERE);
                }
            }
            let r = &mut self.runs[but];
            r.1 = r.1.max(b);
            r.0 = r.0.max(r.1.saturating_sub(self.limit));
        }
    }

    proptest! {
        /// The index changes only the running time, not the results.
        #[test]
        fn segment_index_agrees_with_a_linear_search(fills in proptest::collection::vec(
            (0u64..400, 1u64..120, any::<bool>(), prop::option::of(1u64..100)), 1..80,
        ), reads in 1u32..8, writes in 0u32..4) {
            let mut s = Segments::new(reads, writes, 64);
            let mut plain = Plain::new(reads as usize, writes as usize, 64);
            for (a, n, write, ahead) in fills {
                if write {
                    s.keep(a, a + n);
                    if writes > 0 {
                        plain.put(true, a, a + n);
                    }
                } else {
                    let i = s.fill(a, a + n);
                    prop_assert_eq!(i, plain.put(false, a, a + n));
                    if let Some(more) = ahead {
                        let had = s.run(i).1;
                        s.grow(i, had + more);
                        plain.grow(i, had, had + more);
                    }
                }
                for i in 0..plain.runs.len() {
                    prop_assert_eq!(s.run(i), plain.runs[i]);
                }
                for a in 0..620 {
                    prop_assert_eq!(s.find(a), plain.find(a), "{}: {:?}", a, plain.runs);
                }
            }
        }

        /// Runs never overlap and never exceed their limit. The most recently stored sectors are
        /// present.
        #[test]
        fn segments_never_overlap_or_exceed_their_limit(fills in proptest::collection::vec(
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
