//! Writes through the page cache. They dirty pages, reserve or allocate blocks, and change the
//! times of the inode.

use super::read::CACHED_MAX;
use super::sync;
use crate::config::Fs;
use crate::executor::Actor;
use crate::fs::{BDEV, Kind};
use crate::journal::handle_start;
use crate::machine::{DEVICE_FD, K, NIL, Q, Ret, World, lock, wait};
use crate::memory::{Fill, Window, flag};
use crate::writeback;
use crate::writeback::{Fresh, allocate_in, inode_changed};
use seekwell_core::{Errno, OpenFlags};

/// The event or resource that a page needs before a write can change the page.
enum Need {
    /// Nothing is needed. The page is dirty.
    Done,
    /// The old contents of the page must be read.
    Read,
    /// The writeback of the page must end (stable pages).
    Stable(u32),
    /// The read of the page must end.
    Reading(u32),
    /// The page needs a block immediately (ext3).
    Block,
    /// The page needs a free block, and the disk has none.
    Full,
}

impl World {
    fn stable(&self) -> bool {
        self.cfg.constants.stable_pages != 0 && !self.cfg.ablations.no_stable_pages
    }
    /// Dirties one page. A missing page is created as part of a folio of `order`. `whole`: the
    /// write covers all old data of the page. Returns what the page still needs.
    fn write_page(&mut self, a: Actor, ino: u32, idx: u32, whole: bool, order: u8) -> Need {
        let i = &self.fs.inodes[ino as usize];
        let found = self.cache.lookup(&i.tree, idx);
        if let Some(p) = found {
            let page = &self.cache.pages[p as usize];
            if page.is(flag::READING) {
                return Need::Reading(page.bio);
            }
            if page.is(flag::WRITEBACK) && self.stable() {
                return Need::Stable(page.bio);
            }
            if !whole && !page.is(flag::UPTODATE) {
                return Need::Read;
            }
            if page.is(flag::DIRTY) {
                self.page_used(ino, p);
                return Need::Done;
            }
        }
        let mapped = i.map(idx).is_some();
        if found.is_none() && !whole && mapped && !i.unwritten.holds(idx) {
            return Need::Read;
        }
        if !mapped && self.fs.kind == Fs::Ext3 {
            return Need::Block;
        }
        let delayed = found.is_some_and(|p| self.cache.pages[p as usize].is(flag::DELAYED));
        if !mapped && !delayed && self.fs.available() == 0 {
            return Need::Full;
        }
        let p = match found {
            Some(p) => p,
            None => {
                // The pages of a large folio divide its cost.
                let cost = self.cfg.constants.page_new_ns >> order;
                self.spend(a, cost);
                self.new_page(ino, idx, order)
            }
        };
        if !mapped && !delayed {
            self.cache.pages[p as usize].flags |= flag::DELAYED;
            self.fs.inodes[ino as usize].delayed += 1;
            self.fs.reserved += 1;
        }
        let now = self.rt.now;
        self.dirty_page(ino, p, now);
        self.page_used(ino, p);
        self.dirtied_by(a);
        Need::Done
    }
    /// Returns whether the inode's times must change, because the clock tick has advanced.
    pub(crate) fn times_due(&self, ino: u32) -> bool {
        self.tick() != self.fs.inodes[ino as usize].mtime_tick
    }
    pub(crate) fn tick(&self) -> u64 {
        self.rt.now.0 / (1_000_000_000 / self.cfg.constants.hz.max(1))
    }
    pub(crate) fn set_times(&mut self, ino: u32) {
        let (now, tick) = (self.rt.now, self.tick());
        let i = &mut self.fs.inodes[ino as usize];
        (i.mtime, i.mtime_tick) = (now, tick);
    }
    /// Does a write that needs only memory. Returns the number of bytes written.
    pub(crate) fn write_fast(&mut self, a: Actor, fd: u32, off: u64, len: u64) -> Option<u64> {
        let f = *self.files.get(fd as usize)?;
        let special = OpenFlags::DIRECT | OpenFlags::SYNC | OpenFlags::DSYNC | OpenFlags::APPEND;
        if f.ino == NIL || f.flags.intersects(special) || len == 0 || len > 1 << 20 {
            return None;
        }
        let i = &self.fs.inodes[f.ino as usize];
        let busy = i.locked || self.should_balance(a) || self.fs.kind == Fs::Ext3;
        if busy || i.kind != Kind::File || self.times_due(f.ino) {
            return None;
        }
        let (first, last) = ((off / 4096) as u32, ((off + len - 1) / 4096) as u32);
        let need = u64::from(last - first + 1);
        if self.fs.available() < need {
            return None;
        }
        let mut folios = Fill::of_write(&self.cfg.constants, off, len);
        for idx in first..=last {
            let i = &self.fs.inodes[f.ino as usize];
            let whole = covers(off, len, idx, i.len);
            let order = folios.order(idx);
            if !matches!(self.write_page(a, f.ino, idx, whole, order), Need::Done) {
                // The pages dirtied so far remain dirty. The slow path does the rest.
                return None;
            }
        }
        let i = &mut self.fs.inodes[f.ino as usize];
        i.len = i.len.max(off + len);
        let cost = self.cfg.constants.copy_page_ns * need;
        self.spend(a, cost);
        Some(len)
    }
}

