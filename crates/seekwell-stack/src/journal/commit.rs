//! The commit of a transaction, and the checkpoint that frees space in a full journal.

use crate::executor::{Actor, idle};
use crate::fs::BDEV;
use crate::machine::{
    Checkpoint, JOURNAL, K, NIL, Q, Target, Txn, Want, World, after_submit, wait, wait_group,
};
use crate::memory::flag;
use crate::stats::Mark;
use seekwell_core::{Flags, Nanos, Op, PAGE_SECTORS};

/// The operations on file data that a commit needs. The callbacks of jbd2 for them are
/// `j_submit_inode_data_buffers` and `j_finish_inode_data_buffers`.
pub(crate) trait InodeData {
    /// Submits the dirty pages of an inode that have blocks. With `ext3`, submits all dirty pages.
    async fn submit(&self, k: &K, a: Actor, ino: u32, ext3: bool);
    /// Waits for the pages of an inode that are under writeback.
    async fn finish(&self, k: &K, a: Actor, ino: u32);
}

/// Runs the journal thread.
pub(crate) async fn thread(k: K, data: impl InodeData) {
    let a = JOURNAL;
    loop {
        let due = {
            let w = k.w();
            let j = &w.journal;
            match &j.running {
                None => None,
                Some(t) if j.requested >= t.tid => Some(w.now()),
                Some(t) => Some(t.started + Nanos(w.cfg.constants.commit_interval_ns)),
            }
        };
        match due {
            None => idle(&k, a, None).await,
            Some(t) if t > k.w().now() => idle(&k, a, Some(t)).await,
            Some(_) => commit(&k, a, &data).await,
        }
    }
}

async fn commit(k: &K, a: Actor, data: &impl InodeData) {
    k.w().mark(Mark::CommitBegin);
    free_superblock(k, a).await;
    // 1. Allow no new handles, and wait for the open ones.
    k.w().journal.running.as_mut().expect("one runs").locked = true;
    wait(k, a, |w| {
        let t = w.journal.running.as_ref()?;
        (t.updates > 0).then_some(Q::Updates)
    })
    .await;
    let ext3 = {
        let mut w = k.w();
        let w = &mut *w;
        w.journal.committing = w.journal.running.take();
        w.journal.before_record = true;
        std::mem::swap(&mut w.journal.freed, &mut w.journal.freed_committing);
        for id in &w.journal.committing.as_ref().expect("taken").blocks {
            let m = &mut w.journal.meta[*id as usize];
            (m.running, m.committing) = (false, true);
        }
        w.rt.wake_all(&mut w.journal.handle_wait);
        w.fs.kind == crate::config::Fs::Ext3
    };
    // 2. Write the data that already have blocks.
    let inodes = std::mem::take(&mut committing(&mut k.w()).inodes);
    let ordered = !k.w().cfg.ablations.no_ordered_data;
    if ordered {
        for ino in &inodes {
            data.submit(k, a, *ino, ext3).await;
        }
    }
    // jbd waits for the data before it writes any block into the journal.
    if ext3 && ordered {
        wait_data(k, a, &inodes, data).await;
    }
    // 3. Write the blocks into the journal.
    let group = log_blocks(k, a).await;
    if !ext3 && ordered {
        wait_data(k, a, &inodes, data).await;
    }
    lift_shadows(k, a).await;
    let failed = wait_group(k, a, group).await.is_err();
    // 4. Write the commit record.
    let failed = record(k, a).await || failed;
    // 5. Release the inodes of the data. The metadata blocks will be written home later.
    let mut w = k.w();
    for ino in &inodes {
        w.unpin_inode(*ino);
    }
    w.finish(inodes);
    w.stats.journal_errors += u64::from(failed);
}

fn committing(w: &mut World) -> &mut Txn {
    w.journal
        .committing
        .as_mut()
        .expect("a commit is under way")
}

/// Waits for the data of each inode in index order, like filemap_fdatawait. If a task keeps
/// appending to the file, the wait continues as long as new pages are under writeback.
async fn wait_data(k: &K, a: Actor, inodes: &[u32], data: &impl InodeData) {
    for ino in inodes {
        data.finish(k, a, *ino).await;
    }
}

fn journal_flags(w: &World) -> Flags {
    // jbd of 2.6 set no flags on these writes. jbd2 marks every commit SYNC.
    let mut f = w.sync_flags();
    f.set(Flags::META, w.cfg.constants.journal_marked != 0);
    if w.cfg.constants.journal_noidle == 0 {
        f -= Flags::NOIDLE;
    }
    f
}

