//! O_DIRECT: transfers without the page cache.

use super::names::SUPERBLOCK;
use super::write::touch_times;
use crate::executor::Actor;
use crate::fs::{BDEV, Kind};
use crate::journal::{handle_start, modify};
use crate::machine::{K, Ret, Target, Want, after_submit, lock, wait_group};
use crate::memory::{Find, flag};
use crate::writeback::{Fresh, Pass, allocate_in, inode_changed, wait_written, write_inode};
use seekwell_core::{Errno, Flags, Op, PAGE_SECTORS};

/// Alignment of direct transfers, bytes: the logical sector.
const ALIGN: u64 = 512;

/// A submitted direct transfer.
pub(crate) struct Started {
    pub(crate) group: u32,
    pub(crate) len: u64,
    /// The transfer extends the file. The length is set when the data have reached the disk.
    pub(crate) grows: bool,
}

/// Prepares and submits a transfer. The caller waits for the group. A write holds the inode's lock
/// until the group has ended.
pub(crate) async fn start(
    k: &K,
    a: Actor,
    ino: u32,
    op: Op,
    off: u64,
    len: u64,
) -> Result<Option<Started>, Errno> {
    if !off.is_multiple_of(ALIGN) || !len.is_multiple_of(ALIGN) {
        return Err(Errno::EINVAL);
    }
    let (size, kind) = {
        let w = k.w();
        let i = &w.fs.inodes[ino as usize];
        (i.len, i.kind)
    };
    let write = op == Op::Write;
    let len = if write && kind != Kind::Device {
        len
    } else {
        len.min(size.saturating_sub(off))
    };
    if len == 0 {
        let past = write && off >= size && kind == Kind::Device;
        return if past { Err(Errno::ENOSPC) } else { Ok(None) };
    }
    if off.checked_add(len).is_none_or(|e| e > 16 << 40) && kind != Kind::Device {
        return Err(Errno::EFBIG);
    }
    let (first, last) = (page_of(off), page_of(off + len - 1));
    // Write back the cached part of the range first. A direct write also drops it from the cache.
    let (cached, dirty, under_way) = {
        let w = k.w();
        let tree = &w.fs.inodes[ino as usize].tree;
        let holds =
            |what| tree.pages > 0 && w.cache.next(tree, first, what).is_some_and(|f| f.0 <= last);
        (tree.pages > 0, holds(Find::Dirty), holds(Find::Writeback))
    };
    if dirty {
        write_inode(k, a, ino, first, last, Pass::Sync, u64::MAX).await;
    }
    if dirty || under_way {
        wait_written(k, a, ino, first, last).await;
    }
    if cached && write {
        invalidate(k, ino, first, last);
    }
    if write && ino != BDEV {
        touch_times(k, a, ino).await;
        blocks_for(k, a, ino, first, last).await?;
    }
    let group = submit(k, a, ino, op, off, len).await;
    let grows = write && ino != BDEV && off + len > size;
    Ok(Some(Started { group, len, grows }))
}

/// Returns the number of the page that holds a byte. Pages of a device beyond 16 TiB are never in the
/// cache; they have the last number.
pub(crate) fn page_of(byte: u64) -> u32 {
    u32::try_from(byte / 4096).unwrap_or(u32::MAX)
}

fn invalidate(k: &K, ino: u32, first: u32, last: u32) {
    let mut w = k.w();
    let mut at = first;
    while let Some((idx, p)) = {
        let t = &w.fs.inodes[ino as usize].tree;
        w.cache.next(t, at, Find::Present)
    } {
        if idx > last {
            return;
        }
        let page = w.cache.pages[p as usize];
        let busy = flag::DIRTY | flag::WRITEBACK | flag::READING;
        if !page.is(busy) && page.meta == crate::memory::NONE {
            w.drop_page(p);
        }
        at = idx + 1;
    }
}

