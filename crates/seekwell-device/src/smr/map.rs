//! The map of a shingled disk: where the current data of each address is. Data that the map does
//! not contain is in its band.

use std::collections::{BTreeMap, VecDeque};

/// The location of data that is not in its band.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the volatile buffer, by the write with this number.
    Buffer(u64),
    /// In the persistent cache: the number of the log entry, and the sector of the cache.
    Log { entry: u64, at: u64 },
}

/// Sectors of a block of the persistent cache: 4 KiB.
const BLOCK: u64 = 8;

/// Returns the number of sectors that a range takes in the persistent cache: whole blocks.
pub fn whole_blocks(range: (u64, u64)) -> u64 {
    range.1.next_multiple_of(BLOCK) - range.0 / BLOCK * BLOCK
}

/// A range of addresses in the persistent cache.
#[derive(Debug, Clone, Copy)]
struct Entry {
    lba: u64,
    sectors: u64,
    /// Sectors of the entry that were not overwritten or cleaned.
    live: u64,
    /// Space that the entry uses, with its part of the records and gaps.
    space: u64,
}

/// The map and the log; see the module.
#[derive(Debug, Clone)]
pub struct Map {
    /// First sector to end sector and place. Extents do not overlap.
    extents: BTreeMap<u64, (u64, Place)>,
    /// Sectors in the volatile buffer.
    buffered: u64,
    /// Number of extents in the persistent cache.
    logged: usize,
    entries: VecDeque<Entry>,
    /// Number of the first entry.
    first: u64,
    /// Entries from this number on belong to a group that is being written.
    open: u64,
    size: u64,
    used: u64,
    head: u64,
}

