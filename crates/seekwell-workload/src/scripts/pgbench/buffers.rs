//! The shared buffers: which pages are in memory, which of them are dirty, and which were logged as
//! whole pages since the last checkpoint began.

use super::{PAGE, RECORDS, Server, wal};
use crate::fail::{Context, Outcome};
use crate::machine::Machine;
use seekwell_core::soon;

const NONE: u32 = u32::MAX;
/// Maximum value of a buffer's usage counter.
const MAX_USAGE: u8 = 5;

#[derive(Clone, Copy)]
struct Buffer {
    page: u64,
    usage: u8,
    dirty: bool,
    /// End of the log record of the last change of the page.
    lsn: u64,
}

#[derive(Clone, Copy)]
struct PageState {
    /// Buffer of the page, or [`NONE`].
    buffer: u32,
    /// Number of the last checkpoint after whose start the whole page was logged.
    logged: u32,
}

/// The buffers, and the state of all pages.
pub(super) struct Pool {
    buffers: Vec<Buffer>,
    room: usize,
    pages: Vec<PageState>,
    hand: usize,
    /// Number of checkpoints begun.
    epoch: u32,
    full_pages: bool,
}

/// A dirty page that lost its buffer. It must be written, but only after the log is flushed up to
/// `lsn`.
#[derive(Clone, Copy)]
pub(super) struct Evicted {
    page: u64,
    lsn: u64,
}

/// The result of a request for a page.
pub(super) struct Got {
    page: u64,
    /// True if the page must be read.
    miss: bool,
    evicted: Option<Evicted>,
    /// True if this change must log the whole page.
    whole: bool,
}

impl Got {
    /// Returns true if the page is available without further work.
    pub(super) fn is_there(&self) -> bool {
        !self.miss && self.evicted.is_none()
    }
}

impl Pool {
    pub(super) fn new(room: usize, full_pages: bool) -> Self {
        Pool {
            buffers: Vec::new(),
            room: room.max(16),
            pages: Vec::new(),
            hand: 0,
            epoch: 1,
            full_pages,
        }
    }

    fn get(&mut self, page: u64, write: bool) -> Got {
        let p = page as usize;
        if self.pages.len() <= p {
            let unknown = PageState {
                buffer: NONE,
                logged: 0,
            };
            self.pages.resize(p + 1, unknown);
        }
        let whole = write && self.full_pages && self.pages[p].logged != self.epoch;
        if whole {
            self.pages[p].logged = self.epoch;
        }
        let b = self.pages[p].buffer;
        if b != NONE {
            let b = &mut self.buffers[b as usize];
            b.usage = (b.usage + 1).min(MAX_USAGE);
            b.dirty |= write;
            return Got {
                page,
                miss: false,
                evicted: None,
                whole,
            };
        }
        let fresh = Buffer {
            page,
            usage: 1,
            dirty: write,
            lsn: 0,
        };
        let mut evicted = None;
        let at = if self.buffers.len() < self.room {
            self.buffers.push(fresh);
            self.buffers.len() - 1
        } else {
            let at = self.victim();
            let old = std::mem::replace(&mut self.buffers[at], fresh);
            self.pages[old.page as usize].buffer = NONE;
            evicted = old.dirty.then_some(Evicted {
                page: old.page,
                lsn: old.lsn,
            });
            at
        };
        self.pages[p].buffer = at as u32;
        Got {
            page,
            miss: true,
            evicted,
            whole,
        }
    }

    /// Returns the next buffer of the clock that was not used since the last round.
    fn victim(&mut self) -> usize {
        loop {
            let at = self.hand;
            // The clock hand passes several buffers per miss, so avoid a division.
            self.hand = if at + 1 < self.buffers.len() {
                at + 1
            } else {
                0
            };
            let b = &mut self.buffers[at];
            if b.usage == 0 {
                return at;
            }
            b.usage -= 1;
        }
    }

    /// Prefetches the state of pages that are needed soon into the processor's cache.
    pub(super) fn soon(&self, pages: [u64; 2]) {
        for p in pages {
            if let Some(state) = self.pages.get(p as usize) {
                soon(state);
            }
        }
    }

    fn changed(&mut self, page: u64, lsn: u64) {
        let b = self.pages[page as usize].buffer;
        if b != NONE {
            self.buffers[b as usize].lsn = lsn;
        }
    }

    /// Begins a checkpoint. Returns the dirty pages in the order of their buffers.
    pub(super) fn checkpoint(&mut self) -> Vec<u64> {
        self.epoch += 1;
        let dirty = self.buffers.iter().filter(|b| b.dirty);
        dirty.map(|b| b.page).collect()
    }

    /// Marks a page as clean if it is in memory and dirty. The caller must then write the page.
    pub(super) fn clean(&mut self, page: u64) -> Option<Evicted> {
        let b = self.pages[page as usize].buffer;
        if b == NONE || !self.buffers[b as usize].dirty {
            return None;
        }
        let b = &mut self.buffers[b as usize];
        b.dirty = false;
        Some(Evicted { page, lsn: b.lsn })
    }

    /// Returns up to `n` dirty pages among the next buffers of the clock.
    pub(super) fn ahead(&self, n: usize) -> Vec<u64> {
        let len = self.buffers.len();
        if len < self.room {
            return Vec::new();
        }
        let next = (0..len.min(n * 4)).map(|i| &self.buffers[(self.hand + i) % len]);
        let dirty = next.filter(|b| b.dirty && b.usage == 0);
        dirty.take(n).map(|b| b.page).collect()
    }
}

/// Writes a page into the page cache, after flushing the log up to its last change.
pub(super) async fn write<M: Machine>(m: &mut M, s: &Server, e: Evicted) -> Outcome {
    wal::flush(m, s, e.lsn).await?;
    let (fd, off) = s.place(e.page);
    let op = m.op_begin("page write");
    let n = m.write(fd, off, PAGE).await;
    n.doing(|| format!("write page {}", e.page))?;
    m.op_end(op, u64::from(PAGE));
    Ok(())
}

/// Requests a page for reading, or for a change if `change` is true.
pub(super) fn want(s: &Server, page: u64, change: bool) -> Got {
    s.pool.with(|p| p.get(page, change))
}

/// Does the work that is needed before a page is available: writes the evicted page, and reads the
/// page.
pub(super) async fn bring<M: Machine>(m: &mut M, s: &Server, got: &Got) -> Outcome {
    if let Some(e) = got.evicted {
        write(m, s, e).await?;
    }
    // Pages at the growing end of the history table are new, so they are not read.
    let page = got.page;
    let new = page >= s.history.first + s.history.pages;
    if got.miss && !new {
        let (fd, off) = s.place(page);
        let op = m.op_begin("page read");
        let n = m.read(fd, off, PAGE).await;
        n.doing(|| format!("read page {page}"))?;
        m.op_end(op, u64::from(PAGE));
    }
    Ok(())
}

/// Returns the size of the log record of a change, in bytes. It includes the whole page if
/// necessary.
pub(super) fn record(s: &Server, got: &Got) -> u64 {
    s.record / RECORDS + if got.whole { u64::from(PAGE) } else { 0 }
}

/// Records that the log contains the change of a page up to `lsn`.
pub(super) fn changed(s: &Server, got: &Got, lsn: u64) {
    s.pool.with(|p| p.changed(got.page, lsn));
}