async fn blocks_for(k: &K, a: Actor, ino: u32, first: u32, last: u32) -> Result<(), Errno> {
    // Linux marks the blocks as written after the data have reached the disk. The journal does not
    // wait for this.
    let unwritten = {
        let w = k.w();
        let u = &w.fs.inodes[ino as usize].unwritten;
        !u.is_empty() && u.overlaps(first, last - first + 1)
    };
    if unwritten {
        handle_start(k, a).await;
        {
            let mut w = k.w();
            let u = &mut w.fs.inodes[ino as usize].unwritten;
            u.take(first, last - first + 1);
            w.inode_in_txn(ino, true);
        }
        inode_changed(k, a, ino).await;
        k.w().handle_stop();
    }
    let mut at = first;
    while at <= last {
        let mapped = k.w().fs.inodes[ino as usize].map(at);
        if let Some((_, run)) = mapped {
            at = at.saturating_add(run);
            continue;
        }
        if k.w().fs.available() == 0 {
            return Err(Errno::ENOSPC);
        }
        handle_start(k, a).await;
        let n = allocate_in(k, a, ino, at, last - at + 1, Fresh::Ordered).await;
        k.w().handle_stop();
        if n == 0 {
            return Err(Errno::ENOSPC);
        }
        at += n;
    }
    Ok(())
}

async fn submit(k: &K, a: Actor, ino: u32, op: Op, off: u64, len: u64) -> u32 {
    let group = {
        let mut w = k.w();
        w.plug(a, true);
        w.groups.alloc()
    };
    let (mut at, end) = (off / 512, (off + len) / 512);
    while at < end {
        let sent = {
            let mut w = k.w();
            let i = &w.fs.inodes[ino as usize];
            // The first sector, and the length of the run. A hole reads as zeros and needs no bio.
            let (sector, run) = if i.kind == Kind::Device {
                (Some(at), end - at)
            } else {
                let idx = (at / 8) as u32;
                let mapped = if op == Op::Read {
                    i.map_read(idx)
                } else {
                    i.map(idx)
                };
                let (phys, run) = mapped.map_or((None, 1), |m| (Some(m.0), m.1));
                let sector = phys.map(|p| u64::from(p) * 8 + at % 8);
                (sector, u64::from(run) * 8 - at % 8)
            };
            let n = run.min(end - at).min(w.cfg.constants.direct_bio_pages * 8);
            at += n;
            let there = sector.is_some();
            if let Some(sector) = sector {
                let flags = if op == Op::Write {
                    Flags::SYNC
                } else {
                    Flags::empty()
                };
                w.submit(
                    a,
                    Want {
                        op,
                        flags,
                        sector,
                        sectors: n as u32,
                        target: Target::Plain,
                        group,
                        segment: PAGE_SECTORS,
                    },
                );
                let cost = w.cfg.constants.bio_ns;
                w.spend(a, cost);
            }
            there
        };
        if sent {
            after_submit(k, a).await;
        }
    }
    k.w().plug(a, false);
    group
}

/// Completes a write that extended the file.
pub(crate) async fn grown(k: &K, a: Actor, ino: u32, end: u64) {
    handle_start(k, a).await;
    {
        let mut w = k.w();
        let i = &mut w.fs.inodes[ino as usize];
        i.len = i.len.max(end);
        w.set_times(ino);
        w.inode_in_txn(ino, true);
    }
    inode_changed(k, a, ino).await;
    // During the write, the inode was on the orphan list.
    modify(k, a, SUPERBLOCK).await;
    k.w().handle_stop();
}

/// Does a direct read or write and waits for it.
pub(crate) async fn transfer(k: &K, a: Actor, ino: u32, op: Op, off: u64, len: u64) -> Ret {
    let locks = op == Op::Write && ino != BDEV;
    if locks {
        lock(k, a, ino).await;
    }
    let r = transfer_locked(k, a, ino, op, off, len).await;
    if locks {
        k.w().unlock(ino);
    }
    r
}

async fn transfer_locked(k: &K, a: Actor, ino: u32, op: Op, off: u64, len: u64) -> Ret {
    let Some(s) = start(k, a, ino, op, off, len).await? else {
        return Ok(0);
    };
    wait_group(k, a, s.group).await?;
    if s.grows {
        grown(k, a, ino, off + s.len).await;
    }
    Ok(s.len)
}
