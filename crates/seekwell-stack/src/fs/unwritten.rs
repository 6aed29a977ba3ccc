//! The unwritten pages of a file: these pages have blocks, but their data are not on the disk. They
//! read as zeros. When their data have reached the disk, the inode must be changed.
//!
//! fallocate makes such ranges. Since 5.6 (dioread_nolock), writeback also makes them. Not
//! modelled: a range that is converted in part splits an extent of the tree.

/// Ranges `start..end`. They are in ascending order, disjoint and not adjacent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unwritten(Vec<(u32, u32)>);

impl Unwritten {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Returns the index of the first range that ends after `at`.
    fn behind(&self, at: u32) -> usize {
        self.0.partition_point(|r| r.1 <= at)
    }
    pub(crate) fn holds(&self, idx: u32) -> bool {
        self.overlaps(idx, 1)
    }
    pub(crate) fn overlaps(&self, start: u32, n: u32) -> bool {
        let r = self.0.get(self.behind(start));
        r.is_some_and(|r| r.0 < start.saturating_add(n))
    }
    /// Adds pages that are not in the set.
    pub(crate) fn add(&mut self, start: u32, n: u32) {
        let end = start + n;
        let i = self.behind(start);
        debug_assert!(!self.overlaps(start, n), "no page twice");
        let joins_before = i > 0 && self.0[i - 1].1 == start;
        let joins_behind = self.0.get(i).is_some_and(|r| r.0 == end);
        match (joins_before, joins_behind) {
            (true, true) => {
                self.0[i - 1].1 = self.0[i].1;
                self.0.remove(i);
            }
            (true, false) => self.0[i - 1].1 = end,
            (false, true) => self.0[i].0 = start,
            (false, false) => self.0.insert(i, (start, end)),
        }
    }
    /// Removes pages that are in the set.
    pub(crate) fn take(&mut self, start: u32, n: u32) {
        let end = start.saturating_add(n);
        let mut i = self.behind(start);
        while let Some(&(from, to)) = self.0.get(i).filter(|r| r.0 < end) {
            match (from < start, to > end) {
                (true, true) => {
                    self.0[i].1 = start;
                    self.0.insert(i + 1, (end, to));
                    return;
                }
                (true, false) => {
                    self.0[i].1 = start;
                    i += 1;
                }
                (false, true) => {
                    self.0[i].0 = end;
                    return;
                }
                (false, false) => {
                    self.0.remove(i);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn unwritten_ranges_agree_with_flags(ops in proptest::collection::vec((any::<bool>(), 0u32..60, 1u32..12), 0..60)) {
            let (mut u, mut flags) = (Unwritten::default(), [false; 80]);
            for (add, start, n) in ops {
                let range = start as usize..(start + n) as usize;
                let any = flags[range.clone()].iter().any(|f| *f);
                prop_assert_eq!(u.overlaps(start, n), any);
                if add && !any {
                    u.add(start, n);
                    flags[range].fill(true);
                } else if !add {
                    u.take(start, n);
                    flags[range].fill(false);
                }
                let held: Vec<bool> = (0..80).map(|i| u.holds(i)).collect();
                prop_assert_eq!(&held[..], &flags[..]);
                prop_assert!(u.0.windows(2).all(|w| w[0].1 < w[1].0), "joined where they touch");
                prop_assert_eq!(u.is_empty(), flags.iter().all(|f| !f));
            }
        }
    }
}
