//! Blocks of a closed file, whose length is known. Exactly this number of blocks is allocated, as
//! mballoc does without preallocation (2.6.32 to 6.0). This packs small files densely, but not in
//! the order in which they were written.
//!
//! If the length is a power of two, the search takes the first of the smallest sufficient buddies.
//! For any other length, it takes the first free chunk of exactly this length. If there is none, it
//! takes the shortest sufficient chunk among a few. The search starts at the beginning of the
//! goal's group. Not modelled: the stripe of a RAID, the limit of 200 examined chunks, and the
//! pools of a busy file system (used if more than two processors want the lock of one group).

use super::Alloc;
use crate::fs::bits::Bits;
use crate::fs::{GROUP, Inode};

/// Largest order of a buddy.
const BUDDY_MAX_ORDER: u32 = 13;

/// Returns the order of the buddy that begins at `at`, in a free run that ends at `end`.
fn order(at: u32, end: u32) -> u32 {
    let aligned = at.trailing_zeros().min(BUDDY_MAX_ORDER);
    aligned.min((end - at).ilog2())
}

/// Returns the first of the smallest buddies that have at least order `wanted`.
fn buddy(bits: &Bits, wanted: u32) -> Option<u32> {
    let mut best: Option<(u32, u32)> = None;
    let mut from = 0;
    while let Some((mut at, end)) = bits.free_from(from) {
        while at < end {
            let o = order(at, end);
            if o >= wanted && best.is_none_or(|b| o < b.0) {
                best = Some((o, at));
                if o == wanted {
                    return Some(at);
                }
            }
            at += 1 << o;
        }
        from = end;
    }
    best.map(|b| b.1)
}

/// Returns a chunk of at least `want` blocks. Takes the first chunk of exactly this length. If none
/// is found among `scan + 1` chunks, takes the shortest sufficient one of those examined.
fn chunk(bits: &Bits, want: u32, scan: u32) -> Option<u32> {
    let (mut best, mut seen): (Option<(u32, u32)>, u32) = (None, 0);
    let mut from = 0;
    while let Some((mut at, end)) = bits.free_from(from) {
        while at < end {
            let start = at;
            while at < end && at - start < want {
                at += 1 << order(at, end);
            }
            let len = at - start;
            seen += 1;
            if len == want {
                return Some(start);
            }
            if len > want && best.is_none_or(|b| len < b.0) {
                best = Some((len, start));
            }
            if seen > scan && best.is_some() {
                return best.map(|b| b.1);
            }
        }
        from = end;
    }
    best.map(|b| b.1)
}

impl Alloc {
    /// Allocates exactly `want` blocks for the pages of a closed file from page `log` on. Returns
    /// `None` if no single run is long enough.
    pub(super) fn exact(&mut self, i: &Inode, log: u32, want: u32) -> Option<(u32, u32)> {
        let n = self.groups.len() as u32;
        let first = (self.goal(i, log, 0) / GROUP).min(n - 1);
        let scan = self.scan_chunks;
        let power = (want > 1 && want.is_power_of_two()).then(|| want.ilog2());
        // The steps are the criteria of mballoc: first whole buddies, then groups whose free runs
        // are long on average, then any group.
        let steps = if power.is_some() { 0..3 } else { 1..3 };
        for step in steps {
            for d in 0..n {
                let g = (first + d) % n;
                if self.groups[g as usize].free < want {
                    continue;
                }
                // The first group of a flex group is kept for directories.
                if step == 0 && self.flex >= 4 && g.is_multiple_of(self.flex) {
                    continue;
                }
                let bits = self.bits(g);
                let found = match (step, power) {
                    (0, Some(power)) => buddy(bits, power),
                    (1, _) if !bits.long_on_the_mean(want) => None,
                    _ => chunk(bits, want, scan),
                };
                if let Some(at) = found {
                    self.mark(g * GROUP + at, want, true);
                    return Some((g * GROUP + at, want));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a bitmap in which only these runs are free.
    fn free(len: u32, runs: &[(u32, u32)]) -> Bits {
        let mut bits = Bits::new(len);
        bits.set(0, len, true);
        for &(at, n) in runs {
            bits.set(at, n, false);
        }
        bits
    }

    #[test]
    fn power_of_two_takes_the_first_of_the_smallest_fitting_buddies() {
        // The free run 5..8 contains the buddies 5 and 6..8. Each of the other runs is one buddy.
        let bits = free(64, &[(5, 3), (16, 16), (40, 8), (60, 4)]);
        assert_eq!(buddy(&bits, 1), Some(6));
        assert_eq!(buddy(&bits, 2), Some(60));
        assert_eq!(buddy(&bits, 3), Some(40));
        assert_eq!(buddy(&bits, 4), Some(16));
        assert_eq!(buddy(&bits, 5), None);
        // A run of seven blocks contains no buddy of four blocks if none is aligned.
        assert_eq!(buddy(&free(16, &[(1, 6)]), 2), None);
    }

    #[test]
    fn other_length_takes_an_exact_chunk_or_the_shortest_of_a_few() {
        let bits = free(64, &[(0, 5), (8, 3), (16, 48)]);
        // The chunk 0..4 is one block too long. The chunk 8..11 has exactly three blocks.
        assert_eq!(chunk(&bits, 3, 10), Some(8));
        assert_eq!(chunk(&bits, 5, 10), Some(0));
        // At 16 there is a chunk of 16 blocks, the shortest in which six blocks fit.
        assert_eq!(chunk(&bits, 6, 10), Some(16));
        assert_eq!(chunk(&free(16, &[(3, 2)]), 3, 10), None);
    }

    #[test]
    fn chunk_search_stops_after_a_limited_number_of_chunks() {
        let mut runs: Vec<(u32, u32)> = (0..12).map(|i| (i * 8, 4)).collect();
        runs.push((96, 3));
        assert_eq!(
            chunk(&free(128, &runs), 3, 10),
            Some(0),
            "96 is the thirteenth"
        );
        runs.drain(3..12);
        assert_eq!(chunk(&free(128, &runs), 3, 10), Some(96));
    }
}
