//! Reads through the page cache.

use crate::executor::Actor;
use crate::fs::{BDEV, Inode, Kind};
use crate::machine::{File, K, Map, NIL, Q, Ret, Target, Want, World, after_submit, wait};
use crate::memory::{Cached, Context, Fill, Most, ReadAhead, Scatter, Tree, Window, flag};
use seekwell_core::{Errno, Flags, Op};

struct Pages<'a>(&'a crate::memory::Cache, &'a Tree);

impl Cached for Pages<'_> {
    fn hole(&self, from: u32, end: u32) -> Option<u32> {
        self.0.next_hole(self.1, from, end)
    }
    fn run_before(&self, idx: u32, max: u32) -> u32 {
        self.0.run_before(self.1, idx, max)
    }
}

/// The result of a look-up of one page.
enum Look {
    /// The page is in memory: continue with the next.
    Here,
    /// Pages must be read.
    Bring(Window),
    /// The page is being read.
    Wait(u32),
    /// The read of the page failed.
    Failed,
}

/// Number of bytes of a file or device that the page cache can hold: 2^32 pages, less 1 GiB, so that
/// no page number overflows. Linux on 64-bit machines has no such limit for devices.
pub(crate) const CACHED_MAX: u64 = (16 << 40) - (1 << 30);

impl World {
    /// Returns the number of bytes that a read of `len` bytes from `off` gets. Returns `None` if a
    /// page is not in memory, or if the read would start read-ahead.
    pub(crate) fn read_fast(&mut self, a: Actor, fd: u32, off: u64, len: u64) -> Option<u64> {
        let file = self.files.get(fd as usize)?;
        let ino = file.ino;
        if file.is_direct() || ino == NIL || self.fs.inodes[ino as usize].dir.is_some() {
            return None;
        }
        let i = &mut self.fs.inodes[ino as usize];
        let len = len.min(i.len.saturating_sub(off));
        if len == 0 {
            return Some(0);
        }
        if off + len > CACHED_MAX {
            return None;
        }
        let (first, last) = ((off / 4096) as u32, ((off + len - 1) / 4096) as u32);
        if !self.cache.read_run(&mut i.tree, first, last) {
            return None;
        }
        self.read_ends(fd, off, len);
        let cost = self.cfg.constants.copy_page_ns * len.div_ceil(4096);
        self.spend(a, cost);
        Some(len)
    }

    /// Records the end of a read. The next read is compared with this position. Misses within one
    /// read do not change the position.
    fn read_ends(&mut self, fd: u32, off: u64, len: u64) {
        let behind = self.cfg.constants.readahead_prev_behind != 0;
        if let Some(file) = self.files.get_mut(fd as usize) {
            file.ra.prev = ReadAhead::prev_of(off, len, behind);
        }
    }

