//! The names of a directory. They are in a hash table, because names are looked up far more often
//! than they are listed.
//!
//! A slot of the table holds a hash and an index into the list of names. The list and the texts are
//! in the order in which the names were made. Programs often open the files of a directory
//! repeatedly in the same order. To avoid hashing, each name therefore stores which name of its
//! kind was looked up after it. This is the prediction for the next look-up. Before a successor is
//! known, the prediction is a neighbour in the list. If the prediction fails, the name is looked up
//! by hash. The predictions change only the speed: results and listings do not depend on them.

use super::inode::Entry;
use seekwell_core::soon;
use std::cell::Cell;

/// Marks an index that refers to nothing.
const FREE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    /// Index in the list. [`FREE`]: the slot is empty.
    place: u32,
}

const EMPTY: Slot = Slot {
    hash: 0,
    place: FREE,
};

/// Tag of an empty slot.
const NO_TAG: u8 = 0;

/// Returns the tag for this hash. It uses bits of the hash that do not determine the slot.
fn tag(hash: u32) -> u8 {
    (hash >> 24) as u8 | 1
}

#[derive(Clone, Debug)]
struct Named {
    /// Start of the name's text. [`FREE`]: the name was removed.
    at: u32,
    entry: Entry,
    /// Index of the name of the same kind that was looked up after this name. [`FREE`]: not known.
    behind: Cell<u32>,
}

/// Number of kinds of names, a power of two. The first letter of a name determines its kind.
const KINDS: usize = 4;
/// Largest distance in the list between two names that count as neighbours in a sequence.
const NEAR: u32 = 4;

/// Predictions for the next look-ups of one kind of names.
#[derive(Clone, Copy, Debug)]
struct Trail {
    /// Index of the name that was last found. [`FREE`]: the sequence has ended.
    last: u32,
    /// The predicted next name, and an alternative. Because of the alternative, a second program in
    /// the same directory disturbs a sequence only once.
    next: [u32; 2],
    /// First name of the sequence. The next program probably starts with the same name.
    first: u32,
    /// Distance in the list to the next name, for names whose successor is not known.
    step: u32,
}

impl Default for Trail {
    fn default() -> Self {
        Trail {
            last: FREE,
            next: [FREE; 2],
            first: FREE,
            step: 0,
        }
    }
}

/// Names with their entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    trails: [Cell<Trail>; KINDS],
    /// The number of slots is a power of two, or zero. At most three quarters of the slots are
    /// used.
    slots: Vec<Slot>,
    /// One tag of one byte per slot, so that a failed search touches few cache lines.
    tags: Vec<u8>,
    list: Vec<Named>,
    /// Texts of the names, each after its length (two bytes).
    text: Vec<u8>,
    /// Bytes of removed names in `text`.
    waste: usize,
    len: usize,
}

