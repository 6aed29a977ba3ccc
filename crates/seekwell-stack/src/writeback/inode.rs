//! Writeback of the dirty pages of a file. It allocates blocks for delayed pages, and submits
//! contiguous runs of pages as bios.

use crate::executor::Actor;
use crate::fs::{BDEV, Kind};
use crate::journal::{InodeData, handle_start, modify, read_meta};
use crate::machine::{K, NIL, Q, Target, Want, World, after_submit, wait};
use crate::memory::{Find, Scatter, flag};
use seekwell_core::{Flags, Op};

/// The reason for writing pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pass {
    /// Writeback of old pages, or to free memory. No task waits for the pages.
    Async,
    /// The first pass of a sync. It waits for nothing, but its writes are not marked as background
    /// work.
    Requested,
    /// Like `Async`, but stops when the queue is congested (2.6).
    Timid,
    /// A task waits for the pages (fsync, sync).
    Sync,
    /// Writes before a commit: only pages that have blocks. With `ext3`, all pages.
    Ordered {
        /// The journal is jbd.
        ext3: bool,
    },
}

enum Step {
    End,
    Skip(u32),
    Wait(u32),
    Alloc { idx: u32, n: u32 },
    Submitted { next: u32, n: u32 },
}

impl World {
    fn write_step(&mut self, a: Actor, ino: u32, pos: u32, to: u32, pass: Pass, room: u32) -> Step {
        let i = &self.fs.inodes[ino as usize];
        let Some((idx, p)) = self.cache.next(&i.tree, pos, Find::Dirty) else {
            return Step::End;
        };
        if idx > to {
            return Step::End;
        }
        let page = &self.cache.pages[p as usize];
        if page.is(flag::WRITEBACK) {
            // The page became dirty again while it was being written.
            return match pass {
                Pass::Sync => Step::Wait(page.bio),
                _ => Step::Skip(idx + 1),
            };
        }
        let delayed = page.is(flag::DELAYED);
        let ext4_commit = pass == Pass::Ordered { ext3: false };
        if delayed && ext4_commit {
            return Step::Skip(idx + 1);
        }
        let mapped = i.map(idx);
        let device = i.kind == Kind::Device;
        // ext3 and the block device write each block as one bio. The queue merges these bios.
        let single = device || self.fs.kind == crate::config::Fs::Ext3;
        let most = match mapped {
            None => self.cfg.constants.alloc_blocks as u32,
            Some(_) if single => 1,
            Some((_, run)) => run,
        };
        let vecs = match mapped {
            None => u32::MAX,
            Some(_) if self.cfg.ablations.contiguous_memory => u32::MAX,
            Some(_) => self.cfg.constants.bio_vecs as u32,
        };
        let most = most
            .min(to.saturating_sub(idx).saturating_add(1))
            .min(room.max(1));
        let mut list = Scatter::default();
        list.add(page);
        let mut n = 1;
        while n < most {
            let Some(q) = self.cache.lookup(&i.tree, idx + n) else {
                break;
            };
            let page = &self.cache.pages[q as usize];
            let same = page.is(flag::DELAYED) == delayed;
            let full = list.vecs == vecs && list.begins(page);
            if !page.is(flag::DIRTY) || page.is(flag::WRITEBACK) || !same || full {
                break;
            }
            list.add(page);
            n += 1;
        }
        let Some((phys, _)) = mapped else {
            return Step::Alloc { idx, n };
        };
        let mut flags = match pass {
            Pass::Async | Pass::Timid => self.background_flags(a),
            Pass::Requested => Flags::empty(),
            Pass::Sync | Pass::Ordered { .. } => self.sync_flags(),
        };
        // Pages of the block device are the file system's metadata.
        if ino == BDEV && self.cfg.constants.home_marked != 0 {
            flags |= Flags::META | Flags::PRIO;
        }
        let target = Target::Write { ino, idx, n };
        let bio = self.submit(
            a,
            Want {
                op: Op::Write,
                flags,
                sector: u64::from(phys) * 8,
                sectors: n * 8,
                target,
                group: NIL,
                segment: list.segment(),
            },
        );
        for k in idx..idx + n {
            let p = self.page(ino, k).expect("looked at just now");
            let tree = &mut self.fs.inodes[ino as usize].tree;
            self.cache.clear_dirty(tree, p);
            self.cache.set_wb(tree, p, bio);
        }
        let cost = self.cfg.constants.bio_ns;
        if a >= crate::machine::FIRST_USER_TASK {
            self.spend(a, cost);
        }
        Step::Submitted { next: idx + n, n }
    }
}