async fn log_blocks(k: &K, a: Actor) -> u32 {
    let (group, n, flags) = {
        let mut w = k.w();
        let flags = journal_flags(&w);
        let n = committing(&mut w).blocks.len();
        let g = w.groups.alloc();
        w.plug(a, true);
        (g, n, flags)
    };
    let per_descriptor = k.w().cfg.constants.descriptor_blocks.max(1) as usize;
    for i in 0..n {
        if i % per_descriptor == 0 {
            k.w().log_one(a, Target::Plain, group, flags);
            after_submit(k, a).await;
        }
        {
            let mut w = k.w();
            let id = committing(&mut w).blocks[i];
            w.journal.meta[id as usize].shadow = true;
            let bio = w.log_one(a, Target::Log { meta: id }, group, flags);
            w.journal.meta[id as usize].log_bio = bio;
        }
        after_submit(k, a).await;
    }
    k.w().plug(a, false);
    group
}

impl World {
    fn log_one(&mut self, a: Actor, target: Target, group: u32, flags: Flags) -> u32 {
        let at = self.journal.place(self.journal.head);
        self.journal.head += 1;
        self.stats.journal.bios += 1;
        self.stats.journal.bytes += 4096;
        self.submit(
            a,
            Want {
                op: Op::Write,
                flags,
                sector: u64::from(at) * 8,
                sectors: 8,
                target,
                group,
                segment: PAGE_SECTORS,
            },
        )
    }
    fn finish(&mut self, mut inodes: Vec<u32>) {
        let mut t = self.journal.committing.take().expect("a commit ends");
        let now = self.now();
        let blocks = t.blocks.len() as u32;
        let j = &self.journal;
        let mut old = Checkpoint {
            tid: t.tid,
            // Exclude the journal space of earlier transactions.
            log_blocks: (j.head - j.tail - j.checkpoint_blocks) as u32,
            left: 0,
            blocks: Vec::new(),
        };
        for id in &t.blocks {
            let m = &mut self.journal.meta[*id as usize];
            m.committing = false;
            m.shadow = false;
            let before = std::mem::replace(&mut m.checkpoint, t.tid);
            let (page, running) = (m.page, m.running);
            self.rt.wake_all(&mut m.wait);
            old.left += 1;
            if before != 0 {
                self.journal.checkpointed(before);
            }
            if !running {
                self.dirty_page(BDEV, page, now);
            }
        }
        old.blocks = std::mem::take(&mut t.blocks);
        self.journal.checkpoint_blocks += u64::from(old.log_blocks);
        self.journal.checkpoints.push_back(old);
        self.journal.drop_old();
        self.journal.committed = t.tid;
        for (s, n) in self.journal.freed_committing.drain(..) {
            self.fs.alloc.free_now(s, n);
        }
        inodes.clear();
        self.journal.spare.push(inodes);
        self.stats.commits += 1;
        self.mark(Mark::CommitEnd(blocks));
        self.rt.wake_all(&mut self.journal.commit_wait);
    }
}

/// Lets tasks change the logged blocks again, in kernels that do not do this when each log write
/// ends. 3.4 first waits for the data, then for one block after the other. jbd waits for all log
/// writes.
async fn lift_shadows(k: &K, a: Actor) {
    let n = committing(&mut k.w()).blocks.len();
    for i in 0..n {
        wait(k, a, |w| {
            let id = w.journal.committing.as_ref()?.blocks[i];
            let bio = w.journal.meta[id as usize].log_bio;
            (bio != NIL).then_some(Q::Bio(bio))
        })
        .await;
        let mut w = k.w();
        let w = &mut *w;
        let t = w.journal.committing.as_ref().expect("under way");
        let m = &mut w.journal.meta[t.blocks[i] as usize];
        m.shadow = false;
        w.rt.wake_all(&mut m.wait);
    }
}

/// Writes the commit record. Returns true if the write failed.
async fn record(k: &K, a: Actor) -> bool {
    let g = {
        let mut w = k.w();
        let mut flags = journal_flags(&w);
        if w.cfg.flushes() {
            flags |= if w.cfg.constants.hard_barriers != 0 {
                Flags::BARRIER
            } else {
                Flags::PREFLUSH | Flags::FUA
            };
            w.mark(Mark::Flush);
        }
        w.journal.before_record = false;
        let g = w.groups.alloc();
        w.log_one(a, Target::Plain, g, flags);
        g
    };
    after_submit(k, a).await;
    wait_group(k, a, g).await.is_err()
}

