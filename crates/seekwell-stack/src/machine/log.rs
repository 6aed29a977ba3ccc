//! State of the journal: transactions, checkpoints, metadata blocks with pending work, and the
//! location of the journal on the disk.

use super::io::NIL;
use super::world::World;
use crate::fs::BDEV;
use crate::memory::{NONE, flag};
use seekwell_core::{Instant, List};
use std::collections::VecDeque;

/// A transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Txn {
    pub(crate) tid: u64,
    /// Metadata blocks, as indices of [`Meta`].
    pub(crate) blocks: Vec<u32>,
    /// Inodes whose data must be written before the commit.
    pub(crate) inodes: Vec<u32>,
    /// Number of open handles.
    pub(crate) updates: u32,
    /// Accepts no new handles, because its commit has begun.
    pub(crate) locked: bool,
    pub(crate) started: Instant,
}

/// Journal space of a committed transaction. Some of its blocks are not yet at their home location.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) tid: u64,
    pub(crate) log_blocks: u32,
    pub(crate) left: u32,
    pub(crate) blocks: Vec<u32>,
}

pub(crate) struct Journal {
    /// Contiguous runs of disk blocks that hold the journal.
    pub(crate) runs: Vec<(u32, u32)>,
    pub(crate) len: u32,
    /// Number of blocks written to the journal since the start, and the number of these that are
    /// free again.
    pub(crate) head: u64,
    pub(crate) tail: u64,
    pub(crate) tail_on_disk: u64,
    pub(crate) running: Option<Txn>,
    pub(crate) committing: Option<Txn>,
    pub(crate) next_tid: u64,
    pub(crate) committed: u64,
    pub(crate) requested: u64,
    pub(crate) meta: Vec<Meta>,
    pub(crate) free_meta: Vec<u32>,
    pub(crate) checkpoints: VecDeque<Checkpoint>,
    /// Number of journal blocks that all checkpoints occupy.
    pub(crate) checkpoint_blocks: u64,
    pub(crate) checkpointing: bool,
    pub(crate) commit_wait: List,
    pub(crate) handle_wait: List,
    pub(crate) update_wait: List,
    pub(crate) checkpoint_wait: List,
    /// The running commit has not written its commit record yet.
    pub(crate) before_record: bool,
    /// Runs of blocks that the running and the committing transaction freed. The blocks can be
    /// reused when the commit is on the disk.
    pub(crate) freed: Vec<(u32, u32)>,
    pub(crate) freed_committing: Vec<(u32, u32)>,
    /// Unused vectors. They are reused so that a transaction allocates no memory after the warm-up.
    pub(crate) spare: Vec<Vec<u32>>,
}

impl Journal {
    pub(crate) fn new(runs: Vec<(u32, u32)>) -> Self {
        let len = runs.iter().map(|r| r.1).sum::<u32>();
        Journal {
            runs,
            len: len.max(8),
            head: 0,
            tail: 0,
            tail_on_disk: 0,
            running: None,
            committing: None,
            next_tid: 0,
            committed: 0,
            requested: 0,
            meta: Vec::new(),
            free_meta: Vec::new(),
            checkpoints: VecDeque::new(),
            checkpoint_blocks: 0,
            checkpointing: false,
            commit_wait: List::new(),
            handle_wait: List::new(),
            update_wait: List::new(),
            checkpoint_wait: List::new(),
            before_record: false,
            freed: Vec::new(),
            freed_committing: Vec::new(),
            spare: Vec::new(),
        }
    }
    pub(crate) fn free_blocks(&self) -> u64 {
        u64::from(self.len).saturating_sub(self.head - self.tail)
    }
    /// Returns the largest number of blocks in a transaction.
    pub(crate) fn max_txn(&self) -> usize {
        (self.len / 4) as usize
    }
    /// Returns the disk block that holds journal block number `n`.
    pub(crate) fn place(&self, n: u64) -> u32 {
        // The first block is the journal's superblock.
        let mut at = 1 + (n % u64::from(self.len - 1)) as u32;
        for (start, len) in &self.runs {
            if at < *len {
                return start + at;
            }
            at -= len;
        }
        self.superblock()
    }
    pub(crate) fn superblock(&self) -> u32 {
        self.runs.first().map_or(0, |r| r.0)
    }
    /// Returns the number of the running transaction, if there is one.
    pub(crate) fn running_tid(&self) -> Option<u64> {
        self.running.as_ref().map(|t| t.tid)
    }
    /// Returns whether the commit of transaction `tid` will still send a cache flush.
    pub(crate) fn will_flush(&self, tid: u64) -> bool {
        match (&self.committing, &self.running) {
            (Some(c), _) if c.tid == tid => self.before_record,
            (_, Some(r)) if r.tid == tid => true,
            _ => false,
        }
    }
    /// Returns whether free journal space may be too small for the running and the committing
    /// transaction.
    pub(crate) fn short(&self) -> bool {
        let committing = self.committing.as_ref().map_or(0, |t| t.blocks.len());
        let need = self.max_txn() + committing + committing / 16 + 4;
        self.free_blocks() < (need as u64).min(u64::from(self.len) / 2)
    }
    /// Records that a block of a committed transaction was written to its home location.
    pub(crate) fn checkpointed(&mut self, tid: u64) {
        let i = self.checkpoints.partition_point(|c| c.tid < tid);
        if let Some(c) = self.checkpoints.get_mut(i)
            && c.tid == tid
        {
            c.left -= 1;
            if c.left == 0 {
                // An earlier checkpoint may keep this one in the queue for a long time, so its
                // vector is reused immediately.
                let mut blocks = std::mem::take(&mut c.blocks);
                blocks.clear();
                self.spare.push(blocks);
            }
        }
        self.drop_old();
    }
    pub(crate) fn drop_old(&mut self) {
        while let Some(c) = self.checkpoints.front().filter(|c| c.left == 0) {
            self.tail += u64::from(c.log_blocks);
            self.checkpoint_blocks -= u64::from(c.log_blocks);
            let c = self.checkpoints.pop_front();
            // The vector was already reused, unless the checkpoint had no blocks.
            let blocks = c.map(|c| c.blocks).filter(|b| b.capacity() > 0);
            self.spare.extend(blocks);
        }
    }
    /// Returns the number of the newest transaction.
    pub(crate) fn last_tid(&self) -> u64 {
        self.next_tid
    }
}

