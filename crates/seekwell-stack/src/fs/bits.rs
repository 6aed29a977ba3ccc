//! A bitmap of used blocks with search for free runs.

#[derive(Clone, Debug)]
pub(crate) struct Bits {
    word: Box<[u64]>,
    len: u32,
}

impl Bits {
    /// All free.
    pub(crate) fn new(len: u32) -> Self {
        Bits {
            word: vec![0; len.div_ceil(64) as usize].into(),
            len,
        }
    }
    pub(crate) fn get(&self, i: u32) -> bool {
        self.word[(i / 64) as usize] >> (i % 64) & 1 != 0
    }
    /// Sets or clears a range; returns how many changed.
    pub(crate) fn set(&mut self, start: u32, n: u32, on: bool) -> u32 {
        let mut changed = 0;
        let (mut i, end) = (start, (start + n).min(self.len));
        while i < end {
            let k = (64 - i % 64).min(end - i);
            let mask = (u64::MAX >> (64 - k)) << (i % 64);
            let w = &mut self.word[(i / 64) as usize];
            let new = if on { *w | mask } else { *w & !mask };
            changed += (*w ^ new).count_ones();
            *w = new;
            i += k;
        }
        changed
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
    /// The index behind the last used bit.
    pub(crate) fn end_of_used(&self) -> u32 {
        let last = self.word.iter().rposition(|w| *w != 0);
        last.map_or(0, |i| i as u32 * 64 + 64 - self.word[i].leading_zeros())
    }
    /// The first free bit from `from` on, or the length.
    pub(crate) fn next_free(&self, from: u32) -> u32 {
        self.find(from, false)
    }
    /// The first free run from `from` on: start and end.
    pub(crate) fn free_from(&self, from: u32) -> Option<(u32, u32)> {
        let start = self.find(from, false);
        (start < self.len).then(|| (start, self.find(start, true)))
    }
    /// Are free runs at least so long on the mean?
    pub(crate) fn long_on_the_mean(&self, want: u32) -> bool {
        let (mut free, mut runs, mut from) = (0, 0, 0);
        while let Some((start, end)) = self.free_from(from) {
            (free, runs, from) = (free + end - start, runs + 1, end);
        }
        runs > 0 && free / runs >= want
    }
    /// The first free run of at least `want` from `from` on; or else the longest there is.
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
        /// Ranges and searches agree with a vector of flags.
        #[test]
        fn agrees_with_flags(
            ops in proptest::collection::vec((0u32..300, 1u32..90, any::<bool>()), 1..40),
            want in 1u32..100,
        ) {
            let (mut b, mut m) = (Bits::new(300), vec![false; 300]);
            for (s, n, on) in ops {
                let e = (s + n).min(300);
                let expect = m[s as usize..e as usize].iter().filter(|x| **x != on).count();
                prop_assert_eq!(b.set(s, n, on) as usize, expect);
                m[s as usize..e as usize].fill(on);
            }
            let mut runs = Vec::new();
            let mut i = 0;
            while i < 300 {
                if m[i] { i += 1; continue; }
                let s = i;
                while i < 300 && !m[i] { i += 1; }
                runs.push((s as u32, (i - s) as u32));
            }
            let first = runs.iter().find(|r| r.1 >= want).copied();
            let longest = runs.iter().map(|r| r.1).max();
            let got = b.free_run(0, want);
            match first {
                Some(f) => prop_assert_eq!(got, Some(f)),
                None => prop_assert_eq!(got.map(|r| r.1), longest),
            }
        }
    }
}