/// Writes dirty pages `from..=to` of an inode in index order, at most `limit` pages. A contiguous
/// run may exceed `limit` (`visit_run_pages`). Returns the number of pages written and the index
/// after the last examined page.
pub(crate) async fn write_inode(
    k: &K,
    a: Actor,
    ino: u32,
    from: u32,
    to: u32,
    pass: Pass,
    limit: u64,
) -> (u64, u32) {
    let mut pos = from;
    let mut written = 0u64;
    let run_on = {
        let mut w = k.w();
        let tree = &w.fs.inodes[ino as usize].tree;
        let next = w.cache.next(tree, from, Find::Dirty);
        // A pass with `Timid` checks for a congested queue in any case.
        if pass != Pass::Timid && next.is_none_or(|f| f.0 > to) {
            return (0, from);
        }
        w.plug(a, true);
        w.cfg.constants.visit_run_pages
    };
    loop {
        if written >= limit && (run_on == 0 || written >= run_on.max(limit)) {
            break;
        }
        let step = {
            let mut w = k.w();
            if pass == Pass::Timid && w.sink.congested(true) {
                w.flusher.congested = true;
                break;
            }
            if written >= limit {
                // Beyond the limit, write only pages that continue the run.
                let i = &w.fs.inodes[ino as usize];
                let next = w.cache.next(&i.tree, pos, Find::Dirty);
                if next.is_none_or(|n| n.0 != pos) {
                    break;
                }
            }
            let room = (limit.max(run_on) - written).min(u64::from(u32::MAX)) as u32;
            w.write_step(a, ino, pos, to, pass, room)
        };
        match step {
            Step::End => break,
            Step::Skip(next) => pos = next,
            Step::Wait(bio) => {
                wait(k, a, |w| {
                    let i = &w.fs.inodes[ino as usize];
                    let (_, p) = w.cache.next(&i.tree, pos, Find::Dirty)?;
                    let page = &w.cache.pages[p as usize];
                    (page.is(flag::WRITEBACK) && page.bio == bio).then_some(Q::Bio(bio))
                })
                .await;
            }
            Step::Alloc { idx, n } => {
                if !allocate(k, a, ino, idx, n).await {
                    lose(k, ino, idx, n);
                    pos = idx + n;
                }
            }
            Step::Submitted { next, n } => {
                after_submit(k, a).await;
                pos = next;
                written += u64::from(n);
            }
        }
        if pos > to {
            break;
        }
    }
    k.w().plug(a, false);
    (written, pos)
}

/// Drops delayed data for which the disk has no free block. Linux logs this and drops the data.
fn lose(k: &K, ino: u32, idx: u32, n: u32) {
    let mut w = k.w();
    for i in idx..idx + n {
        if let Some(p) = w.page(ino, i)
            && w.cache.pages[p as usize].is(flag::DIRTY)
        {
            w.clean_page(ino, p);
            w.undelay(ino, p);
            w.stats.lost_pages += 1;
        }
    }
    w.fs.inodes[ino as usize].failed = true;
}

