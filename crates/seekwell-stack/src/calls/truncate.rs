//! Calls that remove data or pages: truncation, removal of unlinked files, posix_fadvise and
//! drop_caches. Also preallocation.

use super::names::{SUPERBLOCK, inode_bitmap_changed};
use super::read::bring;
use super::write::touch_times;
use crate::config::Fs;
use crate::executor::Actor;
use crate::fs::Kind;
use crate::journal::{handle_start, modify};
use crate::machine::{K, Q, Ret, lock, wait};
use crate::memory::{Find, Window, flag};
use crate::writeback::{
    Fresh, Pass, allocate_in, blocks_changed, inode_changed, wait_converted, write_inode,
};
use seekwell_core::{Advice, Errno};

/// Drops all pages from `from` on, including dirty ones. Waits for pages under I/O.
async fn drop_pages(k: &K, a: Actor, ino: u32, from: u32) {
    loop {
        let busy = {
            let mut w = k.w();
            let mut busy = None;
            while let Some((idx, p)) = {
                let t = &w.fs.inodes[ino as usize].tree;
                w.cache.next(t, from, Find::Present)
            } {
                let page = w.cache.pages[p as usize];
                if page.is(flag::WRITEBACK | flag::READING) {
                    busy = Some((idx, page.bio));
                    break;
                }
                if page.is(flag::DIRTY) {
                    w.clean_page(ino, p);
                    w.undelay(ino, p);
                }
                w.drop_page(p);
                let cost = w.cfg.constants.page_drop_ns;
                w.spend(a, cost);
            }
            busy
        };
        let Some((idx, bio)) = busy else {
            return wait_converted(k, a, ino).await;
        };
        wait(k, a, |w| {
            let p = w.page(ino, idx)?;
            let page = &w.cache.pages[p as usize];
            let under_way = page.is(flag::WRITEBACK | flag::READING);
            (under_way && page.bio == bio).then_some(Q::Bio(bio))
        })
        .await;
    }
}

/// Frees blocks from page `from` on, in handles of bounded size.
async fn free_blocks(k: &K, a: Actor, ino: u32, from: u32) {
    loop {
        handle_start(k, a).await;
        let mut runs: Vec<(u32, u32)> = Vec::new();
        let more = {
            let mut w = k.w();
            let w = &mut *w;
            let i = &mut w.fs.inodes[ino as usize];
            let is_dir = i.kind == Kind::Directory;
            w.fs.alloc.drop_window(i);
            // Free only a few runs per handle, because the size of a handle is limited.
            let cut = i.ext.len().saturating_sub(64);
            let at = i.ext.get(cut).map_or(0, |e| e.log).max(from);
            i.map_cut(at, |s, n| runs.push((s, n)));
            let needed = i.index_needed();
            for b in i.index.drain(needed.min(i.index.len())..) {
                runs.push((b, 1));
            }
            for (s, n) in &runs {
                w.fs.alloc.free_later(*n);
                w.journal.freed.push((*s, *n));
            }
            let i = &w.fs.inodes[ino as usize];
            let more = i.ext.last().is_some_and(|e| e.log + e.len > from);
            w.inode_in_txn(ino, true);
            for (s, n) in runs.iter().filter(|r| is_dir || r.1 == 1) {
                for b in *s..*s + *n {
                    w.meta_forget(b);
                }
            }
            more
        };
        for (s, n) in runs {
            blocks_changed(k, a, s, n).await;
        }
        inode_changed(k, a, ino).await;
        // The inode stays on the orphan list until all blocks are free.
        modify(k, a, SUPERBLOCK).await;
        k.w().handle_stop();
        if !more {
            return;
        }
    }
}

/// Sets the length of a file. The caller holds the inode's lock.
pub(crate) async fn to(k: &K, a: Actor, ino: u32, len: u64) -> Ret {
    let old = {
        let w = k.w();
        let i = &w.fs.inodes[ino as usize];
        match i.kind {
            Kind::File => i.len,
            Kind::Directory => return Err(Errno::EISDIR),
            _ => return Err(Errno::EINVAL),
        }
    };
    if len > 16 << 40 {
        return Err(Errno::EFBIG);
    }
    if len < old {
        let from = len.div_ceil(4096) as u32;
        {
            let mut w = k.w();
            let ext4 = w.fs.kind == Fs::Ext4;
            let i = &mut w.fs.inodes[ino as usize];
            i.len = len;
            i.flush_on_close |= len == 0 && ext4;
        }
        drop_pages(k, a, ino, from).await;
        let mapped = {
            let w = k.w();
            let i = &w.fs.inodes[ino as usize];
            i.ext.last().is_some_and(|e| e.log + e.len > from) || i.window_left()
        };
        if mapped {
            free_blocks(k, a, ino, from).await;
        }
    } else {
        k.w().fs.inodes[ino as usize].len = len;
    }
    if len != old {
        handle_start(k, a).await;
        {
            let mut w = k.w();
            w.set_times(ino);
            w.inode_in_txn(ino, true);
        }
        inode_changed(k, a, ino).await;
        k.w().handle_stop();
    } else {
        touch_times(k, a, ino).await;
    }
    Ok(0)
}

/// Sets the length of an open file (ftruncate(2)).
pub(crate) async fn truncate(k: &K, a: Actor, fd: u32, len: u64) -> Ret {
    let ino = k.w().file(fd)?.ino;
    lock(k, a, ino).await;
    let r = to(k, a, ino, len).await;
    k.w().unlock(ino);
    r
}

