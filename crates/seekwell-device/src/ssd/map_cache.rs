//! The cache of translation pages, in a drive whose RAM is too small for the whole map. The least
//! recently used translation page is evicted.

/// Number of pages that one translation page maps; they are 4 MiB of addresses.
pub(super) const COVERS: u64 = 1024;
const NONE: u32 = u32::MAX;

/// The cost of a map look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cost {
    /// True if the translation page must be read from flash.
    pub miss: bool,
    /// True if a changed translation page must first be written, to free its space.
    pub write_back: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    older: u32,
    newer: u32,
    dirty: bool,
    held: bool,
}

/// An exact least-recently-used set of translation pages, by index.
#[derive(Debug, Clone)]
pub(super) struct MapCache {
    entries: Vec<Entry>,
    oldest: u32,
    newest: u32,
    held: u32,
    room: u32,
}

impl MapCache {
    /// Makes a cache for `pages` user pages with space for `room` translation pages. With `room` 0
    /// the whole map is in RAM, and look-ups cost nothing.
    pub fn new(pages: u64, room: u32) -> Self {
        let n = if room == 0 { 0 } else { pages.div_ceil(COVERS) };
        let entry = Entry {
            older: NONE,
            newer: NONE,
            dirty: false,
            held: false,
        };
        MapCache {
            entries: vec![entry; n as usize],
            oldest: NONE,
            newest: NONE,
            held: 0,
            room,
        }
    }
    fn unlink(&mut self, i: u32) {
        let e = self.entries[i as usize];
        match e.older {
            NONE => self.oldest = e.newer,
            o => self.entries[o as usize].newer = e.newer,
        }
        match e.newer {
            NONE => self.newest = e.older,
            n => self.entries[n as usize].older = e.older,
        }
    }
    fn link_newest(&mut self, i: u32) {
        let old = self.newest;
        let e = &mut self.entries[i as usize];
        (e.older, e.newer, e.held) = (old, NONE, true);
        match old {
            NONE => self.oldest = i,
            o => self.entries[o as usize].newer = i,
        }
        self.newest = i;
    }
    /// Looks up the entry of a user page, or changes the entry if `write` is true.
    #[inline]
    pub fn touch(&mut self, page: u64, write: bool) -> Cost {
        if self.room == 0 {
            return Cost::default();
        }
        let i = (page / COVERS) as u32;
        let mut cost = Cost::default();
        if self.entries[i as usize].held {
            if self.newest != i {
                self.unlink(i);
                self.link_newest(i);
            }
        } else {
            cost.miss = true;
            if self.held == self.room {
                let gone = self.oldest;
                self.unlink(gone);
                let e = &mut self.entries[gone as usize];
                cost.write_back = e.dirty;
                (e.held, e.dirty) = (false, false);
            } else {
                self.held += 1;
            }
            self.link_newest(i);
        }
        self.entries[i as usize].dirty |= write;
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The hits and write-backs equal those of a list in order of use.
        #[test]
        fn map_cache_agrees_with_a_plain_list(
            room in 1u32..6,
            touches in proptest::collection::vec((0u64..10, any::<bool>()), 1..200),
        ) {
            let mut cache = MapCache::new(10 * COVERS, room);
            let mut plain: Vec<(u64, bool)> = vec![];
            for (tp, write) in touches {
                let cost = cache.touch(tp * COVERS + 5, write);
                let mut expected = Cost::default();
                let dirty = match plain.iter().position(|e| e.0 == tp) {
                    Some(i) => plain.remove(i).1,
                    None => {
                        expected.miss = true;
                        if plain.len() == room as usize {
                            expected.write_back = plain.remove(0).1;
                        }
                        false
                    }
                };
                plain.push((tp, dirty | write));
                prop_assert_eq!(cost, expected);
            }
        }
    }
}
