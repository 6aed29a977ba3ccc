//! Blocks of a closed file, whose length is known. Exactly this number is allocated, like mballoc
//! does without preallocation (2.6.32 to 6.0). This packs small files, but not in the order of
//! writing.
//!
//! A length that is a power of two takes the first of the smallest sufficient buddies. Any other
//! length takes the first free chunk of exactly that length, or the shortest sufficient one among a
//! few. The search starts at the beginning of the goal's group. Left out: the stripe of a RAID, the
//! limit of 200 examined chunks, and the pools that a busy file system uses (more than two
//! processors at the lock of one group).

use super::Alloc;
use crate::fs::bits::Bits;
use crate::fs::{GROUP, Inode};

/// Largest order of a buddy.
const BUDDY_MAX_ORDER: u32 = 13;

/// Order of the buddy that begins at `at`, in a free run that ends at `end`.
fn order(at: u32, end: u32) -> u32 {
    let aligned = at.trailing_zeros().min(BUDDY_MAX_ORDER);
    aligned.min((end - at).ilog2())
}

/// The first of the smallest buddies of at least this order.
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

/// A chunk of at least `want`: one of exactly that length, or the shortest of more than `scan`
/// examined ones (fewer if there are not that many).
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
    /// Exactly `want` blocks for a closed file's pages from `log` on; `None` if no single run has
    /// them.
    pub(super) fn exact(&mut self, i: &Inode, log: u32, want: u32) -> Option<(u32, u32)> {
        let n = self.groups.len() as u32;
        let first = (self.goal(i, log, 0) / GROUP).min(n - 1);
        let scan = self.scan_chunks;
        let power = (want > 1 && want.is_power_of_two()).then(|| want.ilog2());
        // As in mballoc's criteria: whole buddies, then groups with long free runs on average, then
        // any group.
        let steps = if power.is_some() { 0..3 } else { 1..3 };
        for step in steps {
            for d in 0..n {
                let g = (first + d) % n;
                if self.groups[g as usize].free < want {
                    continue;
                }
                // The first group of a flex group is for directories.
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

    /// A bitmap in which these runs are free.
    fn free(len: u32, runs: &[(u32, u32)]) -> Bits {
        let mut bits = Bits::new(len);
        bits.set(0, len, true);
        for &(at, n) in runs {
            bits.set(at, n, false);
        }
        bits
    }

    #[test]
    fn a_power_of_two_takes_the_first_of_the_smallest_buddies_that_hold_it() {
        // 5..8 contains buddies 5 and 6-7; 16..32 is one of 16; 40..48 one of 8; 60..64 one of 4.
        let bits = free(64, &[(5, 3), (16, 16), (40, 8), (60, 4)]);
        assert_eq!(buddy(&bits, 1), Some(6));
        assert_eq!(buddy(&bits, 2), Some(60));
        assert_eq!(buddy(&bits, 3), Some(40));
        assert_eq!(buddy(&bits, 4), Some(16));
        assert_eq!(buddy(&bits, 5), None);
        // A run of seven contains no buddy of four if none is aligned.
        assert_eq!(buddy(&free(16, &[(1, 6)]), 2), None);
    }

    #[test]
    fn another_length_takes_what_just_holds_it_else_the_shortest_of_a_few() {
        let bits = free(64, &[(0, 5), (8, 3), (16, 48)]);
        // 0..4 is one too long for three; 8..11 fits exactly.
        assert_eq!(chunk(&bits, 3, 10), Some(8));
        assert_eq!(chunk(&bits, 5, 10), Some(0));
        // From 16 on there is a chunk of 16, the shortest that has room for six.
        assert_eq!(chunk(&bits, 6, 10), Some(16));
        assert_eq!(chunk(&free(16, &[(3, 2)]), 3, 10), None);
    }

    #[test]
    fn chunks_far_behind_are_not_looked_at_once_one_is_long_enough() {
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