    fn look(&mut self, file: &mut File, idx: u32, last: u32, tried: bool) -> Look {
        let c = &self.cfg.constants;
        let window = if self.cfg.ablations.no_readahead {
            0
        } else {
            c.readahead_pages as u32
        };
        let i = &self.fs.inodes[file.ino as usize];
        let req = last - idx + 1;
        let bounded = |w: u32, req: u32| Most {
            // Since 4.10, a large request is read in one piece.
            pages: match w > 0 && req > w {
                true => w.max(req.min(c.readahead_request_pages as u32)),
                false => w,
            },
            joined: c.readahead_joined != 0,
            resumed: c.readahead_resumed != 0,
            context: Context::from_number(c.readahead_context),
        };
        match self.cache.lookup(&i.tree, idx) {
            None => {
                let max = bounded(window, req);
                let req = if max.pages == 0 {
                    req
                } else {
                    req.min(if file.ra.advice == seekwell_core::Advice::Random {
                        c.random_read_pages as u32
                    } else {
                        req
                    })
                };
                let w = file
                    .ra
                    .step(&Pages(&self.cache, &i.tree), idx, req, max, false);
                Look::Bring(w.unwrap_or(Window {
                    start: idx,
                    size: 1,
                    mark: None,
                    round: 0,
                }))
            }
            Some(p) => {
                let tree = &mut self.fs.inodes[file.ino as usize].tree;
                self.cache.used(tree, p);
                let i = &self.fs.inodes[file.ino as usize];
                let page = &mut self.cache.pages[p as usize];
                if page.is(flag::MARK) {
                    page.flags &= !flag::MARK;
                    // Read-ahead is skipped if it would have to wait for a congested queue.
                    if !self.sink.congested(false) {
                        let max = bounded(window, req);
                        let cache = Pages(&self.cache, &i.tree);
                        if let Some(w) = file.ra.step(&cache, idx, req, max, true) {
                            return Look::Bring(w);
                        }
                    }
                    return self.look(file, idx, last, tried);
                }
                if page.is(flag::READING) {
                    Look::Wait(page.bio)
                } else if page.is(flag::UPTODATE) {
                    Look::Here
                } else if tried {
                    Look::Failed
                } else {
                    Look::Bring(Window {
                        start: idx,
                        size: 1,
                        mark: None,
                        round: 0,
                    })
                }
            }
        }
    }

    /// Handles a mapped access to a page that carries the read-ahead mark. Returns the window to
    /// read.
    pub(crate) fn mapped_mark(&mut self, m: Map, idx: u32) -> Option<Window> {
        let c = &self.cfg.constants;
        let max = Most {
            pages: c.readahead_pages as u32,
            joined: c.readahead_joined != 0,
            resumed: c.readahead_resumed != 0,
            context: Context::from_number(c.readahead_context),
        };
        let i = &self.fs.inodes[m.ino as usize];
        let ra = &mut self.files[m.fd as usize].ra;
        ra.step(&Pages(&self.cache, &i.tree), idx, 1, max, true)
    }

    /// Prepares the next bio of a window, for pages from `from` on and below `end`. Returns the
    /// index after the last processed page, and whether a bio was submitted.
    fn bring_step(
        &mut self,
        a: Actor,
        ino: u32,
        from: u32,
        end: u32,
        mark: Option<u32>,
        folios: &mut Fill,
    ) -> (u32, bool) {
        let mut list = Scatter::default();
        let most = self.cfg.constants.read_bio_pages as u32;
        let mut n = 0;
        let mut start = 0;
        let mut idx = from;
        while idx < end && n < most {
            let i = &self.fs.inodes[ino as usize];
            let mapped = i.map_read(idx);
            let old = self.cache.lookup(&i.tree, idx);
            let absent = old
                .is_none_or(|p| !self.cache.pages[p as usize].is(flag::UPTODATE | flag::READING));
            if !absent {
                if n > 0 {
                    break;
                }
                idx += 1;
                continue;
            }
            match mapped {
                Some((phys, _)) if n == 0 || phys == start + n => {
                    if n == 0 {
                        start = phys;
                    }
                    let order = folios.order(idx);
                    let p = old.unwrap_or_else(|| self.new_page(ino, idx, order));
                    let page = &mut self.cache.pages[p as usize];
                    list.add(page);
                    page.flags |= flag::READING;
                    if mark == Some(idx) {
                        page.flags |= flag::MARK;
                    }
                    self.cache.pin(p);
                    n += 1;
                    idx += 1;
                }
                Some(_) => break,
                None if n > 0 => break,
                None => {
                    // A hole reads as zeros.
                    let p = old.unwrap_or_else(|| self.new_page(ino, idx, 0));
                    let page = &mut self.cache.pages[p as usize];
                    page.flags |= flag::UPTODATE;
                    if mark == Some(idx) {
                        page.flags |= flag::MARK;
                    }
                    self.cache.settle(p);
                    idx += 1;
                }
            }
        }
        if n == 0 {
            return (idx, false);
        }
        let first = idx - n;
        let mut flags = Flags::empty();
        if self.cfg.constants.rahead_marked != 0 {
            flags |= Flags::RAHEAD;
        }
        let target = Target::Read { ino, idx: first, n };
        let bio = self.submit(
            a,
            Want {
                op: Op::Read,
                flags,
                sector: u64::from(start) * 8,
                sectors: n * 8,
                target,
                group: NIL,
                segment: list.segment(),
            },
        );
        for k in first..idx {
            if let Some(p) = self.page(ino, k) {
                self.cache.pages[p as usize].bio = bio;
            }
        }
        let cost = self.cfg.constants.bio_ns;
        self.spend(a, cost);
        (idx, true)
    }
}

