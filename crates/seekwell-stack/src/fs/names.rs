//! The names of a directory: a table by hash, since names are looked up far more often than listed.
//!
//! Slots hold a hash and a place in the list, which is in the order in which names were made, as
//! their texts are: programs go through files in that order or against it, and find the next name on
//! the line of memory where the last one was. The order is nobody's business otherwise: who lists
//! names gets them sorted.

use super::inode::Entry;

/// No place.
const FREE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    /// In the list; [`FREE`]: no name.
    place: u32,
}

const EMPTY: Slot = Slot {
    hash: 0,
    place: FREE,
};

#[derive(Clone, Copy, Debug)]
struct Named {
    /// Where its text begins; [`FREE`]: it is gone.
    at: u32,
    entry: Entry,
}

/// Names with their entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// A power of two of them, or none; at most three quarters are taken.
    slots: Vec<Slot>,
    list: Vec<Named>,
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
        Some(self.list[self.slots[i].place as usize].entry)
    }
    #[inline]
    fn find(&self, hash: u32, name: &str) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut i = hash as usize & mask;
        loop {
            let s = self.slots[i];
            if s.place == FREE {
                return None;
            }
            if s.hash == hash && self.text_of(s.place) == name.as_bytes() {
                return Some(i);
            }
            i = (i + 1) & mask;
        }
    }
    #[inline]
    fn text_of(&self, place: u32) -> &[u8] {
        let at = self.list[place as usize].at as usize;
        let len = u16::from_le_bytes([self.text[at], self.text[at + 1]]);
        &self.text[at + 2..at + 2 + usize::from(len)]
    }
    /// Puts a name in, or gives it another entry.
    pub(crate) fn insert(&mut self, name: &str, entry: Entry) {
        let hash = hash(name.as_bytes()) as u32;
        if let Some(i) = self.find(hash, name) {
            self.list[self.slots[i].place as usize].entry = entry;
            return;
        }
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            self.rebuild((self.slots.len() * 2).max(8));
        }
        let place = self.list.len() as u32;
        let at = self.text.len() as u32;
        self.list.push(Named { at, entry });
        self.text.extend((name.len() as u16).to_le_bytes());
        self.text.extend(name.as_bytes());
        self.put(Slot { hash, place });
        self.len += 1;
    }
    fn put(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut i = slot.hash as usize & mask;
        while self.slots[i].place != FREE {
            i = (i + 1) & mask;
        }
        self.slots[i] = slot;
    }
    /// Takes a name out. Those behind it move up, so that no search ends too early.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Entry> {
        let mut hole = self.find(hash(name.as_bytes()) as u32, name)?;
        let place = self.slots[hole].place as usize;
        let Named { at, entry } = self.list[place];
        self.len -= 1;
        if place + 1 == self.list.len() {
            // The newest, as that of a file that gets its name at last: nothing stays of it.
            self.list.pop();
            self.text.truncate(at as usize);
        } else {
            self.list[place].at = FREE;
            self.waste += name.len() + 2;
        }
        let mask = self.slots.len() - 1;
        let mut i = hole;
        loop {
            i = (i + 1) & mask;
            let s = self.slots[i];
            if s.place == FREE {
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
    /// With so many slots, and without what is left of names that are gone.
    fn rebuild(&mut self, slots: usize) {
        let mut text = Vec::with_capacity(self.text.len() - self.waste);
        let mut list = Vec::with_capacity(self.len);
        self.slots.clear();
        self.slots.resize(slots, EMPTY);
        for place in 0..self.list.len() as u32 {
            let n = self.list[place as usize];
            if n.at == FREE {
                continue;
            }
            let name = self.text_of(place);
            let hash = hash(name) as u32;
            let at = text.len() as u32;
            text.extend((name.len() as u16).to_le_bytes());
            text.extend(name);
            let place = list.len() as u32;
            list.push(Named { at, ..n });
            self.put(Slot { hash, place });
        }
        (self.text, self.list, self.waste) = (text, list, 0);
    }
    /// All of them, sorted by name.
    pub(crate) fn sorted(&self) -> Vec<(&str, Entry)> {
        let named = |place: u32| {
            let n = self.list[place as usize];
            let name = (n.at != FREE).then(|| std::str::from_utf8(self.text_of(place)));
            name.map(|name| (name.unwrap_or_default(), n.entry))
        };
        let all = (0..self.list.len() as u32).filter_map(named);
        let mut all: Vec<(&str, Entry)> = all.collect();
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
        assert!(names.list.capacity() < 256);
    }
}