/// A metadata block with pending work for the journal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meta {
    pub(crate) page: u32,
    pub(crate) block: u32,
    pub(crate) running: bool,
    pub(crate) committing: bool,
    /// The block is being logged. Tasks that want to change it wait.
    pub(crate) shadow: bool,
    /// Transaction whose journal space becomes free when this block is written home. 0: none.
    pub(crate) checkpoint: u64,
    pub(crate) wait: List,
    /// The bio that writes this block to the journal.
    pub(crate) log_bio: u32,
    pub(crate) used: bool,
}

impl World {
    /// Removes a block for which the journal has no more work.
    pub(crate) fn meta_settle(&mut self, id: u32) {
        let m = self.journal.meta[id as usize];
        if m.running || m.committing || m.checkpoint != 0 {
            return;
        }
        debug_assert!(m.used);
        self.journal.meta[id as usize].used = false;
        self.journal.free_meta.push(id);
        self.cache.pages[m.page as usize].meta = NONE;
        self.cache.settle(m.page);
    }
    /// Handles a block of the device that was written to its home location.
    pub(crate) fn meta_home(&mut self, page: u32) {
        let id = self.cache.pages[page as usize].meta;
        if id == NONE || self.cache.pages[page as usize].is(flag::DIRTY) {
            return;
        }
        let tid = std::mem::take(&mut self.journal.meta[id as usize].checkpoint);
        if tid != 0 {
            self.journal.checkpointed(tid);
        }
        self.meta_settle(id);
    }
    /// Returns whether a block of the device is in memory, and marks it as used.
    pub(crate) fn in_memory(&mut self, block: u32) -> bool {
        let tree = &self.fs.inodes[BDEV as usize].tree;
        let Some(p) = self.cache.lookup(tree, block) else {
            return false;
        };
        let there = self.cache.pages[p as usize].is(flag::UPTODATE);
        if there {
            self.page_used(BDEV, p);
        }
        there
    }
    /// Returns whether a block is part of the running transaction.
    pub(crate) fn in_running(&self, block: u32) -> bool {
        let tree = &self.fs.inodes[BDEV as usize].tree;
        let page = self.cache.lookup(tree, block);
        let id = page.map_or(NONE, |p| self.cache.pages[p as usize].meta);
        self.journal
            .meta
            .get(id as usize)
            .is_some_and(|m| m.running)
    }
    /// Creates a page for a block of the device without reading it.
    pub(crate) fn meta_page(&mut self, block: u32) -> u32 {
        let tree = &self.fs.inodes[BDEV as usize].tree;
        match self.cache.lookup(tree, block) {
            Some(p) => p,
            None => self.new_page(BDEV, block, 0),
        }
    }
    /// Handles the end of a log write. Kernel 4.0 lets tasks change the block from here on.
    pub(crate) fn logged(&mut self, id: u32) {
        let own = self.cfg.constants.shadow_rule == 3;
        let m = &mut self.journal.meta[id as usize];
        m.log_bio = NIL;
        if own {
            m.shadow = false;
            self.rt.wake_all(&mut m.wait);
        }
    }
    /// Records that the running transaction changed the inode. `data`: the change is needed to find
    /// the inode's data.
    pub(crate) fn inode_in_txn(&mut self, ino: u32, data: bool) {
        let tid = self.journal.running_tid().expect("under a handle");
        let i = &mut self.fs.inodes[ino as usize];
        i.sync_tid = tid;
        if data {
            i.data_tid = tid;
        }
    }
}