impl World {
    /// Ends the delayed state of a page that got a block or was dropped. Releases the page's
    /// reservation.
    pub(crate) fn undelay(&mut self, ino: u32, p: u32) {
        let page = &mut self.cache.pages[p as usize];
        if page.is(flag::DELAYED) {
            page.flags &= !flag::DELAYED;
            self.fs.inodes[ino as usize].delayed -= 1;
            self.fs.reserved -= 1;
        }
    }
    /// Returns how many of the `n` pages from `idx` on may get a block. A page with a reservation
    /// always may. Other pages may as long as unreserved blocks are left. The check is needed
    /// because the caller may have waited for a handle since its last check.
    fn unpromised(&self, ino: u32, idx: u32, n: u32) -> u32 {
        let mut spare = self.fs.available();
        if spare >= u64::from(n) {
            return n;
        }
        let delayed = |idx| {
            let p = self.page(ino, idx);
            p.is_some_and(|p| self.cache.pages[p as usize].is(flag::DELAYED))
        };
        for i in idx..idx + n {
            if delayed(i) {
                continue;
            }
            match spare.checked_sub(1) {
                Some(left) => spare = left,
                None => return i - idx,
            }
        }
        n
    }
    /// Allocates blocks for pages from `idx` on. Returns the first block and the number of blocks.
    pub(crate) fn take_blocks(
        &mut self,
        a: Actor,
        ino: u32,
        idx: u32,
        n: u32,
    ) -> Option<(u32, u32)> {
        let cpu = a % u32::from(self.cfg.cores.max(1));
        let i = &mut self.fs.inodes[ino as usize];
        let n = n.min(self.cfg.constants.alloc_blocks.max(1) as u32);
        if let Some(r) = self.fs.alloc.for_file(i, idx, n, cpu) {
            return Some(r);
        }
        // Preallocated blocks count as free. So do freed blocks that wait for a commit, because
        // Linux forces that commit.
        self.release_freed();
        self.fs.alloc.drop_pools();
        for i in &mut self.fs.inodes {
            self.fs.alloc.drop_window(i);
        }
        let i = &mut self.fs.inodes[ino as usize];
        self.fs.alloc.for_file(i, idx, n, cpu)
    }
}

/// The state of new blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fresh {
    /// The blocks become part of the file with the commit, so their data must be written before it
    /// (ordered mode).
    Ordered,
    /// The inode marks the blocks as unwritten until their data are on the disk.
    Unwritten,
}

/// Opens a handle and allocates blocks for pages of a file. Returns false if the disk is full.
pub(crate) async fn allocate(k: &K, a: Actor, ino: u32, idx: u32, n: u32) -> bool {
    handle_start(k, a).await;
    let fresh = {
        let w = k.w();
        let ext4 = w.fs.kind == crate::config::Fs::Ext4;
        if ext4 && w.cfg.constants.unwritten_buffered != 0 {
            Fresh::Unwritten
        } else {
            Fresh::Ordered
        }
    };
    let got = allocate_in(k, a, ino, idx, n, fresh).await;
    k.w().handle_stop();
    got > 0
}

/// Allocates blocks within an open handle. Returns the number of pages that got blocks.
pub(crate) async fn allocate_in(k: &K, a: Actor, ino: u32, idx: u32, n: u32, fresh: Fresh) -> u32 {
    let (start, len) = {
        let mut w = k.w();
        // Another task may have allocated these blocks already.
        let i = &w.fs.inodes[ino as usize];
        if let Some((_, run)) = i.map(idx) {
            return run.min(n);
        }
        let next = i.ext[i.ext.partition_point(|e| e.log <= idx)..].first();
        let n = next.map_or(n, |e| n.min(e.log - idx));
        let n = w.unpromised(ino, idx, n);
        if n == 0 {
            return 0;
        }
        let Some((start, len)) = w.take_blocks(a, ino, idx, n) else {
            return 0;
        };
        w.fs.inodes[ino as usize].map_insert(idx, start, len);
        for k in idx..idx + len {
            if let Some(p) = w.page(ino, k) {
                w.undelay(ino, p);
            }
        }
        match fresh {
            Fresh::Ordered => w.order_data(ino),
            Fresh::Unwritten => w.fs.inodes[ino as usize].unwritten.add(idx, len),
        }
        w.inode_in_txn(ino, true);
        w.stats.allocations += 1;
        (start, len)
    };
    blocks_changed(k, a, start, len).await;
    inode_changed(k, a, ino).await;
    len
}

