//! Mapped files: page faults read pages and make them dirty.

use super::read::{bring, wait_page};
use super::write::touch_times;
use crate::config::Fs;
use crate::executor::Actor;
use crate::fs::Kind;
use crate::machine::{K, Map, NIL, Q, Ret, World, wait};
use crate::memory::flag;
use crate::writeback;
use crate::writeback::allocate;
use seekwell_core::{Access, Advice, Errno};

impl World {
    fn map(&self, map: u32) -> Result<Map, Errno> {
        let m = self.maps.get(map as usize).filter(|m| m.ino != NIL);
        m.copied().ok_or(Errno::EINVAL)
    }
}

/// Maps a file (mmap(2)).
pub(crate) fn map(k: &K, fd: u32, off: u64, len: u64) -> Ret {
    let mut w = k.w();
    let f = w.file(fd)?;
    if len == 0 || !off.is_multiple_of(4096) {
        return Err(Errno::EINVAL);
    }
    if w.fs.inodes[f.ino as usize].kind != Kind::File {
        return Err(Errno::ENODEV);
    }
    w.fs.inodes[f.ino as usize].opens += 1;
    // A mapping has its own open file, which inherits the read-ahead advice of the descriptor.
    let own = w.file_new(f.ino, f.flags);
    w.files[own as usize].ra.advice = f.ra.advice;
    let m = Map {
        fd: own,
        ino: f.ino,
        off,
        len,
    };
    w.fs.inodes[f.ino as usize].opens -= 1;
    w.maps.push(m);
    Ok(w.maps.len() as u64 - 1)
}

/// Ends a mapping (munmap(2)).
pub(crate) async fn unmap(k: &K, a: Actor, map: u32) -> Ret {
    let m = k.w().map(map)?;
    k.w().maps[map as usize].ino = NIL;
    super::names::close(k, a, m.fd).await
}

enum Fault {
    None,
    Miss,
    Reading(u32),
    Stable(u32),
    Allocate,
    Full,
}

impl World {
    fn fault(&mut self, a: Actor, ino: u32, idx: u32, access: Access) -> Fault {
        let Some(p) = self.page(ino, idx) else {
            return Fault::Miss;
        };
        let page = self.cache.pages[p as usize];
        if page.is(flag::READING) {
            return Fault::Reading(page.bio);
        }
        if !page.is(flag::UPTODATE) {
            return Fault::Miss;
        }
        let fault_ns = self.cfg.constants.fault_ns;
        if !page.is(flag::MAPPED) {
            self.spend(a, fault_ns);
        }
        self.cache.pages[p as usize].flags |= flag::MAPPED;
        self.page_used(ino, p);
        if access == Access::Read || page.is(flag::DIRTY) {
            return Fault::None;
        }
        let stable = self.cfg.constants.stable_pages != 0 && !self.cfg.ablations.no_stable_pages;
        if page.is(flag::WRITEBACK) && stable {
            return Fault::Stable(page.bio);
        }
        if self.fs.inodes[ino as usize].map(idx).is_none() && !page.is(flag::DELAYED) {
            if self.fs.available() == 0 {
                return Fault::Full;
            }
            if self.fs.kind == Fs::Ext3 {
                return Fault::Allocate;
            }
            self.cache.pages[p as usize].flags |= flag::DELAYED;
            self.fs.inodes[ino as usize].delayed += 1;
            self.fs.reserved += 1;
        }
        self.spend(a, fault_ns);
        let now = self.now();
        self.dirty_page(ino, p, now);
        self.dirtied_by(a);
        Fault::None
    }
}

