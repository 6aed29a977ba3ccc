//! The buffer pool: the pages in memory, and the flush list of dirty pages.

use std::collections::BTreeSet;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Default)]
struct Buffer {
    page: u32,
    /// True if the page was used since the clock hand last passed it.
    used: bool,
    /// True while the page is being written. It stays in memory until the write ends.
    writing: bool,
    /// Log position before the first change since the last write of the page (oldest_modification).
    oldest: Option<u64>,
    /// Log position before the first change during the current write of the page.
    again: Option<u64>,
}

/// The result of a request for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The page is in memory.
    Here,
    /// The page has a buffer and must be read.
    Read,
    /// The page whose buffer would be used is dirty and must be written first.
    Write(u32),
    /// The pages of all possible buffers are being written.
    Wait,
}

pub(super) struct Pool {
    buffers: Vec<Buffer>,
    /// The buffer of each page, or `NONE`.
    at: Vec<u32>,
    hand: usize,
    /// Dirty pages in order of their oldest change that is not in the tables.
    flush_list: BTreeSet<(u64, u32)>,
    gets: u64,
    misses: u64,
}

impl Pool {
    /// Makes the pool of a server that has run for some time. The pool is full with the first pages
    /// of the tables. Requests are uniformly distributed, so these pages are representative.
    pub(super) fn new(room: u64, pages: u64) -> Self {
        let room = room.min(pages) as u32;
        let buffer = |page| Buffer {
            page,
            ..Buffer::default()
        };
        let at = |page| if page < room { page } else { NONE };
        Pool {
            buffers: (0..room).map(buffer).collect(),
            at: (0..pages as u32).map(at).collect(),
            hand: 0,
            flush_list: BTreeSet::new(),
            gets: 0,
            misses: 0,
        }
    }

