//! The host's page cache for the disk of one guest: the present pages, the dirty pages, and the
//! time since which they are dirty. If the cache is full, the least recently used clean page is
//! dropped.

use seekwell_core::{Instant, Nanos};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy)]
struct Page {
    used: u64,
    dirty: bool,
}

#[derive(Debug)]
pub(super) struct PageCache {
    capacity: usize,
    expire: Nanos,
    pages: BTreeMap<u64, Page>,
    /// Clean pages, ordered by their last use.
    clean: BTreeMap<u64, u64>,
    dirty: BTreeSet<u64>,
    clock: u64,
    /// Time at which the oldest dirty page was written.
    since: Option<Instant>,
    cursor: u64,
}

impl PageCache {
    pub fn new(capacity: usize, expire: Nanos) -> Self {
        PageCache {
            capacity,
            expire,
            pages: BTreeMap::new(),
            clean: BTreeMap::new(),
            dirty: BTreeSet::new(),
            clock: 0,
            since: None,
            cursor: 0,
        }
    }
    pub fn dirty(&self) -> usize {
        self.dirty.len()
    }
    /// Returns the time at which the oldest dirty pages expire.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.since.map(|s| s + self.expire)
    }
    /// Marks the expired pages as being written.
    pub fn expire(&mut self, now: Instant) {
        self.since = (!self.dirty.is_empty()).then_some(now);
    }
    fn touch(&mut self, page: u64) {
        self.clock += 1;
        let clock = self.clock;
        if let Some(p) = self.pages.get_mut(&page) {
            let used = std::mem::replace(&mut p.used, clock);
            if !p.dirty {
                self.clean.remove(&used);
                self.clean.insert(clock, page);
            }
        }
    }
    /// Returns whether the pages `from..to` are present. Counts as a use of the pages.
    pub fn has(&mut self, from: u64, to: u64) -> bool {
        if !(from..to).all(|p| self.pages.contains_key(&p)) {
            return false;
        }
        (from..to).for_each(|p| self.touch(p));
        true
    }
    /// Adds pages. A clean page never replaces a dirty page.
    pub fn fill(&mut self, from: u64, to: u64, dirty: bool, now: Instant) {
        for page in from..to {
            self.clock += 1;
            let used = self.clock;
            match self.pages.insert(page, Page { used, dirty }) {
                Some(old) if old.dirty => {
                    self.pages.insert(page, Page { used, dirty: true });
                    continue;
                }
                Some(old) => {
                    self.clean.remove(&old.used);
                }
                None => {}
            }
            if dirty {
                self.dirty.insert(page);
                self.since.get_or_insert(now);
            } else {
                self.clean.insert(used, page);
            }
            while self.pages.len() > self.capacity
                && let Some((_, old)) = self.clean.pop_first()
            {
                self.pages.remove(&old);
            }
        }
    }
    /// Takes a contiguous run of at most `most` dirty pages and marks them clean. Successive calls
    /// proceed in one direction over the disk.
    pub fn take_run(&mut self, most: u64) -> Option<(u64, u64)> {
        let after = self.dirty.range(self.cursor..).next();
        let first = *after.or_else(|| self.dirty.first())?;
        let mut n = 0;
        while n < most && self.dirty.remove(&(first + n)) {
            if let Some(p) = self.pages.get_mut(&(first + n)) {
                p.dirty = false;
                self.clean.insert(p.used, first + n);
            }
            n += 1;
        }
        self.cursor = first + n;
        if self.dirty.is_empty() {
            self.since = None;
        }
        Some((first, n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_cache_evicts_clean_pages_by_least_recent_use_and_keeps_dirty_ones() {
        let mut c = PageCache::new(4, Nanos::from_secs(30));
        let t = Instant::START;
        c.fill(0, 2, true, t);
        c.fill(10, 12, false, t);
        assert!(c.has(10, 11) && c.has(0, 2));
        c.fill(20, 21, false, t);
        assert!(
            !c.has(11, 12) && c.has(10, 11),
            "the least recently used went"
        );
        assert_eq!(
            (c.dirty(), c.next_expiry()),
            (2, Some(t + Nanos::from_secs(30)))
        );
        c.fill(0, 1, false, t);
        assert_eq!(c.dirty(), 2, "reading does not clean");
        assert_eq!((c.take_run(8), c.take_run(8)), (Some((0, 2)), None));
        assert_eq!((c.dirty(), c.next_expiry()), (0, None));
    }

    #[test]
    fn write_back_sweeps_dirty_pages_in_one_direction() {
        let mut c = PageCache::new(64, Nanos::from_secs(30));
        for p in [30, 5, 6, 7, 50] {
            c.fill(p, p + 1, true, Instant::START);
        }
        assert_eq!(c.take_run(2), Some((5, 2)));
        c.fill(5, 6, true, Instant::START);
        let rest: Vec<_> = std::iter::from_fn(|| c.take_run(9)).collect();
        assert_eq!(rest, [(7, 1), (30, 1), (50, 1), (5, 1)]);
    }
}