/// Changes the bitmaps and the group descriptors of blocks that were allocated or freed.
pub(crate) async fn blocks_changed(k: &K, a: Actor, start: u32, len: u32) {
    let (first, last) = (
        crate::fs::group_of(start),
        crate::fs::group_of(start + len - 1),
    );
    for g in first..=last {
        let (bitmap, descriptor, read) = {
            let mut w = k.w();
            let read = w.fs.alloc.bitmaps_on_disk(g);
            (w.fs.alloc.block_bitmap(g), w.fs.alloc.descriptor(g), read)
        };
        let flags = k.w().bitmap_flags();
        read_meta(k, a, bitmap, read, 0..0, flags).await;
        modify(k, a, bitmap).await;
        modify(k, a, descriptor).await;
    }
}

/// Changes the table block of the inode. Also adds the blocks that its extent tree needs.
pub(crate) async fn inode_changed(k: &K, a: Actor, ino: u32) {
    let block = {
        let mut w = k.w();
        let w = &mut *w;
        let i = &mut w.fs.inodes[ino as usize];
        let goal = i.ext.last().map_or(0, |e| e.phys + e.len);
        if w.fs.kind == crate::config::Fs::Ext4 && ino != BDEV {
            while i.index.len() < i.index_needed() {
                // On a full disk, Linux takes the blocks of the tree from the space reserved for
                // root. The model has no such space. The blocks must not come from the space
                // reserved for delayed data.
                if w.fs.alloc.available() <= w.fs.reserved {
                    break;
                }
                match w.fs.alloc.run(goal, 1) {
                    Some((b, _)) => i.index.push(b),
                    None => break,
                }
            }
        }
        w.fs.inode_block(ino)
    };
    read_inode(k, a, ino).await;
    modify(k, a, block).await;
    // The newest extents are in the last block of the tree.
    let last = k.w().fs.inodes[ino as usize].index.last().copied();
    if let Some(b) = last {
        read_meta(k, a, b, false, 0..0, Flags::empty()).await;
        modify(k, a, b).await;
    }
}

/// Reads an inode's table block into memory.
pub(crate) async fn read_inode(k: &K, a: Actor, ino: u32) {
    let (block, read, near, flags) = {
        let mut w = k.w();
        let w = &mut *w;
        let block = w.fs.inode_block(ino);
        if w.in_memory(block) {
            w.fs.inodes[ino as usize].epoch = w.fs.epoch;
            return;
        }
        let i = &w.fs.inodes[ino as usize];
        let read = w.fs.alloc.inode_on_disk(i.group, i.slot) || i.epoch != w.fs.epoch;
        let near = w.cfg.constants.inode_readahead_blocks.max(1) as u32;
        // Read only the part of the inode table that is in use.
        let first = block / near * near;
        let end = w.fs.alloc.inode_table(i.group) + w.fs.alloc.inode_blocks_used(i.group);
        let near = first..(first + near).min(end);
        (block, read, near, w.meta_flags())
    };
    read_meta(k, a, block, read, near, flags).await;
    let mut w = k.w();
    let epoch = w.fs.epoch;
    w.fs.inodes[ino as usize].epoch = epoch;
}

/// Writes the file data that must be on the disk before a commit.
pub(crate) struct OrderedData;

impl InodeData for OrderedData {
    async fn submit(&self, k: &K, a: Actor, ino: u32, ext3: bool) {
        let pass = Pass::Ordered { ext3 };
        write_inode(k, a, ino, 0, u32::MAX, pass, u64::MAX).await;
    }
    async fn finish(&self, k: &K, a: Actor, ino: u32) {
        wait_written(k, a, ino, 0, u32::MAX).await;
    }
}

/// Waits until no page in `from..=to` is under writeback. Scans the pages once, in index order.
pub(crate) async fn wait_written(k: &K, a: Actor, ino: u32, from: u32, to: u32) {
    let mut pos = from;
    loop {
        let found = {
            let w = k.w();
            let i = &w.fs.inodes[ino as usize];
            w.cache
                .next(&i.tree, pos, Find::Writeback)
                .filter(|f| f.0 <= to)
                .map(|f| (f.0, w.cache.pages[f.1 as usize].bio))
        };
        let Some((idx, bio)) = found else { return };
        wait(k, a, |w| {
            let p = w.page(ino, idx)?;
            let page = &w.cache.pages[p as usize];
            (page.is(flag::WRITEBACK) && page.bio == bio).then_some(Q::Bio(bio))
        })
        .await;
        pos = idx + 1;
    }
}
