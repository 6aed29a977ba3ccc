//! Counts per key, for keys such as devices and processes. The number of different keys is limited.

use std::collections::BTreeMap;

/// Maximum number of different keys.
const KEYS_MAX: usize = 1 << 16;

/// Counts per key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    counts: BTreeMap<u32, u64>,
    /// Sum of the counts of the keys that are not in `counts`, because it is full.
    others: u64,
}

impl Tally {
    /// Adds 1 to the count of a key.
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
    /// Adds the counts of another tally.
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
    /// Returns the number of different keys, at most [`KEYS_MAX`].
    pub fn kinds(&self) -> usize {
        self.counts.len()
    }
    /// Returns a text that lists the `n` most frequent keys with their counts. The end of the text
    /// is the number of keys that are not listed: "8,0 (120), 8,16 (7), 3 more" lists two of five
    /// keys. `name` returns the name of a key.
    pub fn busiest(&self, n: usize, name: impl Fn(u32) -> String) -> String {
        let mut all: Vec<(u64, u32)> = self.counts.iter().map(|(k, n)| (*n, *k)).collect();
        // At equal counts, the lowest key comes first.
        all.sort_by_key(|&(count, key)| (std::cmp::Reverse(count), key));
        let shown = all.iter().take(n);
        let mut words: Vec<String> = shown.map(|(n, k)| format!("{} ({n})", name(*k))).collect();
        if all.len() > n {
            words.push(format!("{} more", all.len() - n));
        }
        words.join(", ")
    }
}