/// Touches every page of a range of a mapping. Returns ENOSPC if a store needs a block and the disk
/// is full (a real program would get SIGBUS). Returns EINVAL if the range exceeds the file.
pub(crate) async fn touch(k: &K, a: Actor, map: u32, off: u64, len: u64, access: Access) -> Ret {
    let m = k.w().map(map)?;
    if len == 0 {
        return Ok(0);
    }
    let size = k.w().fs.inodes[m.ino as usize].len;
    let end = off.checked_add(len).ok_or(Errno::EINVAL)?;
    if end > m.len || m.off + end > size.next_multiple_of(4096) {
        return Err(Errno::EINVAL);
    }
    let (first, last) = (
        ((m.off + off) / 4096) as u32,
        ((m.off + end - 1) / 4096) as u32,
    );
    if access == Access::Write {
        touch_times(k, a, m.ino).await;
    }
    let mut idx = first;
    let mut missed = 0;
    while idx <= last {
        let fault = k.w().fault(a, m.ino, idx, access);
        match fault {
            Fault::None => {
                follow(k, a, m, idx).await;
                idx += 1;
                missed = 0;
                let look = k.w().should_balance(a);
                if look {
                    writeback::balance(k, a).await;
                }
            }
            Fault::Miss if missed > 1 => return Err(Errno::EIO),
            Fault::Miss => {
                missed += 1;
                miss(k, a, m, idx).await;
            }
            Fault::Reading(bio) => wait_page(k, a, m.ino, idx, bio).await,
            Fault::Stable(bio) => {
                k.w().stats.stable_waits += 1;
                wait(k, a, |w| {
                    let p = w.page(m.ino, idx)?;
                    let page = &w.cache.pages[p as usize];
                    (page.is(flag::WRITEBACK) && page.bio == bio).then_some(Q::Bio(bio))
                })
                .await;
            }
            Fault::Allocate => {
                if !allocate(k, a, m.ino, idx, 1).await {
                    return Err(Errno::ENOSPC);
                }
            }
            Fault::Full => return Err(Errno::ENOSPC),
        }
    }
    Ok(len)
}

/// Handles a fault on a missing page. Reads the pages around it, unless the accesses are random.
async fn miss(k: &K, a: Actor, m: Map, idx: u32) {
    let window = {
        let mut w = k.w();
        let max = if w.cfg.ablations.no_readahead {
            0
        } else {
            w.cfg.constants.readahead_pages as u32
        };
        let misses = w.cfg.constants.mapped_misses as u32;
        let mut f = w.files[m.fd as usize];
        let alone = crate::memory::Window {
            start: idx,
            size: 1,
            mark: None,
            round: 0,
        };
        let window = if f.ra.advice == Advice::Random || max == 0 {
            alone
        } else {
            f.ra.mapped_miss = (f.ra.mapped_miss + 1).min(misses * 10);
            if f.ra.mapped_miss > misses {
                alone
            } else {
                f.ra.around(idx, max)
            }
        };
        w.files[m.fd as usize].ra = f.ra;
        w.stats.major_faults += 1;
        window
    };
    bring(k, a, m.ino, window).await;
}

/// Handles a fault on a present page. Counts a hit, and continues read-ahead if the page is a mark.
async fn follow(k: &K, a: Actor, m: Map, idx: u32) {
    let window = {
        let mut w = k.w();
        let Some(p) = w.page(m.ino, idx) else { return };
        let page = &mut w.cache.pages[p as usize];
        if !page.is(flag::MARK) {
            let f = &mut w.files[m.fd as usize];
            f.ra.mapped_miss = f.ra.mapped_miss.saturating_sub(1);
            return;
        }
        page.flags &= !flag::MARK;
        w.mapped_mark(m, idx)
    };
    if let Some(window) = window {
        bring(k, a, m.ino, window).await;
    }
}

/// Writes a range of a mapping back and waits (msync(2) with MS_SYNC).
pub(crate) async fn msync(k: &K, a: Actor, map: u32, off: u64, len: u64) -> Ret {
    let m = k.w().map(map)?;
    if len == 0 {
        return Ok(0);
    }
    let first = ((m.off + off) / 4096) as u32;
    let last = ((m.off + off.saturating_add(len) - 1) / 4096) as u32;
    super::sync::sync_range_file(k, a, m.ino, first, last, true).await?;
    Ok(0)
}