/// Removes the pages, the blocks and the inode of an unlinked file after the last reference ended.
pub(crate) async fn evict(k: &K, a: Actor, ino: u32) {
    lock(k, a, ino).await;
    drop_pages(k, a, ino, 0).await;
    let (is_dir, mapped) = {
        let mut w = k.w();
        let i = &mut w.fs.inodes[ino as usize];
        i.len = 0;
        (
            i.kind == Kind::Directory,
            !i.ext.is_empty() || i.window_left(),
        )
    };
    if mapped {
        free_blocks(k, a, ino, 0).await;
    }
    handle_start(k, a).await;
    let (group, slot) = {
        let mut w = k.w();
        w.inode_in_txn(ino, true);
        let i = &w.fs.inodes[ino as usize];
        (i.group, i.slot)
    };
    inode_changed(k, a, ino).await;
    inode_bitmap_changed(k, a, group).await;
    modify(k, a, SUPERBLOCK).await;
    let mut w = k.w();
    w.fs.alloc.free_inode(group, slot, is_dir);
    w.handle_stop();
    w.unlock(ino);
    w.fs.inodes[ino as usize].emptied = true;
    w.maybe_release(ino);
}

/// Allocates unwritten blocks for a range (fallocate(2)). ext3 does not support this call.
pub(crate) async fn fallocate(k: &K, a: Actor, fd: u32, off: u64, len: u64) -> Ret {
    let ino = k.w().file(fd)?.ino;
    if len == 0 || k.w().fs.inodes[ino as usize].kind != Kind::File {
        return Err(Errno::EINVAL);
    }
    if k.w().fs.kind == Fs::Ext3 {
        return Err(Errno::EOPNOTSUPP);
    }
    let end = off.checked_add(len).filter(|e| *e <= 16 << 40);
    let end = end.ok_or(Errno::EFBIG)?;
    lock(k, a, ino).await;
    let r = fallocate_locked(k, a, ino, (off / 4096) as u32, end.div_ceil(4096) as u32).await;
    {
        let mut w = k.w();
        if r.is_ok() {
            let i = &mut w.fs.inodes[ino as usize];
            i.len = i.len.max(end);
        }
        w.unlock(ino);
    }
    r
}

async fn fallocate_locked(k: &K, a: Actor, ino: u32, from: u32, to: u32) -> Ret {
    let mut at = from;
    while at < to {
        let mapped = k.w().fs.inodes[ino as usize].map(at);
        if let Some((_, run)) = mapped {
            at = at.saturating_add(run);
            continue;
        }
        let delayed = {
            let w = k.w();
            let p = w.page(ino, at);
            p.is_some_and(|p| w.cache.pages[p as usize].is(flag::DELAYED))
        };
        if !delayed && k.w().fs.available() == 0 {
            return Err(Errno::ENOSPC);
        }
        handle_start(k, a).await;
        let n = allocate_in(k, a, ino, at, to - at, Fresh::Unwritten).await;
        k.w().handle_stop();
        if n == 0 {
            return Err(Errno::ENOSPC);
        }
        at += n;
    }
    Ok(0)
}

/// Follows a hint about the accesses to a file (posix_fadvise(2)).
pub(crate) async fn fadvise(k: &K, a: Actor, fd: u32, off: u64, len: u64, advice: Advice) -> Ret {
    let ino = k.w().file(fd)?.ino;
    if k.w().fs.inodes[ino as usize].kind == Kind::Directory {
        return Ok(0);
    }
    let from = (off / 4096) as u32;
    let to = match len {
        0 => u32::MAX,
        n => ((off.saturating_add(n) - 1) / 4096).min(u64::from(u32::MAX)) as u32,
    };
    match advice {
        Advice::Normal | Advice::Random | Advice::Sequential => {
            k.w().files[fd as usize].ra.advice = advice;
        }
        Advice::WillNeed => {
            let window = Window {
                start: from,
                size: to.saturating_sub(from).saturating_add(1),
                mark: None,
                round: 0,
            };
            bring(k, a, ino, window).await;
        }
        Advice::DontNeed => {
            let congested = k.w().sink.congested(true);
            if !congested {
                write_inode(k, a, ino, from, to, Pass::Async, u64::MAX).await;
            }
            let mut w = k.w();
            let mut at = from;
            while let Some((idx, p)) = {
                let t = &w.fs.inodes[ino as usize].tree;
                w.cache.next(t, at, Find::Present)
            } {
                if idx > to {
                    break;
                }
                let page = w.cache.pages[p as usize];
                let busy = flag::DIRTY | flag::WRITEBACK | flag::READING;
                if !page.is(busy) && page.meta == crate::memory::NONE {
                    w.drop_page(p);
                }
                match idx.checked_add(1) {
                    Some(next) => at = next,
                    None => break,
                }
            }
        }
    }
    Ok(0)
}

/// Drops clean pages, and forgets names and inodes (drop_caches).
pub(crate) fn drop_caches(k: &K) -> Ret {
    let mut w = k.w();
    w.fs.epoch += 1;
    let mut n = 0;
    while let Some(p) = w.cache.lru.first() {
        w.drop_page(p);
        n += 1;
    }
    Ok(n)
}
