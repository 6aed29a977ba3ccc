//! How often each of many was met: devices, processes. Bounded.

use std::collections::BTreeMap;

/// Different ones that are told apart.
const KEYS_MAX: usize = 1 << 16;

/// Counts by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    counts: BTreeMap<u32, u64>,
    /// Of those beyond [`KEYS_MAX`].
    others: u64,
}

impl Tally {
    /// Counts one more.
    #[inline]
    pub fn add(&mut self, key: u32) {
        if let Some(n) = self.counts.get_mut(&key) {
            *n += 1;
        } else if self.counts.len() < KEYS_MAX {
            self.counts.insert(key, 1);
        } else {
            self.others += 1;
        }
    }
    /// Adds what another has counted.
    pub fn join(&mut self, other: &Tally) {
        for (key, n) in &other.counts {
            if let Some(own) = self.counts.get_mut(key) {
                *own += n;
            } else if self.counts.len() < KEYS_MAX {
                self.counts.insert(*key, *n);
            } else {
                self.others += n;
            }
        }
        self.others += other.others;
    }
    /// Different ones met; at least so many.
    pub fn kinds(&self) -> usize {
        self.counts.len()
    }
    /// "8,0 (120), 8,16 (7), 3 more": the most frequent `n`, named by `name`.
    pub fn busiest(&self, n: usize, name: impl Fn(u32) -> String) -> String {
        let mut all: Vec<(u64, u32)> = self.counts.iter().map(|(k, n)| (*n, *k)).collect();
        // Of equal counts the lowest number first.
        all.sort_by_key(|&(count, key)| (std::cmp::Reverse(count), key));
        let shown = all.iter().take(n);
        let mut words: Vec<String> = shown.map(|(n, k)| format!("{} ({n})", name(*k))).collect();
        if all.len() > n {
            words.push(format!("{} more", all.len() - n));
        }
        words.join(", ")
    }
}
