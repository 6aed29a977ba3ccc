//! The contents of a write-back cache: a set of extents of the array. Adjacent extents are merged.

use std::collections::BTreeMap;

/// A set of sectors, stored as disjoint extents.
#[derive(Debug, Default)]
pub(super) struct Extents {
    map: BTreeMap<u64, u64>,
    sectors: u64,
}

impl Extents {
    pub fn sectors(&self) -> u64 {
        self.sectors
    }
    pub fn count(&self) -> usize {
        self.map.len()
    }
    /// Adds the sectors `from..to`.
    pub fn insert(&mut self, mut from: u64, mut to: u64) {
        if let Some((s, e)) = self.map.range(..from).next_back()
            && *e >= from
        {
            from = *s;
        }
        while let Some((s, e)) = self.map.range(from..=to).next().map(|(s, e)| (*s, *e)) {
            self.map.remove(&s);
            self.sectors -= e - s;
            to = to.max(e);
        }
        self.map.insert(from, to);
        self.sectors += to - from;
    }
    /// Returns true if the set contains all sectors of `from..to`.
    pub fn covers(&self, from: u64, to: u64) -> bool {
        let last = self.map.range(..=from).next_back();
        last.is_some_and(|(_, e)| *e >= to)
    }
    /// Returns the first sector of the set at or after `cursor`. If there is none, returns the
    /// first sector of the set.
    pub fn next(&self, cursor: u64) -> Option<u64> {
        if let Some((_, e)) = self.map.range(..=cursor).next_back()
            && *e > cursor
        {
            return Some(cursor);
        }
        let after = self.map.range(cursor..).next();
        after.or_else(|| self.map.iter().next()).map(|(s, _)| *s)
    }
    /// Removes the sectors of the set that are in `from..to`, and appends them to `out` in
    /// ascending order.
    pub fn take(&mut self, from: u64, to: u64, out: &mut Vec<(u64, u64)>) {
        let first = self.map.range(..from).next_back().map(|(s, e)| (*s, *e));
        if let Some((s, e)) = first.filter(|x| x.1 > from) {
            self.map.insert(s, from);
            self.sectors -= e.min(to) - from;
            out.push((from, e.min(to)));
            if e > to {
                self.map.insert(to, e);
            }
        }
        while let Some((s, e)) = self.map.range(from..to).next().map(|(s, e)| (*s, *e)) {
            self.map.remove(&s);
            self.sectors -= e.min(to) - s;
            out.push((s, e.min(to)));
            if e > to {
                self.map.insert(to, e);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The extents hold the same sectors as a plain set after any operations.
        #[test]
        fn extents_agree_with_a_plain_set(ops in proptest::collection::vec((any::<bool>(), 0u64..80, 1u64..30), 1..60)) {
            let (mut fast, mut slow) = (Extents::default(), vec![false; 128]);
            for (take, from, n) in ops {
                let range = from as usize..(from + n) as usize;
                prop_assert_eq!(fast.covers(from, from + n), slow[range.clone()].iter().all(|b| *b));
                let next = (from..128).chain(0..from).find(|i| slow[*i as usize]);
                prop_assert_eq!(fast.next(from), next);
                if take {
                    let mut out = vec![];
                    fast.take(from, from + n, &mut out);
                    let got: Vec<u64> = out.iter().flat_map(|(a, b)| *a..*b).collect();
                    let had: Vec<u64> = (from..from + n).filter(|i| slow[*i as usize]).collect();
                    prop_assert_eq!(got, had);
                    slow[range].fill(false);
                } else {
                    fast.insert(from, from + n);
                    slow[range].fill(true);
                }
                prop_assert_eq!(fast.sectors(), slow.iter().filter(|b| **b).count() as u64);
            }
        }
    }
}