/// Returns whether page `idx` need not be read before a write of `len` bytes from `off`, in a file
/// of `size` bytes.
fn covers(off: u64, len: u64, idx: u32, size: u64) -> bool {
    let start = u64::from(idx) * 4096;
    let end = (start + 4096).min(size.max(start));
    off <= start && off + len >= end
}

/// Writes to a range (write(2)). `end`: write at the end of the file instead.
pub(crate) async fn write(k: &K, a: Actor, fd: u32, off: u64, len: u64, end: bool) -> Ret {
    let f = k.w().file(fd)?;
    let ino = f.ino;
    if len == 0 {
        return Ok(0);
    }
    lock(k, a, ino).await;
    let r = {
        let size = k.w().fs.inodes[ino as usize].len;
        let off = if end { size } else { off };
        write_locked(k, a, ino, off, len).await.map(|n| (off, n))
    };
    k.w().unlock(ino);
    let (off, n) = r?;
    if f.flags.intersects(OpenFlags::SYNC | OpenFlags::DSYNC) {
        let times = f.flags.contains(OpenFlags::SYNC);
        let last = ((off + n.max(1) - 1) / 4096) as u32;
        sync::sync_range_file(k, a, ino, (off / 4096) as u32, last, times).await?;
    }
    Ok(n)
}