impl Map {
    /// Makes an empty map for a persistent cache of this number of sectors.
    pub fn new(size: u64) -> Self {
        Map {
            extents: BTreeMap::new(),
            buffered: 0,
            logged: 0,
            entries: VecDeque::new(),
            first: 0,
            open: 0,
            size,
            used: 0,
            head: 0,
        }
    }
    /// Returns the number of sectors in the volatile buffer.
    pub fn buffered(&self) -> u64 {
        self.buffered
    }
    /// Returns the number of extents in the persistent cache.
    pub fn logged(&self) -> usize {
        self.logged
    }
    /// Returns the used space of the persistent cache in sectors.
    pub fn used(&self) -> u64 {
        self.used
    }
    /// Returns the number that the next entry will have.
    pub fn next_entry(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Calls `f` with each part of [a, b): its range and its place, in the order of addresses.
    pub fn parts(&self, a: u64, b: u64, mut f: impl FnMut(u64, u64, Option<Place>)) {
        let mut at = a;
        let before = self.extents.range(..a).next_back();
        let before = before.filter(|e| e.1.0 > a).into_iter();
        for (start, (end, place)) in before.chain(self.extents.range(a..b)) {
            let (start, end) = ((*start).max(a), (*end).min(b));
            if start > at {
                f(at, start, None);
            }
            f(start, end, Some(*place));
            at = end;
        }
        if at < b {
            f(at, b, None);
        }
    }

    /// Removes what is known about [a, b), if `gone` says so for its place.
    pub fn remove(&mut self, a: u64, b: u64, gone: impl Fn(Place) -> bool) {
        let mut parts = Vec::new();
        self.parts(a, b, |x, y, place| parts.extend(place.map(|p| (x, y, p))));
        for (x, y, place) in parts.into_iter().filter(|p| gone(p.2)) {
            self.cut(x, y, place);
        }
        self.reclaim();
    }

    /// Removes the part [x, y) of the extent that contains it.
    fn cut(&mut self, x: u64, y: u64, place: Place) {
        let Some((&start, &(end, whole))) = self.extents.range(..=x).next_back() else {
            return;
        };
        self.extents.remove(&start);
        if start < x {
            self.extents.insert(start, (x, whole));
        }
        if y < end {
            self.extents.insert(y, (end, shifted(whole, y - start)));
        }
        match place {
            Place::Buffer(_) => self.buffered -= y - x,
            Place::Log { entry, .. } => {
                let rest = usize::from(start < x) + usize::from(y < end);
                self.logged = self.logged + rest - 1;
                self.entries[(entry - self.first) as usize].live -= y - x;
            }
        }
    }

    /// Records a write of the host in the volatile buffer.
    pub fn buffer(&mut self, a: u64, b: u64, write: u64) {
        self.remove(a, b, |_| true);
        self.extents.insert(a, (b, Place::Buffer(write)));
        self.buffered += b - a;
    }

    /// Returns the parts of [a, b) that only the write with this number has in the buffer.
    pub fn still_buffered(&self, a: u64, b: u64, write: u64, out: &mut Vec<(u64, u64)>) {
        self.parts(a, b, |x, y, place| {
            if place == Some(Place::Buffer(write)) {
                out.push((x, y));
            }
        });
    }

    /// Returns whether the persistent cache has space for a group of this number of sectors.
    pub fn has_room(&self, sectors: u64) -> bool {
        self.used + self.gap(sectors) + sectors <= self.size
    }

    /// Returns the sectors at the end of the cache that a group must skip, because it does not
    /// continue at the beginning of the cache.
    fn gap(&self, sectors: u64) -> u64 {
        match self.head + sectors > self.size {
            true => self.size - self.head,
            false => 0,
        }
    }

    /// Takes space for a group: `record` sectors for its map record, then the ranges in whole
    /// blocks. Returns the first sector in the cache, and the number of the first entry.
    pub fn append(&mut self, record: u64, ranges: &[(u64, u64)]) -> (u64, u64) {
        let total = record + ranges.iter().map(|r| whole_blocks(*r)).sum::<u64>();
        let gap = self.gap(total);
        if gap > 0 {
            self.head = 0;
        }
        let at = self.head;
        let entry = self.next_entry();
        self.open = entry;
        let mut extra = gap + record;
        for (a, b) in ranges {
            self.entries.push_back(Entry {
                lba: *a,
                sectors: b - a,
                live: 0,
                space: whole_blocks((*a, *b)) + extra,
            });
            extra = 0;
        }
        self.head += total;
        self.used += gap + total;
        (at, entry)
    }

    /// Records that a range of the open group is at sector `at` of the persistent cache. Parts that a
    /// newer write has replaced stay in the buffer.
    pub fn appended(&mut self, range: (u64, u64), write: u64, entry: u64, at: u64) {
        let mut moved = Vec::new();
        self.still_buffered(range.0, range.1, write, &mut moved);
        for (x, y) in moved {
            self.cut(x, y, Place::Buffer(write));
            let place = Place::Log {
                entry,
                at: at + x - range.0,
            };
            self.extents.insert(x, (y, place));
            self.logged += 1;
            self.entries[(entry - self.first) as usize].live += y - x;
        }
    }

    /// Ends the open group.
    pub fn close(&mut self) {
        self.open = self.next_entry();
        self.reclaim();
    }

    /// Frees the space of the oldest entries that contain no current data.
    fn reclaim(&mut self) {
        while self.first < self.open && self.entries.front().is_some_and(|e| e.live == 0) {
            self.used -= self.entries.pop_front().map_or(0, |e| e.space);
            self.first += 1;
        }
        if self.entries.is_empty() {
            self.head = 0;
        }
    }

    /// Returns an address whose current data is in the oldest entry of the persistent cache.
    pub fn oldest(&self) -> Option<u64> {
        let e = self.entries.front().filter(|e| e.live > 0)?;
        let mut found = None;
        self.parts(e.lba, e.lba + e.sectors, |x, _, place| {
            let here = matches!(place, Some(Place::Log { entry, .. }) if entry == self.first);
            if here {
                found = found.or(Some(x));
            }
        });
        found
    }
}

/// Returns the place of the rest of an extent, without its first sectors.
fn shifted(place: Place, sectors: u64) -> Place {
    match place {
        Place::Log { entry, at } => Place::Log {
            entry,
            at: at + sectors,
        },
        buffer @ Place::Buffer(_) => buffer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(m: &Map, a: u64, b: u64) -> Vec<(u64, u64, Option<Place>)> {
        let mut out = vec![];
        m.parts(a, b, |x, y, p| out.push((x, y, p)));
        out
    }

    fn append(m: &mut Map, a: u64, b: u64, write: u64) -> u64 {
        m.buffer(a, b, write);
        let (at, entry) = m.append(8, &[(a, b)]);
        m.appended((a, b), write, entry, at + 8);
        m.close();
        at
    }

    #[test]
    fn newest_data_hides_older_data() {
        let mut m = Map::new(10_000);
        append(&mut m, 100, 200, 1);
        m.buffer(150, 160, 2);
        let log = |at| Some(Place::Log { entry: 0, at });
        assert_eq!(
            list(&m, 90, 210),
            [
                (90, 100, None),
                (100, 150, log(8)),
                (150, 160, Some(Place::Buffer(2))),
                (160, 200, log(68)),
                (200, 210, None)
            ]
        );
        assert_eq!((m.buffered(), m.logged(), m.used()), (10, 2, 112));
    }

    #[test]
    fn space_returns_when_the_oldest_entries_are_dead() {
        let mut m = Map::new(1000);
        append(&mut m, 0, 100, 1);
        append(&mut m, 500, 600, 2);
        append(&mut m, 500, 600, 3);
        assert_eq!((m.used(), m.logged()), (336, 2));
        // The second entry is dead, but the first one is older and not.
        m.remove(0, 100, |_| true);
        assert_eq!((m.used(), m.logged()), (112, 1));
        assert_eq!(m.oldest(), Some(500));
    }

    #[test]
    fn group_does_not_wrap_around() {
        let mut m = Map::new(300);
        assert_eq!(append(&mut m, 0, 100, 1), 0);
        assert_eq!(append(&mut m, 200, 300, 2), 112);
        assert!(!m.has_room(108));
        m.remove(0, 100, |_| true);
        assert!(m.has_room(80) && !m.has_room(120));
        // Whole blocks: 696 to 760, and the record. Then 4 sectors at the end are skipped.
        assert_eq!(append(&mut m, 700, 760, 3), 224);
        assert_eq!(append(&mut m, 800, 830, 4), 0);
        assert_eq!(m.used(), 112 + 72 + 4 + 40);
    }

    #[test]
    fn data_overwritten_during_the_append_stays_in_the_buffer() {
        let mut m = Map::new(1000);
        m.buffer(0, 16, 1);
        let (at, entry) = m.append(8, &[(0, 16)]);
        m.buffer(8, 16, 2);
        m.appended((0, 16), 1, entry, at + 8);
        m.close();
        assert_eq!(
            list(&m, 0, 16),
            [
                (0, 8, Some(Place::Log { entry: 0, at: 8 })),
                (8, 16, Some(Place::Buffer(2)))
            ]
        );
    }
}