/// Writes the journal's superblock, if a quarter of the journal has become free since the last such
/// write.
async fn free_superblock(k: &K, a: Actor) {
    let g = {
        let mut w = k.w();
        let freed = w.journal.tail - w.journal.tail_on_disk;
        if freed < u64::from(w.journal.len / 4) {
            return;
        }
        w.journal.tail_on_disk = w.journal.tail;
        let mut flags = w.sync_flags();
        if w.cfg.flushes() && w.cfg.constants.hard_barriers == 0 {
            flags |= Flags::FUA;
        }
        let g = w.groups.alloc();
        let sector = u64::from(w.journal.superblock()) * 8;
        w.submit(
            a,
            Want {
                op: Op::Write,
                flags,
                sector,
                sectors: 8,
                target: Target::Plain,
                group: g,
                segment: PAGE_SECTORS,
            },
        );
        g
    };
    after_submit(k, a).await;
    // The result is ignored, because a failing journal also makes the commits fail.
    let _ = wait_group(k, a, g).await;
}

/// Makes space in a full journal: the caller writes the blocks of the oldest transaction to their
/// home locations.
pub(super) async fn make_room(k: &K, a: Actor) {
    wait(k, a, |w| w.journal.checkpointing.then_some(Q::Checkpoint)).await;
    {
        let mut w = k.w();
        if !w.journal.short() || w.journal.checkpoints.is_empty() {
            return;
        }
        w.journal.checkpointing = true;
        w.stats.checkpoints += 1;
    }
    let batch = k.w().cfg.constants.checkpoint_blocks;
    let oldest = k.w().journal.checkpoints.front().map_or(0, |c| c.tid);
    let mut from = 0;
    loop {
        let group = {
            let mut w = k.w();
            let Some(c) = w.journal.checkpoints.front().filter(|c| c.tid == oldest) else {
                break;
            };
            let left = c.blocks.len();
            if from >= left {
                break;
            }
            let g = w.groups.alloc();
            w.plug(a, true);
            g
        };
        let mut sent = 0;
        while sent < batch {
            let step = k.w().home_one(a, oldest, from, group);
            match step {
                None => break,
                Some(submitted) => {
                    from += 1;
                    if submitted {
                        sent += 1;
                        after_submit(k, a).await;
                    }
                }
            }
        }
        k.w().plug(a, false);
        let _ = wait_group(k, a, group).await;
    }
    // Blocks that the running transaction has changed again become free with the commit of the
    // running transaction.
    let stuck = {
        let w = k.w();
        let same = w
            .journal
            .checkpoints
            .front()
            .is_some_and(|c| c.tid == oldest);
        same.then(|| w.journal.running_tid().unwrap_or(0).max(w.journal.next_tid))
    };
    {
        let mut w = k.w();
        w.journal.checkpointing = false;
        let w = &mut *w;
        w.rt.wake_all(&mut w.journal.checkpoint_wait);
    }
    if let Some(tid) = stuck {
        super::handle::wait_commit_or_home(k, a, tid, oldest).await;
    }
}

impl World {
    /// Writes block `i` of checkpoint `tid` home, if the block still belongs to this checkpoint.
    /// Returns `None` after the last block.
    fn home_one(&mut self, a: Actor, tid: u64, i: usize, group: u32) -> Option<bool> {
        let c = self.journal.checkpoints.front().filter(|c| c.tid == tid)?;
        let id = *c.blocks.get(i)?;
        let m = self.journal.meta[id as usize];
        let page = self.cache.pages.get(m.page as usize)?;
        if m.checkpoint != tid || !page.is(flag::DIRTY) || page.is(flag::WRITEBACK) {
            return Some(false);
        }
        let mut flags = self.sync_flags();
        if self.cfg.constants.home_marked != 0 {
            flags |= Flags::META | Flags::PRIO;
        }
        self.clean_page(BDEV, m.page);
        let target = Target::Write {
            ino: BDEV,
            idx: m.block,
            n: 1,
        };
        let bio = self.submit(
            a,
            Want {
                op: Op::Write,
                flags,
                sector: u64::from(m.block) * 8,
                sectors: 8,
                target,
                group,
                segment: PAGE_SECTORS,
            },
        );
        self.writeback_page(BDEV, m.page, bio);
        Some(true)
    }
}
