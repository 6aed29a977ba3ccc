//! The names of a directory: a table by hash, since names are looked up far more often than listed.
//!
//! Slots hold hash, inode and block; texts lie behind each other in one piece of memory. So a
//! lookup takes a line of memory for the slot and one for the text, however many names there are.
//! The order of slots is nobody's business: who lists names gets them sorted.

use super::inode::Entry;

/// Free slot.
const FREE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    /// Where its text begins; [`FREE`]: no name.
    at: u32,
    entry: Entry,
}

const EMPTY: Slot = Slot {
    hash: 0,
    at: FREE,
    entry: Entry { ino: 0, block: 0 },
};

/// Names with their entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// A power of two of them, or none; at most three quarters are taken.
    slots: Vec<Slot>,
    /// Texts, each behind its length (two bytes).
    text: Vec<u8>,
    /// Bytes of it whose names are gone.
    waste: usize,
    len: usize,
}

/// Mixes eight bytes at a time; the same on every machine.
#[inline]
pub(crate) fn hash(text: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut h = K ^ text.len() as u64;
    let mut mix = |word: u64| {
        let wide = u128::from(h ^ word) * u128::from(K);
        h = wide as u64 ^ (wide >> 64) as u64;
    };
    let (words, rest) = text.as_chunks::<8>();
    for w in words {
        mix(u64::from_le_bytes(*w));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(u64::from_le_bytes(last));
    h
}

impl Names {
    /// None at all?
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The entry of a name.
    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<Entry> {
        let i = self.find(hash(name.as_bytes()) as u32, name)?;
        Some(self.slots[i].entry)
    }
    fn find(&self, hash: u32, name: &str) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut i = hash as usize & mask;
        loop {
            let s = &self.slots[i];
            if s.at == FREE {
                return None;
            }
            if s.hash == hash && self.text_at(s.at) == name.as_bytes() {
                return Some(i);
            }
            i = (i + 1) & mask;
        }
    }
    #[inline]
    fn text_at(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let len = u16::from_le_bytes([self.text[at], self.text[at + 1]]);
        &self.text[at + 2..at + 2 + usize::from(len)]
    }
    /// Puts a name in, or gives it another entry.
    pub(crate) fn insert(&mut self, name: &str, entry: Entry) {
        let hash = hash(name.as_bytes()) as u32;
        if let Some(i) = self.find(hash, name) {
            self.slots[i].entry = entry;
            return;
        }
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            self.rebuild((self.slots.len() * 2).max(8));
        }
        let at = self.text.len() as u32;
        self.text.extend((name.len() as u16).to_le_bytes());
        self.text.extend(name.as_bytes());
        self.put(Slot { hash, at, entry });
        self.len += 1;
    }
    fn put(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut i = slot.hash as usize & mask;
        while self.slots[i].at != FREE {
            i = (i + 1) & mask;
        }
        self.slots[i] = slot;
    }
    /// Takes a name out. Those behind it move up, so that no search ends too early.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Entry> {
        let mut hole = self.find(hash(name.as_bytes()) as u32, name)?;
        let entry = self.slots[hole].entry;
        self.waste += name.len() + 2;
        self.len -= 1;
        let mask = self.slots.len() - 1;
        let mut i = hole;
        loop {
            i = (i + 1) & mask;
            let s = self.slots[i];
            if s.at == FREE {
                break;
            }
            // It may move if the hole is no further from its home than it is itself.
            let home = s.hash as usize & mask;
            if (i.wrapping_sub(home) & mask) >= (i.wrapping_sub(hole) & mask) {
                self.slots[hole] = s;
                hole = i;
            }
        }
        self.slots[hole] = EMPTY;
        if self.waste > 256 && self.waste * 2 > self.text.len() {
            self.rebuild(self.slots.len());
        }
        Some(entry)
    }
    /// Of another size, without the texts that are gone.
    fn rebuild(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; slots]);
        let mut text = Vec::with_capacity(self.text.len() - self.waste);
        for s in old.into_iter().filter(|s| s.at != FREE) {
            let at = text.len() as u32;
            let name = self.text_at(s.at);
            text.extend((name.len() as u16).to_le_bytes());
            text.extend(name);
            self.put(Slot { at, ..s });
        }
        (self.text, self.waste) = (text, 0);
    }
    /// All of them, sorted by name.
    pub(crate) fn sorted(&self) -> Vec<(&str, Entry)> {
        let taken = self.slots.iter().filter(|s| s.at != FREE);
        let named = |s: &Slot| {
            let name = std::str::from_utf8(self.text_at(s.at));
            (name.unwrap_or_default(), s.entry)
        };
        let mut all: Vec<(&str, Entry)> = taken.map(named).collect();
        all.sort_unstable_by_key(|n| n.0);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn pairs(n: &Names) -> Vec<(String, u32, u32)> {
        let own = |(name, e): (&str, Entry)| (name.to_owned(), e.ino, e.block);
        n.sorted().into_iter().map(own).collect()
    }

    proptest! {
        /// Any mix of operations agrees with an ordered map.
        #[test]
        fn agrees_with_a_map(ops in proptest::collection::vec((0u8..4, 0u32..120, 0u32..9), 0..600)) {
            let mut names = Names::default();
            let mut model: BTreeMap<String, (u32, u32)> = BTreeMap::new();
            for (op, n, block) in ops {
                // Names of every length, some of them beginnings of others.
                let name = format!("{}{}", "ab".repeat(n as usize % 7), n / 3);
                match op {
                    0 | 1 => {
                        names.insert(&name, Entry { ino: n, block });
                        model.insert(name.clone(), (n, block));
                    }
                    2 => {
                        let gone = names.remove(&name).map(|e| (e.ino, e.block));
                        prop_assert_eq!(gone, model.remove(&name));
                    }
                    _ => {}
                }
                let there = names.get(&name).map(|e| (e.ino, e.block));
                prop_assert_eq!(there, model.get(&name).copied());
                prop_assert_eq!(names.is_empty(), model.is_empty());
            }
            let want: Vec<_> = model.into_iter().map(|(n, e)| (n, e.0, e.1)).collect();
            prop_assert_eq!(pairs(&names), want);
        }
    }

    #[test]
    fn names_that_come_and_go_take_no_room() {
        let mut names = Names::default();
        for n in 0..100_000u32 {
            names.insert(&format!("file-{n}"), Entry { ino: n, block: 0 });
            if n >= 10 {
                let old = names.remove(&format!("file-{}", n - 10));
                assert_eq!(old.map(|e| e.ino), Some(n - 10));
            }
        }
        assert_eq!(names.sorted().len(), 10);
        assert!(names.text.capacity() < 2048 && names.slots.len() <= 32);
    }
}