async fn write_locked(k: &K, a: Actor, ino: u32, off: u64, len: u64) -> Ret {
    let (limit, device) = {
        let w = k.w();
        let i = &w.fs.inodes[ino as usize];
        if i.kind == Kind::Directory {
            return Err(Errno::EISDIR);
        }
        let device = i.kind == Kind::Device;
        (if device { i.len } else { CACHED_MAX }, device)
    };
    let end = off.checked_add(len);
    if end.is_none_or(|e| e > limit || e > CACHED_MAX) {
        let past = device && end.is_none_or(|e| e > limit);
        return Err(if past { Errno::ENOSPC } else { Errno::EFBIG });
    }
    if !device {
        touch_times(k, a, ino).await;
    }
    let (first, last) = ((off / 4096) as u32, ((off + len - 1) / 4096) as u32);
    // A write through the page cache of the device uses single pages.
    let filled = if device { 1 } else { len };
    let mut folios = Fill::of_write(&k.w().cfg.constants, off, filled);
    let mut idx = first;
    while idx <= last {
        let order = folios.order(idx);
        let need = {
            let mut w = k.w();
            let size = w.fs.inodes[ino as usize].len;
            let need = w.write_page(a, ino, idx, covers(off, len, idx, size), order);
            if matches!(need, Need::Done) {
                let cost = w.cfg.constants.copy_page_ns;
                w.spend(a, cost);
                // The length of the file grows with each copied page.
                let i = &mut w.fs.inodes[ino as usize];
                i.len = i.len.max((off + len).min((u64::from(idx) + 1) * 4096));
            }
            need
        };
        match need {
            Need::Done => {
                idx += 1;
                let look = k.w().should_balance(a);
                if look {
                    writeback::balance(k, a).await;
                }
            }
            Need::Read => read_one(k, a, ino, idx).await?,
            Need::Stable(bio) => {
                k.w().stats.stable_waits += 1;
                wait(k, a, |w| {
                    let p = w.page(ino, idx)?;
                    let page = &w.cache.pages[p as usize];
                    (page.is(flag::WRITEBACK) && page.bio == bio).then_some(Q::Bio(bio))
                })
                .await;
            }
            Need::Reading(bio) => super::read::wait_page(k, a, ino, idx, bio).await,
            Need::Block => {
                if !block_now(k, a, ino, idx, last).await {
                    return short(first, idx, off, len);
                }
            }
            Need::Full => {
                // Delayed pages of other tasks may need fewer blocks than they reserved. This write
                // does not wait for those blocks.
                return short(first, idx, off, len);
            }
        }
    }
    if device {
        return Ok(len);
    }
    let ext3 = k.w().fs.kind == Fs::Ext3;
    if ext3 {
        // All data dirtied during a transaction belong to that transaction.
        handle_start(k, a).await;
        {
            let mut w = k.w();
            w.order_data(ino);
            w.handle_stop();
        }
    }
    Ok(len)
}

/// Returns the number of bytes written before the disk was full, or ENOSPC if there were none.
fn short(first: u32, idx: u32, off: u64, len: u64) -> Ret {
    let done = (u64::from(idx) * 4096).saturating_sub(off).min(len);
    if idx == first || done == 0 {
        Err(Errno::ENOSPC)
    } else {
        Ok(done)
    }
}

/// Allocates the block of a page at the time of write(), for ext3. Returns false if the disk is
/// full.
async fn block_now(k: &K, a: Actor, ino: u32, idx: u32, _last: u32) -> bool {
    handle_start(k, a).await;
    let n = allocate_in(k, a, ino, idx, 1, Fresh::Ordered).await;
    k.w().handle_stop();
    n > 0
}

/// Reads the old contents of a page that is only partly overwritten.
async fn read_one(k: &K, a: Actor, ino: u32, idx: u32) -> Result<(), Errno> {
    let w = Window {
        start: idx,
        size: 1,
        mark: None,
        round: 0,
    };
    k.w().stats.partial_reads += 1;
    super::read::bring(k, a, ino, w).await;
    let bio = {
        let mut w = k.w();
        // After the end of the file there is nothing to read.
        let p = match w.page(ino, idx) {
            Some(p) => p,
            None => {
                let p = w.new_page(ino, idx, 0);
                w.cache.pages[p as usize].flags |= flag::UPTODATE;
                w.cache.settle(p);
                p
            }
        };
        w.cache.pages[p as usize].bio
    };
    super::read::wait_page(k, a, ino, idx, bio).await;
    let w = k.w();
    match w.page(ino, idx) {
        Some(p) if !w.cache.pages[p as usize].is(flag::UPTODATE) => Err(Errno::EIO),
        _ => Ok(()),
    }
}

/// Changes the inode's times in a handle, if the clock tick has advanced.
pub(crate) async fn touch_times(k: &K, a: Actor, ino: u32) {
    if ino == BDEV || !k.w().times_due(ino) {
        return;
    }
    handle_start(k, a).await;
    {
        let mut w = k.w();
        w.set_times(ino);
        w.inode_in_txn(ino, false);
    }
    inode_changed(k, a, ino).await;
    k.w().handle_stop();
}

/// Writes to the device through its page cache.
pub(crate) async fn write_device(k: &K, a: Actor, off: u64, len: u64) -> Ret {
    write(k, a, DEVICE_FD, off, len, false).await
}
