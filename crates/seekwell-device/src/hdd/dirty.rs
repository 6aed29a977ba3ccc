//! The write cache of the disk: dirty extents in order of address. Adjacent extents are merged.
//!
//! The cache has a limit in sectors and a limit in extents. Data that are being written to the
//! medium count until the write is complete.

use super::Ticks;
use super::mech::Mech;
use seekwell_core::{Links, List};

#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    start: u64,
    end: u64,
    /// Sequence number; a smaller number is older.
    stamp: u64,
    cyl: u32,
    head: u32,
    theta: Ticks,
}

/// A range that is being written to the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flight {
    pub lba: u64,
    pub n: u32,
    /// True if the range is a whole extent. Its entry becomes free when the write completes.
    pub entry: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Dirty {
    slab: Vec<Extent>,
    free: Vec<u32>,
    /// (first sector, index in the slab), ascending.
    order: Vec<(u64, u32)>,
    age: List,
    links: Links,
    stamp: u64,
    /// Number of sectors that are dirty or being written. `flying` is the number of entries being
    /// written.
    sectors: u64,
    flying: u32,
    limit: u64,
    entries: u32,
    /// Maximum number of extents whose positioning times are compared when destaging.
    window: usize,
    /// Maximum difference, in cylinders, between the order of addresses and the order of physical
    /// positions.
    disorder: u32,
    /// Number of 512-byte sectors per physical sector.
    physical: u64,
}

impl Dirty {
    pub fn new(limit: u64, entries: u32, window: u32, disorder: u32, physical: u64) -> Self {
        let n = entries as usize + 2;
        Dirty {
            slab: Vec::with_capacity(n),
            free: Vec::with_capacity(n),
            order: Vec::with_capacity(n),
            age: List::new(),
            links: Links::new(),
            stamp: 0,
            sectors: 0,
            flying: 0,
            limit,
            entries,
            window: if window == 0 {
                usize::MAX
            } else {
                window as usize
            },
            disorder,
            physical: physical.max(1),
        }
    }
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
    /// Returns the number of extents, without those that are being written.
    pub fn len(&self) -> usize {
        self.order.len()
    }
    /// Returns the fill level, 0 to 1. It is the larger of the levels in sectors and in entries.
    pub fn fill(&self) -> f64 {
        let entries = (self.order.len() as u32 + self.flying) as f64 / f64::from(self.entries);
        (self.sectors as f64 / self.limit as f64).max(entries)
    }
    /// Returns true if an empty cache has enough space for `n` sectors.
    pub fn can_hold(&self, n: u64) -> bool {
        n <= self.limit
    }

    /// Returns the position, in `order`, of the first extent that ends at or after `a`.
    #[inline]
    fn first_touching(&self, a: u64) -> usize {
        let i = self.order.partition_point(|o| o.0 < a);
        if i > 0 && self.slab[self.order[i - 1].1 as usize].end >= a {
            i - 1
        } else {
            i
        }
    }
    /// Returns true if all sectors of [a, b) are dirty.
    pub fn covers(&self, a: u64, b: u64) -> bool {
        let i = self.order.partition_point(|o| o.0 <= a);
        i > 0 && self.slab[self.order[i - 1].1 as usize].end >= b
    }
    /// Returns true if [a, b) fits into the cache. Sectors that are already dirty need no space. A
    /// range that is adjacent to an extent needs no entry.
    pub fn fits(&self, a: u64, b: u64) -> bool {
        let (mut need, mut touching) = (b - a, false);
        for &(start, x) in &self.order[self.first_touching(a)..] {
            if start > b {
                break;
            }
            let e = &self.slab[x as usize];
            need -= e.end.min(b).saturating_sub(e.start.max(a));
            touching = true;
        }
        self.sectors + need <= self.limit
            && (touching || self.order.len() as u32 + self.flying < self.entries)
    }

    /// Adds the sectors [a, b).
    pub fn insert(&mut self, a: u64, b: u64, mech: &Mech) {
        let from = self.first_touching(a);
        let (mut start, mut end, mut to) = (a, b, from);
        let (mut oldest, mut had) = (None::<u32>, 0);
        while let Some(&(s, x)) = self.order.get(to) {
            if s > b {
                break;
            }
            let e = self.slab[x as usize];
            (start, end) = (start.min(e.start), end.max(e.end));
            had += e.end - e.start;
            // A merged extent has the age of its oldest part.
            let older = oldest.is_none_or(|o| e.stamp < self.slab[o as usize].stamp);
            let gone = if older { oldest.replace(x) } else { Some(x) };
            if let Some(g) = gone {
                self.links.remove(&mut self.age, g);
                self.free.push(g);
            }
            to += 1;
        }
        self.sectors += end - start - had;
        let x = match oldest {
            Some(x) => x,
            None => {
                let x = self.free.pop().unwrap_or_else(|| {
                    self.slab.push(Extent::default());
                    self.slab.len() as u32 - 1
                });
                self.stamp += 1;
                self.slab[x as usize].stamp = self.stamp;
                self.links.push_back(&mut self.age, x);
                x
            }
        };
        self.set(x, start, end, mech);
        if to > from {
            self.order[from] = (start, x);
            self.order.drain(from + 1..to);
        } else {
            self.order.insert(from, (start, x));
        }
    }

