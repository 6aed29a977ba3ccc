//! The read cache: contiguous runs of sectors, least recently used replaced, no overlap.
//!
//! One pool of segments for reads and one for written data that stay readable. Left out: adaptive
//! segmentation (segments have one size).

/// All segments of a drive.
#[derive(Debug, Clone)]
pub(super) struct Segments {
    /// (first sector, behind the last); empty when equal.
    runs: Vec<(u64, u64)>,
    used: Vec<u64>,
    /// The first so many are the read pool.
    reads: usize,
    limit: u64,
    clock: u64,
}

impl Segments {
    pub fn new(reads: u32, writes: u32, limit: u64) -> Self {
        let n = (reads + writes) as usize;
        Segments {
            runs: vec![(0, 0); n],
            used: vec![0; n],
            reads: reads as usize,
            limit: limit.max(1),
            clock: 0,
        }
    }
    /// Is there a read pool?
    pub fn any(&self) -> bool {
        self.reads > 0
    }
    /// The run of a segment.
    pub fn run(&self, i: usize) -> (u64, u64) {
        self.runs[i]
    }
    /// Marks it used.
    pub fn touch(&mut self, i: usize) {
        self.clock += 1;
        self.used[i] = self.clock;
    }
    /// The segment that holds sector `a` or ends right before it; the first kind preferred.
    #[inline]
    pub fn find(&self, a: u64) -> Option<usize> {
        let mut next_to = None;
        for (i, &(s, e)) in self.runs.iter().enumerate() {
            if s <= a && a <= e && s < e {
                if a < e {
                    return Some(i);
                }
                next_to = Some(i);
            }
        }
        next_to
    }
    /// Puts sectors read into the segment they continue, or into the one not used for longest.
    pub fn fill(&mut self, a: u64, b: u64) -> usize {
        let i = match self.find(a) {
            Some(i) if i < self.reads => i,
            _ => self.replace(0..self.reads, a),
        };
        self.extend(i, b);
        self.touch(i);
        self.clear(a, b, i);
        i
    }
    /// Keeps written sectors readable.
    pub fn keep(&mut self, a: u64, b: u64) {
        if self.reads == self.runs.len() {
            return;
        }
        let i = match self.find(a) {
            Some(i) if i >= self.reads => i,
            _ => self.replace(self.reads..self.runs.len(), a),
        };
        self.extend(i, b);
        self.touch(i);
        self.clear(a, b, i);
    }
    /// Lengthens a segment to `b`; its oldest sectors make room.
    #[inline]
    pub fn extend(&mut self, i: usize, b: u64) {
        let run = &mut self.runs[i];
        run.1 = run.1.max(b);
        run.0 = run.0.max(run.1.saturating_sub(self.limit));
    }
    fn replace(&mut self, pool: std::ops::Range<usize>, a: u64) -> usize {
        let mut best = pool.start;
        for i in pool {
            if self.used[i] < self.used[best] {
                best = i;
            }
        }
        self.runs[best] = (a, a);
        best
    }
    /// Takes sectors [a, b) out of all segments but `but`; of a run cut in two the front stays.
    pub fn clear(&mut self, a: u64, b: u64, but: usize) {
        for (i, run) in self.runs.iter_mut().enumerate() {
            if i != but && run.0 < b && a < run.1 {
                if run.0 < a {
                    run.1 = a;
                } else {
                    run.0 = b.min(run.1);
                }
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
        fn no_overlap(fills in proptest::collection::vec((0u64..500, 1u64..120, any::<bool>()), 1..60)) {
            let mut s = Segments::new(4, 2, 64);
            for (a, n, write) in fills {
                if write { s.keep(a, a + n) } else { s.fill(a, a + n); }
                let last = a + n - 1;
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
