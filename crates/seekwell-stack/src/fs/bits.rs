//! A bitmap of used blocks, in which free runs can be searched.

#[derive(Clone, Debug)]
pub(crate) struct Bits {
    word: Box<[u64]>,
    len: u32,
    free: u32,
    /// Number of free runs in the bitmap.
    runs: u32,
    /// It is known that no free run has this length or more.
    none_of: u32,
}

impl Bits {
    /// Creates a bitmap in which all bits are free.
    pub(crate) fn new(len: u32) -> Self {
        Bits {
            word: vec![0; len.div_ceil(64) as usize].into(),
            len,
            free: len,
            runs: u32::from(len > 0),
            none_of: u32::MAX,
        }
    }
    pub(crate) fn get(&self, i: u32) -> bool {
        self.word[(i / 64) as usize] >> (i % 64) & 1 != 0
    }
    /// Sets or clears the bits of a range. Returns the number of changed bits.
    pub(crate) fn set(&mut self, start: u32, n: u32, on: bool) -> u32 {
        let mut changed = 0;
        let end = (start + n).min(self.len);
        if start >= end {
            return 0;
        }
        // Only runs that begin in the range or directly after it can change.
        self.runs -= self.begin_in(start, end);
        let mut i = start;
        while i < end {
            let k = (64 - i % 64).min(end - i);
            let mask = (u64::MAX >> (64 - k)) << (i % 64);
            let w = &mut self.word[(i / 64) as usize];
            let new = if on { *w | mask } else { *w & !mask };
            changed += (*w ^ new).count_ones();
            *w = new;
            i += k;
        }
        self.runs += self.begin_in(start, end);
        if on {
            self.free -= changed;
        } else if changed > 0 {
            self.free += changed;
            self.none_of = u32::MAX;
        }
        changed
    }
    /// Returns the number of free runs that begin in `start..=end`.
    fn begin_in(&self, start: u32, end: u32) -> u32 {
        let end = end.min(self.len - 1);
        let (first, last) = (start / 64, end / 64);
        let begin = |i: u32| {
            let before = if i == 0 {
                1
            } else {
                self.word[i as usize - 1] >> 63
            };
            let w = self.word[i as usize];
            let mut begins = !w & (w << 1 | before);
            if i == first {
                begins &= u64::MAX << (start % 64);
            }
            if i == last {
                begins &= u64::MAX >> (63 - end % 64);
            }
            begins.count_ones()
        };
        (first..=last).map(begin).sum()
    }
    /// Forgets the result of earlier failed searches.
    #[cfg(test)]
    pub(crate) fn forget(&mut self) {
        self.none_of = u32::MAX;
    }
    fn find(&self, from: u32, used: bool) -> u32 {
        let mut i = from;
        while i < self.len {
            let w = self.word[(i / 64) as usize];
            let w = if used { w } else { !w } & (u64::MAX << (i % 64));
            if w != 0 {
                return (i / 64 * 64 + w.trailing_zeros()).min(self.len);
            }
            i = (i / 64 + 1) * 64;
        }
        self.len
    }
    /// Returns the index after the last used bit.
    pub(crate) fn end_of_used(&self) -> u32 {
        let last = self.word.iter().rposition(|w| *w != 0);
        last.map_or(0, |i| i as u32 * 64 + 64 - self.word[i].leading_zeros())
    }
    /// Returns the first free bit from `from` on, or the length of the bitmap if there is none.
    pub(crate) fn next_free(&self, from: u32) -> u32 {
        self.find(from, false)
    }
    /// Returns the start and the end of the first free run from `from` on.
    pub(crate) fn free_from(&self, from: u32) -> Option<(u32, u32)> {
        let start = self.find(from, false);
        (start < self.len).then(|| (start, self.find(start, true)))
    }
    /// Returns whether the mean length of the free runs is at least `want`.
    pub(crate) fn long_on_the_mean(&self, want: u32) -> bool {
        self.runs > 0 && self.free / self.runs >= want
    }
    /// Returns whether it is known that no free run has length `want`.
    pub(crate) fn lacks(&self, want: u32) -> bool {
        want >= self.none_of
    }
    /// Records that no free run has length `want`. This is valid until a bit is freed.
    pub(crate) fn none_of(&mut self, want: u32) {
        self.none_of = self.none_of.min(want);
    }
    /// Returns the first free run of at least `want` bits from `from` on, or else the longest run.
    pub(crate) fn free_run(&self, from: u32, want: u32) -> Option<(u32, u32)> {
        let mut best: Option<(u32, u32)> = None;
        let mut i = from;
        loop {
            let s = self.find(i, false);
            if s >= self.len {
                return best;
            }
            let e = self.find(s, true);
            if best.is_none_or(|b| e - s > b.1) {
                best = Some((s, e - s));
            }
            if e - s >= want {
                return Some((s, e - s));
            }
            i = e;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Checks that changes and searches of ranges agree with a vector of flags.
        #[test]
        fn bitmap_agrees_with_flags(
            ops in proptest::collection::vec((0u32..300, 1u32..90, any::<bool>()), 1..40),
            want in 1u32..100,
        ) {
            let (mut b, mut m) = (Bits::new(300), vec![false; 300]);
            for (s, n, on) in ops {
                let e = (s + n).min(300);
                let expect = m[s as usize..e as usize].iter().filter(|x| **x != on).count();
                prop_assert_eq!(b.set(s, n, on) as usize, expect);
                m[s as usize..e as usize].fill(on);
                // Record failed searches, as the allocator does.
                if let Some((_, longest)) = b.free_run(0, want).filter(|r| r.1 < want) {
                    b.none_of(longest + 1);
                }
            }
            let mut runs = Vec::new();
            let mut i = 0;
            while i < 300 {
                if m[i] { i += 1; continue; }
                let s = i;
                while i < 300 && !m[i] { i += 1; }
                runs.push((s as u32, (i - s) as u32));
            }
            let free: u32 = runs.iter().map(|r| r.1).sum();
            prop_assert_eq!((b.free, b.runs as usize), (free, runs.len()));
            let first = runs.iter().find(|r| r.1 >= want).copied();
            let longest = runs.iter().map(|r| r.1).max();
            prop_assert_eq!(b.lacks(want), first.is_none() && longest.is_some());
            let got = b.free_run(0, want);
            match first {
                Some(f) => prop_assert_eq!(got, Some(f)),
                None => prop_assert_eq!(got.map(|r| r.1), longest),
            }
        }
    }
}