    /// Requests a page. Each request counts once, even if the search for a buffer is repeated.
    pub(super) fn get(&mut self, page: u32) -> Place {
        self.gets += 1;
        let place = self.place(page);
        self.misses += u64::from(place != Place::Here);
        place
    }
    /// Finds a buffer for a page: its own buffer, or the buffer of the next page to evict.
    pub(super) fn place(&mut self, page: u32) -> Place {
        let at = self.at[page as usize];
        if at != NONE {
            self.buffers[at as usize].used = true;
            return Place::Here;
        }
        // Two rounds, because the first round may only clear the marks.
        for _ in 0..2 * self.buffers.len() {
            let at = self.hand;
            self.hand = (at + 1) % self.buffers.len();
            let b = &mut self.buffers[at];
            if std::mem::take(&mut b.used) || b.writing {
                continue;
            }
            if b.oldest.is_some() {
                // The task that writes this page tries this buffer again next.
                self.hand = at;
                return Place::Write(b.page);
            }
            self.at[b.page as usize] = NONE;
            *b = Buffer {
                page,
                ..Buffer::default()
            };
            self.at[page as usize] = at as u32;
            return Place::Read;
        }
        Place::Wait
    }
    /// Records that a log record which begins at `lsn` changes a page. Returns false if the page is
    /// not in memory.
    pub(super) fn change(&mut self, page: u32, lsn: u64) -> bool {
        let at = self.at[page as usize];
        if at == NONE {
            return false;
        }
        let b = &mut self.buffers[at as usize];
        let first = if b.writing {
            &mut b.again
        } else {
            &mut b.oldest
        };
        if first.is_none() {
            *first = Some(lsn);
            if !b.writing {
                self.flush_list.insert((lsn, page));
            }
        }
        true
    }
    /// Begins to write a dirty page. Returns false if the page is not dirty or is already being
    /// written.
    pub(super) fn begin_write(&mut self, page: u32) -> bool {
        let at = self.at[page as usize];
        if at == NONE {
            return false;
        }
        let b = &mut self.buffers[at as usize];
        let begins = b.oldest.is_some() && !b.writing;
        b.writing |= begins;
        begins
    }
    /// Ends a write. The page is then clean, unless it was changed during the write.
    pub(super) fn end_write(&mut self, page: u32) {
        let b = &mut self.buffers[self.at[page as usize] as usize];
        if let Some(oldest) = b.oldest.take() {
            self.flush_list.remove(&(oldest, page));
        }
        b.writing = false;
        b.oldest = b.again.take();
        if let Some(lsn) = b.oldest {
            self.flush_list.insert((lsn, page));
        }
    }
    /// Returns up to `most` dirty pages with the oldest changes, in the order of their positions.
    pub(super) fn oldest(&self, most: usize) -> Vec<u32> {
        let writing = |page: u32| self.buffers[self.at[page as usize] as usize].writing;
        let all = self.flush_list.iter().map(|d| d.1);
        let mut pages: Vec<u32> = all.filter(|p| !writing(*p)).take(most).collect();
        pages.sort_unstable();
        pages
    }
    /// Returns the dirty pages among the next `depth` buffers of the clock hand (the end of the LRU
    /// list).
    pub(super) fn next_to_go(&self, depth: usize) -> Vec<u32> {
        let len = self.buffers.len();
        let next = (0..depth.min(len)).map(|i| &self.buffers[(self.hand + i) % len]);
        let dirty = next.filter(|b| b.oldest.is_some() && !b.writing && !b.used);
        let mut pages: Vec<u32> = dirty.map(|b| b.page).collect();
        pages.sort_unstable();
        pages
    }
    /// Returns the oldest log position whose change is not in the tables.
    pub(super) fn oldest_change(&self) -> Option<u64> {
        self.flush_list.first().map(|d| d.0)
    }
    /// Returns the dirty pages, in percent of the pool.
    pub(super) fn dirty_pct(&self) -> f64 {
        100.0 * self.flush_list.len() as f64 / self.buffers.len() as f64
    }
    /// Returns true if the pool contains all pages of the tables.
    pub(super) fn holds_all(&self) -> bool {
        self.buffers.len() == self.at.len()
    }
    /// Returns the requests that found their page in memory, in percent.
    pub(super) fn hit_pct(&self) -> f64 {
        100.0 - 100.0 * self.misses as f64 / self.gets.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_changed_during_its_write_stays_dirty_from_that_change_on() {
        let mut p = Pool::new(4, 8);
        assert!(p.change(1, 100) && p.change(1, 110) && p.change(2, 120));
        assert_eq!((p.oldest_change(), p.oldest(9)), (Some(100), vec![1, 2]));
        assert!(p.begin_write(1) && !p.begin_write(1) && !p.begin_write(3));
        assert!(p.change(1, 130));
        assert_eq!((p.oldest_change(), p.oldest(9)), (Some(100), vec![2]));
        p.end_write(1);
        assert_eq!((p.oldest_change(), p.oldest(9)), (Some(120), vec![1, 2]));
    }

    #[test]
    fn evicted_page_is_clean_unused_and_not_being_written() {
        let mut p = Pool::new(3, 8);
        assert_eq!(p.get(0), Place::Here);
        assert!(p.change(1, 50));
        // The mark of page 0 is cleared, and page 1 is dirty.
        assert_eq!(p.get(5), Place::Write(1));
        assert!(p.begin_write(1));
        assert_eq!(p.place(5), Place::Read);
        // Page 1 stays in memory while it is being written, for any requests.
        assert_eq!((p.get(0), p.get(6)), (Place::Here, Place::Read));
        assert_eq!((p.place(1), p.place(5)), (Place::Here, Place::Read));
        p.end_write(1);
        // This request evicted page 0.
        assert!(!p.change(0, 60) && p.change(5, 60));
        assert_eq!(p.oldest_change(), Some(60));
        assert_eq!(p.hit_pct(), 50.0);
    }

    #[test]
    fn pool_that_holds_all_tables_never_reads() {
        let mut p = Pool::new(100, 8);
        assert!(p.holds_all());
        assert!((0..8).all(|page| p.get(page) == Place::Here));
        assert!(p.change(3, 1));
        assert_eq!((p.dirty_pct(), p.hit_pct()), (12.5, 100.0));
    }
}
