//! Shared buffers: which pages are in memory, which of them are dirty, which were logged whole
//! since the last checkpoint began.

use super::{PAGE, RECORDS, Server, wal};
use crate::fail::{Context, Outcome};
use crate::machine::Machine;

const NONE: u32 = u32::MAX;
/// A buffer's usage counter stops here.
const MAX_USAGE: u8 = 5;

#[derive(Clone, Copy)]
struct Buffer {
    page: u64,
    usage: u8,
    dirty: bool,
    /// End of the log record of its last change.
    lsn: u64,
}

#[derive(Clone, Copy)]
struct PageState {
    /// Where it is, or [`NONE`].
    buffer: u32,
    /// Checkpoint since whose start it was logged whole.
    logged: u32,
}

/// The buffers and what is known of all pages.
pub(super) struct Pool {
    buffers: Vec<Buffer>,
    room: usize,
    pages: Vec<PageState>,
    hand: usize,
    /// Checkpoints begun.
    epoch: u32,
    full_pages: bool,
}

/// A dirty page that lost its buffer: it must be written, after the log up to there.
#[derive(Clone, Copy)]
pub(super) struct Evicted {
    page: u64,
    lsn: u64,
}

/// What happened to a page that was asked for.
struct Got {
    /// It must be read.
    miss: bool,
    evicted: Option<Evicted>,
    /// This change logs it whole.
    whole: bool,
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
            miss: true,
            evicted,
            whole,
        }
    }

    /// The clock's next buffer that nobody used since its last round.
    fn victim(&mut self) -> usize {
        loop {
            let at = self.hand;
            // The hand goes by several buffers a miss: no division.
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

    fn changed(&mut self, page: u64, lsn: u64) {
        let b = self.pages[page as usize].buffer;
        if b != NONE {
            self.buffers[b as usize].lsn = lsn;
        }
    }

    /// A checkpoint begins: dirty pages, in the order of the buffers.
    pub(super) fn checkpoint(&mut self) -> Vec<u64> {
        self.epoch += 1;
        let dirty = self.buffers.iter().filter(|b| b.dirty);
        dirty.map(|b| b.page).collect()
    }

    /// Makes a page clean if it is still here and dirty; it must then be written.
    pub(super) fn clean(&mut self, page: u64) -> Option<Evicted> {
        let b = self.pages[page as usize].buffer;
        if b == NONE || !self.buffers[b as usize].dirty {
            return None;
        }
        let b = &mut self.buffers[b as usize];
        b.dirty = false;
        Some(Evicted { page, lsn: b.lsn })
    }

    /// Dirty pages the clock will soon come to, at most `n`.
    pub(super) fn ahead(&self, n: usize) -> Vec<u64> {
        let len = self.buffers.len();
        if len < self.room {
            return Vec::new();
        }
        let next = (0..len.min(n * 4)).map(|i| &self.buffers[(self.hand + i) % len]);
        let soon = next.filter(|b| b.dirty && b.usage == 0);
        soon.take(n).map(|b| b.page).collect()
    }
}

/// Writes a page into the page cache, after the log that tells of its changes.
pub(super) async fn write<M: Machine>(m: &mut M, s: &Server, e: Evicted) -> Outcome {
    wal::flush(m, s, e.lsn).await?;
    let (fd, off) = s.place(e.page);
    let op = m.op_begin("page write");
    let n = m.write(fd, off, PAGE).await;
    n.doing(|| format!("write page {}", e.page))?;
    m.op_end(op, u64::from(PAGE));
    Ok(())
}

async fn get<M: Machine>(m: &mut M, s: &Server, page: u64, change: bool) -> Outcome<bool> {
    let got = s.pool.with(|p| p.get(page, change));
    if let Some(e) = got.evicted {
        write(m, s, e).await?;
    }
    // The growing end of history is made, not read.
    let new = page >= s.history.first + s.history.pages;
    if got.miss && !new {
        let (fd, off) = s.place(page);
        let op = m.op_begin("page read");
        let n = m.read(fd, off, PAGE).await;
        n.doing(|| format!("read page {page}"))?;
        m.op_end(op, u64::from(PAGE));
    }
    Ok(got.whole)
}

/// Reads a page.
pub(super) async fn touch<M: Machine>(m: &mut M, s: &Server, page: u64) -> Outcome {
    get(m, s, page, false).await.map(|_| ())
}

/// Changes a page and logs it, whole if that is due; bytes of log.
pub(super) async fn change<M: Machine>(m: &mut M, s: &Server, page: u64) -> Outcome<u64> {
    let whole = get(m, s, page, true).await?;
    let bytes = s.record / RECORDS + if whole { u64::from(PAGE) } else { 0 };
    let lsn = wal::insert(m, s, bytes).await?;
    s.pool.with(|p| p.changed(page, lsn));
    Ok(bytes)
}