/// Submits the reads of a window. Does not wait for them.
pub(crate) async fn bring(k: &K, a: Actor, ino: u32, w: Window) {
    let end = {
        let world = k.w();
        let i: &Inode = &world.fs.inodes[ino as usize];
        let len = if i.kind == Kind::Device {
            (i.len / 4096).min(u64::from(u32::MAX)) as u32
        } else {
            i.pages_len()
        };
        w.start.saturating_add(w.size).min(len)
    };
    let mut at = w.start;
    if at >= end {
        return;
    }
    let mut folios = Fill::of_window(&k.w().cfg.constants, w.round, end);
    k.w().plug(a, true);
    while at < end {
        let (next, sent) = k.w().bring_step(a, ino, at, end, w.mark, &mut folios);
        at = next;
        if sent {
            after_submit(k, a).await;
        }
    }
    k.w().plug(a, false);
}

/// Reads a range (read(2)) through an open file, which may be the block device.
pub(crate) async fn read(k: &K, a: Actor, fd: u32, off: u64, len: u64) -> Ret {
    let (ino, len) = {
        let w = k.w();
        let f = w.files.get(fd as usize).filter(|f| f.ino != NIL);
        let ino = f.ok_or(Errno::EBADF)?.ino;
        if w.fs.inodes[ino as usize].kind == Kind::Directory {
            return Err(Errno::EISDIR);
        }
        let size = w.fs.inodes[ino as usize].len;
        (ino, len.min(size.saturating_sub(off)))
    };
    if len == 0 {
        return Ok(0);
    }
    if off + len > CACHED_MAX {
        return Err(Errno::EFBIG);
    }
    let (first, last) = ((off / 4096) as u32, ((off + len - 1) / 4096) as u32);
    let mut idx = first;
    let mut tried = false;
    while idx <= last {
        let look = {
            let mut w = k.w();
            let mut file = w.files[fd as usize];
            let look = w.look(&mut file, idx, last, tried);
            if matches!(look, Look::Here) {
                let cost = w.cfg.constants.copy_page_ns;
                w.spend(a, cost);
            }
            w.files[fd as usize].ra = file.ra;
            look
        };
        match look {
            Look::Here => {
                idx += 1;
                tried = false;
            }
            Look::Bring(w) => bring(k, a, ino, w).await,
            Look::Wait(bio) => {
                tried = true;
                wait_page(k, a, ino, idx, bio).await;
            }
            Look::Failed => {
                let done = u64::from(idx - first) * 4096;
                return if done > 0 { Ok(done) } else { Err(Errno::EIO) };
            }
        }
    }
    let mut w = k.w();
    w.read_ends(fd, off, len);
    if ino == BDEV {
        w.stats.device_reads += 1;
    }
    Ok(len)
}

/// Waits until the read of a page in bio `bio` has ended.
pub(crate) async fn wait_page(k: &K, a: Actor, ino: u32, idx: u32, bio: u32) {
    wait(k, a, |w| {
        let p = w.page(ino, idx)?;
        let page = &w.cache.pages[p as usize];
        (page.is(flag::READING) && page.bio == bio).then_some(Q::Bio(bio))
    })
    .await;
}