    fn set(&mut self, x: u32, start: u64, end: u64, mech: &Mech) {
        let e = &mut self.slab[x as usize];
        if e.start != start || e.end == 0 {
            let place = mech.geometry.locate(start);
            (e.cyl, e.head) = (place.cyl, place.head);
            e.theta = mech.geometry.angle(place.zone, place.slot);
        }
        (e.start, e.end) = (start, end);
    }

    /// Removes [a, b) from the cache, because a write past the cache replaces these sectors.
    pub fn remove(&mut self, a: u64, b: u64, mech: &Mech) {
        let mut i = self.first_touching(a);
        while let Some(&(s, x)) = self.order.get(i) {
            if s >= b {
                break;
            }
            let e = self.slab[x as usize];
            if e.end <= a {
                i += 1;
                continue;
            }
            self.order.remove(i);
            self.links.remove(&mut self.age, x);
            self.slab[x as usize] = Extent::default();
            self.free.push(x);
            self.sectors -= e.end - e.start;
            if e.start < a {
                self.insert(e.start, a, mech);
                i += 1;
            }
            if b < e.end {
                self.insert(b, e.end, mech);
            }
        }
    }

    /// Returns true if an extent begins at `lba`.
    pub fn begins(&self, lba: u64) -> bool {
        self.order.binary_search_by_key(&lba, |o| o.0).is_ok()
    }

    /// Selects the next extent to write at `t`. If an extent begins at `stream`, it is selected.
    /// Otherwise the extent with the shortest positioning time among the oldest is selected.
    pub fn pick(&self, mech: &Mech, t: Ticks, guard: Ticks, stream: Option<u64>) -> Option<usize> {
        if let Some(lba) = stream
            && let Ok(i) = self.order.binary_search_by_key(&lba, |o| o.0)
        {
            return Some(i);
        }
        let psi = mech.phase_at(t);
        let n = self.order.len();
        if n <= 1 {
            return (n == 1).then_some(0);
        }
        let cost = |x: u32| {
            let e = &self.slab[x as usize];
            mech.estimate(psi, e.cyl, e.head, e.theta, true, guard)
        };
        if n > self.window {
            let mut best = (Ticks::MAX, 0);
            for x in self.links.iter(&self.age).take(self.window) {
                best = best.min((cost(x), self.slab[x as usize].start));
            }
            let i = self.order.partition_point(|o| o.0 < best.1);
            return Some(i);
        }
        // Search outward from the position of the arm. Stop when the seek time alone exceeds the
        // best positioning time so far.
        let near = |x: u32| {
            let cyl = self.slab[x as usize].cyl;
            let toward = if cyl > mech.at.cyl {
                (cyl - self.disorder.min(cyl - mech.at.cyl)).max(mech.at.cyl)
            } else {
                (cyl + self.disorder).min(mech.at.cyl)
            };
            mech.seek(toward)
        };
        let middle = self.order.partition_point(|o| o.0 < mech.at.lba);
        let (mut best, mut index) = (Ticks::MAX, 0);
        let (mut up, mut down) = (middle, middle);
        loop {
            let mut moved = false;
            if up < n && near(self.order[up].1) < best {
                let c = cost(self.order[up].1);
                if c < best {
                    (best, index) = (c, up);
                }
                up += 1;
                moved = true;
            }
            if down > 0 && near(self.order[down - 1].1) < best {
                down -= 1;
                let c = cost(self.order[down].1);
                if c < best {
                    (best, index) = (c, down);
                }
                moved = true;
            }
            if !moved {
                return Some(index);
            }
        }
    }

    /// Removes the extent at position `i` from the cache to write it, at most up to the end of its
    /// track. If a physical sector begins on this track, the range includes all of it. So the end
    /// of a track never splits a physical sector.
    pub fn take(&mut self, i: usize, mech: &Mech) -> Flight {
        let (start, x) = self.order[i];
        let e = self.slab[x as usize];
        let left = u64::from(mech.geometry.locate(start).left);
        let cut = (start + left).next_multiple_of(self.physical);
        let n = (cut - start).min(e.end - start);
        let entry = start + n == e.end;
        if entry {
            self.order.remove(i);
            self.links.remove(&mut self.age, x);
            self.slab[x as usize] = Extent::default();
            self.free.push(x);
            self.flying += 1;
        } else {
            self.order[i].0 = start + n;
            self.set(x, start + n, e.end, mech);
        }
        Flight {
            lba: start,
            n: n as u32,
            entry,
        }
    }
    /// Records that the write of a range to the medium is complete.
    pub fn landed(&mut self, f: Flight) {
        self.sectors -= u64::from(f.n);
        self.flying -= u32::from(f.entry);
    }
}