/// Returns a hash that is computed from eight bytes at a time, and is equal on all machines.
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
    /// Returns whether there are no names.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<Entry> {
        let i = self.find(hash(name.as_bytes()) as u32, name)?;
        Some(self.list[self.slots[i].place as usize].entry)
    }
    /// Returns the entry of a name, and the inode of the name that will probably be looked up next.
    #[inline]
    pub(crate) fn get_in_turn(&self, name: &str) -> Option<(Entry, Option<u32>)> {
        let first = name.as_bytes().first().copied().unwrap_or_default();
        let kind = &self.trails[usize::from(first) % KINDS];
        let mut trail = kind.get();
        let is = |place: u32| {
            let n = self.list.get(place as usize);
            n.is_some_and(|n| n.at != FREE && self.text_of(place) == name.as_bytes())
        };
        let place = if is(trail.next[0]) {
            trail.next[0]
        } else if is(trail.next[1]) {
            trail.next.swap(0, 1);
            if let Some(last) = self.list.get(trail.last as usize)
                && last.behind.get() == FREE
            {
                last.behind.set(trail.next[0]);
            }
            trail.next[0]
        } else {
            let place = self.find(hash(name.as_bytes()) as u32, name);
            let place = place.map(|i| self.slots[i].place);
            self.strays(&mut trail, place);
            kind.set(trail);
            place?
        };
        trail.last = place;
        trail.next[0] = self.behind(place, trail.step);
        kind.set(trail);
        let next = self.list.get(trail.next[0] as usize);
        let next = next.filter(|n| n.at != FREE);
        if let Some(n) = next {
            soon(&self.text[n.at as usize]);
            let after = self.behind(trail.next[0], trail.step);
            if let Some(after) = self.list.get(after as usize) {
                soon(after);
            }
        }
        let entry = self.list[place as usize].entry;
        Some((entry, next.map(|n| n.entry.ino)))
    }
    /// Returns the predicted index of the name that is looked up after the name at index `place`.
    #[inline]
    fn behind(&self, place: u32, step: u32) -> u32 {
        match self.list[place as usize].behind.get() {
            FREE => place.wrapping_add(step),
            known => known,
        }
    }
    /// Updates the predictions after a name was looked up by hash, because the prediction failed.
    /// `place` is the index of the name in the list, or `None` if the directory has no such name. A
    /// program that opens numbered files until one is missing causes such a failed look-up.
    fn strays(&self, trail: &mut Trail, place: Option<u32>) {
        let last = std::mem::replace(&mut trail.last, FREE);
        let Some(place) = place else {
            if last != FREE {
                trail.next = [trail.first, trail.next[0]];
            }
            return;
        };
        let step = place.wrapping_sub(last);
        match self.list.get(last as usize) {
            None => trail.first = place,
            // The same name was looked up again. Programs often stat a file before they open it.
            Some(_) if step == 0 => return,
            Some(last) => {
                last.behind.set(place);
                if step.wrapping_add(NEAR) <= 2 * NEAR {
                    trail.step = step;
                }
            }
        }
        // If the predicted file was replaced, the sequence continues after it.
        trail.next[1] = match self.list.get(trail.next[0] as usize) {
            Some(n) if n.at == FREE => self.behind(trail.next[0], trail.step),
            _ => trail.next[0],
        };
        // A new sequence probably ends with a failed look-up, so prefetch the tags.
        let tags = self.tags.chunks(64).take(8);
        tags.for_each(|line| soon(&line[0]));
    }
    #[inline]
    fn find(&self, hash: u32, name: &str) -> Option<usize> {
        let mask = self.tags.len().checked_sub(1)?;
        let tag = tag(hash);
        let mut i = hash as usize & mask;
        loop {
            let t = self.tags[i];
            if t == NO_TAG {
                return None;
            }
            if t == tag {
                let s = self.slots[i];
                if s.hash == hash && self.text_of(s.place) == name.as_bytes() {
                    return Some(i);
                }
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
    /// Adds a name, or replaces its entry.
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
        let behind = Cell::new(FREE);
        self.list.push(Named { at, entry, behind });
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
        (self.slots[i], self.tags[i]) = (slot, tag(slot.hash));
    }
    /// Removes a name. Later entries of its probe sequence move up, so that no search ends too
    /// early.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Entry> {
        let mut hole = self.find(hash(name.as_bytes()) as u32, name)?;
        let place = self.slots[hole].place as usize;
        let Named { at, entry, .. } = self.list[place];
        self.len -= 1;
        if place + 1 == self.list.len() {
            // The newest name is removed completely, for example a temporary name before its
            // rename.
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
            // An entry may move if the hole is not before the entry's home slot in the probe
            // sequence.
            let home = s.hash as usize & mask;
            if (i.wrapping_sub(home) & mask) >= (i.wrapping_sub(hole) & mask) {
                (self.slots[hole], self.tags[hole]) = (s, tag(s.hash));
                hole = i;
            }
        }
        (self.slots[hole], self.tags[hole]) = (EMPTY, NO_TAG);
        if self.waste > 256 && self.waste * 2 > self.text.len() {
            self.rebuild(self.slots.len());
        }
        Some(entry)
    }
    /// Rebuilds the table with this number of slots. Drops the remains of removed names.
    fn rebuild(&mut self, slots: usize) {
        let mut text = Vec::with_capacity(self.text.len() - self.waste);
        let mut list = Vec::with_capacity(self.len);
        self.slots.clear();
        self.slots.resize(slots, EMPTY);
        self.tags.clear();
        self.tags.resize(slots, NO_TAG);
        for place in 0..self.list.len() as u32 {
            let Named { at, entry, .. } = self.list[place as usize];
            if at == FREE {
                continue;
            }
            let name = self.text_of(place);
            let hash = hash(name) as u32;
            let at = text.len() as u32;
            text.extend((name.len() as u16).to_le_bytes());
            text.extend(name);
            let place = list.len() as u32;
            let behind = Cell::new(FREE);
            list.push(Named { at, entry, behind });
            self.put(Slot { hash, place });
        }
        (self.text, self.list, self.waste) = (text, list, 0);
        // The indices have changed.
        self.trails = Default::default();
    }
    /// Returns all names with their entries, sorted by name.
    pub(crate) fn sorted(&self) -> Vec<(&str, Entry)> {
        let named = |place: u32| {
            let n = &self.list[place as usize];
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
        /// Checks that any sequence of operations agrees with an ordered map.
        #[test]
        fn names_agree_with_an_ordered_map(ops in proptest::collection::vec((0u8..4, 0u32..120, 0u32..9), 0..600)) {
            let mut names = Names::default();
            let mut model: BTreeMap<String, (u32, u32)> = BTreeMap::new();
            for (op, n, block) in ops {
                // Names have various lengths, and some are prefixes of others.
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
                let in_turn = names.get_in_turn(&name).map(|(e, _)| (e.ino, e.block));
                prop_assert_eq!(in_turn, model.get(&name).copied());
                prop_assert_eq!(names.is_empty(), model.is_empty());
            }
            let want: Vec<_> = model.into_iter().map(|(n, e)| (n, e.0, e.1)).collect();
            prop_assert_eq!(pairs(&names), want);
        }
    }

    proptest! {
        /// Two programs look up names in sequence in the same directory, while files are replaced
        /// and removed. The results must not depend on the predictions.
        #[test]
        fn sequential_lookups_agree_with_an_ordered_map(
            ops in proptest::collection::vec((0u8..12, 0u32..60), 1..400),
            stride in 1u32..4,
        ) {
            let mut names = Names::default();
            let mut model: BTreeMap<String, u32> = BTreeMap::new();
            let of = |n: u32| format!("{}-{}", ["a", "b", "article"][n as usize % 3], n / 3);
            let (mut made, mut at) = (0, [0u32, 30]);
            for (op, n) in ops {
                match op {
                    0..3 => {
                        // Some names are made after all others.
                        let ino = made;
                        let name = of(n);
                        names.remove(&name);
                        names.insert(&name, Entry { ino, block: 0 });
                        model.insert(name, ino);
                        made += 1;
                    }
                    3 => prop_assert_eq!(names.remove(&of(n)).map(|e| e.ino), model.remove(&of(n))),
                    4 => at[n as usize % 2] = n,
                    _ => {
                        let who = &mut at[usize::from(op % 2)];
                        *who = (*who + 3 * stride) % 60;
                        let found = names.get_in_turn(&of(*who)).map(|(e, _)| e.ino);
                        prop_assert_eq!(found, model.get(&of(*who)).copied());
                    }
                }
            }
        }
    }

    #[test]
    fn sequential_lookups_are_predicted() {
        let mut names = Names::default();
        for n in (0..100).rev() {
            names.insert(&format!("picture-{n}"), Entry { ino: n, block: 0 });
        }
        // One file is replaced, so that its position in the list changes.
        names.remove("picture-50");
        let (ino, block) = (500, 0);
        names.insert("picture-50", Entry { ino, block });
        let next = |n: u32| names.get_in_turn(&format!("picture-{n}")).and_then(|f| f.1);
        let guessed = (0..99).filter(|n| next(*n) == Some(n + 1)).count();
        assert!(guessed >= 95, "{guessed} of 99");
        // The program looks at each file before it opens the file.
        next(1);
        let guessed = (2..40).filter(|n| next(*n) == Some(n + 1) && next(*n) == Some(n + 1));
        assert!(guessed.count() >= 36);
    }

    /// Names are looked up in an arbitrary order, for example that of random names. From the second
    /// pass on, this order is predicted: from the first name on, after a file was replaced, and
    /// while another program has failed look-ups.
    #[test]
    fn lookup_order_is_learnt_in_one_pass() {
        let mut names = Names::default();
        let made = |n: u32| n * 37 % 101;
        for n in 0..100 {
            names.insert(&format!("comment-{}", made(n)), Entry { ino: n, block: 0 });
        }
        let last = (0..101).find(|n| names.get(&format!("comment-{n}")).is_none());
        let last = last.expect("one of them is missing");
        let read = |names: &Names| {
            let ino = |n: u32| names.get(&format!("comment-{n}")).map(|e| e.ino);
            let next = |n: u32| names.get_in_turn(&format!("comment-{n}")).and_then(|f| f.1);
            let right = (0..last).filter(|n| next(*n) == ino(n + 1) && ino(n + 1).is_some());
            let right = right.count() as u32;
            assert!(names.get_in_turn(&format!("comment-{last}")).is_none());
            right
        };
        assert!(last > 50 && read(&names) < last / 4);
        assert_eq!(read(&names), last - 1);
        names.remove("comment-20");
        let (ino, block) = (500, 0);
        names.insert("comment-20", Entry { ino, block });
        assert!(read(&names) >= last - 3);
        assert_eq!(read(&names), last - 1);
        // The first name is of another kind, because its first letter differs. The second is of the
        // same kind.
        for other in ["picture-7", "cover-7"] {
            assert!(names.get_in_turn(other).is_none());
            assert_eq!(read(&names), last - 1);
        }
    }

    #[test]
    fn removed_names_release_their_memory() {
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
