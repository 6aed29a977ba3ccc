//! The journal (jbd, jbd2): transactions, commits, what they block and what they write.
//!
//! A transaction collects metadata blocks. Its commit waits for open handles, writes the data that
//! must go first, then the blocks into the journal, then the commit record between cache flushes.
//! Home locations are written later, by whoever writes back the block device, or here when the
//! journal is full. Data of a transaction are known by inode, as ordered mode does.

mod commit;
mod meta;

pub(crate) use commit::thread;
pub(crate) use meta::{Meta, modify, read_meta};

use crate::rt::{Actor, K, Sleep};
use crate::wait::{Q, wait};
use crate::world::World;
use seekwell_core::{Instant, List};
use std::collections::VecDeque;

/// A transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Txn {
    pub(crate) tid: u64,
    /// Metadata blocks, as numbers of [`Meta`].
    pub(crate) blocks: Vec<u32>,
    /// Inodes with data to be written first.
    pub(crate) inodes: Vec<u32>,
    /// Handles open.
    updates: u32,
    /// Takes no new handles: its commit has begun.
    locked: bool,
    started: Instant,
}

/// Journal space of a committed transaction whose blocks are not all at home.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) tid: u64,
    log_blocks: u32,
    pub(crate) left: u32,
    pub(crate) blocks: Vec<u32>,
}

pub(crate) struct Journal {
    /// Where it lies.
    runs: Vec<(u32, u32)>,
    len: u32,
    /// Blocks written since the beginning, and of these no longer needed.
    head: u64,
    tail: u64,
    tail_on_disk: u64,
    pub(crate) running: Option<Txn>,
    committing: Option<Txn>,
    next_tid: u64,
    pub(crate) committed: u64,
    requested: u64,
    pub(crate) meta: Vec<Meta>,
    free_meta: Vec<u32>,
    pub(crate) checkpoints: VecDeque<Checkpoint>,
    /// Log blocks of all of these.
    checkpoint_blocks: u64,
    checkpointing: bool,
    pub(crate) commit_wait: List,
    pub(crate) handle_wait: List,
    pub(crate) update_wait: List,
    pub(crate) checkpoint_wait: List,
    /// The running commit is before its commit record.
    before_record: bool,
    /// Runs of blocks that the running and the committing transaction freed: others may have them
    /// when the commit is on the disk.
    pub(crate) freed: Vec<(u32, u32)>,
    freed_committing: Vec<(u32, u32)>,
    /// Spare vectors, so that a transaction allocates nothing once warm.
    spare: Vec<Vec<u32>>,
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
    fn free_blocks(&self) -> u64 {
        u64::from(self.len).saturating_sub(self.head - self.tail)
    }
    /// Blocks a transaction may hold.
    fn max_txn(&self) -> usize {
        (self.len / 4) as usize
    }
    /// Where log block number `n` lies.
    fn place(&self, n: u64) -> u32 {
        // The first block is the journal's own superblock.
        let mut at = 1 + (n % u64::from(self.len - 1)) as u32;
        for (start, len) in &self.runs {
            if at < *len {
                return start + at;
            }
            at -= len;
        }
        self.superblock()
    }
    fn superblock(&self) -> u32 {
        self.runs.first().map_or(0, |r| r.0)
    }
    /// Number of the running transaction, if there is one.
    pub(crate) fn running_tid(&self) -> Option<u64> {
        self.running.as_ref().map(|t| t.tid)
    }
    /// Will the commit of `tid` still send a cache flush?
    pub(crate) fn will_flush(&self, tid: u64) -> bool {
        match (&self.committing, &self.running) {
            (Some(c), _) if c.tid == tid => self.before_record,
            (_, Some(r)) if r.tid == tid => true,
            _ => false,
        }
    }
    /// Free space is short of what running and committing transactions may need.
    fn short(&self) -> bool {
        let committing = self.committing.as_ref().map_or(0, |t| t.blocks.len());
        let need = self.max_txn() + committing + committing / 16 + 4;
        self.free_blocks() < (need as u64).min(u64::from(self.len) / 2)
    }
}

impl World {
    /// Asks for the commit of a transaction.
    pub(crate) fn request_commit(&mut self, tid: u64) {
        if tid > self.journal.committed && tid > self.journal.requested {
            self.journal.requested = tid;
            self.rt.wake(crate::kernel::JOURNAL, Sleep::Idle);
        }
    }
    /// A new transaction with one handle.
    fn begin_transaction(&mut self) {
        let started = self.now();
        let j = &mut self.journal;
        j.next_tid += 1;
        j.running = Some(Txn {
            tid: j.next_tid,
            blocks: j.spare.pop().unwrap_or_default(),
            inodes: j.spare.pop().unwrap_or_default(),
            updates: 1,
            locked: false,
            started,
        });
        self.rt.wake(crate::kernel::JOURNAL, Sleep::Idle);
    }
    /// Blocks freed by transactions that have not committed are needed after all.
    pub(crate) fn release_freed(&mut self) {
        let (j, alloc) = (&mut self.journal, &mut self.fs.alloc);
        for (s, n) in j.freed.drain(..).chain(j.freed_committing.drain(..)) {
            alloc.free_now(s, n);
        }
    }
    /// Ends a handle.
    pub(crate) fn handle_stop(&mut self) {
        let j = &mut self.journal;
        let t = j.running.as_mut().expect("a handle's transaction runs");
        t.updates -= 1;
        let (last, locked, full) = (
            t.updates == 0,
            t.locked,
            t.blocks.len() > (j.len / 4) as usize,
        );
        let tid = t.tid;
        if last && locked {
            self.rt.wake_all(&mut self.journal.update_wait);
        } else if full && !locked {
            self.request_commit(tid);
        }
    }
    /// An inode's data are to be on the disk before the running transaction commits.
    pub(crate) fn order_data(&mut self, ino: u32) {
        let t = self.journal.running.as_mut().expect("under a handle");
        let i = &mut self.fs.inodes[ino as usize];
        if i.ordered_tid != t.tid {
            i.ordered_tid = t.tid;
            i.pins += 1;
            t.inodes.push(ino);
        }
    }
    /// The inode changed in the running transaction; `data`: its data cannot be found without.
    pub(crate) fn inode_in_txn(&mut self, ino: u32, data: bool) {
        let tid = self.journal.running_tid().expect("under a handle");
        let i = &mut self.fs.inodes[ino as usize];
        i.sync_tid = tid;
        if data {
            i.data_tid = tid;
        }
    }
}

/// Opens a handle: waits while the running transaction is locked, full, or the journal is.
pub(crate) async fn handle_start(k: &K, a: Actor) {
    loop {
        let full = {
            let mut w = k.w();
            let max = w.journal.max_txn();
            let j = &mut w.journal;
            let short = j.short() && !j.checkpoints.is_empty();
            match &mut j.running {
                Some(t) if t.locked => false,
                Some(t) if t.blocks.len() > max => {
                    let tid = t.tid;
                    w.request_commit(tid);
                    false
                }
                _ if short => true,
                Some(t) => {
                    t.updates += 1;
                    return;
                }
                None => {
                    w.begin_transaction();
                    return;
                }
            }
        };
        if full {
            commit::make_room(k, a).await;
        } else {
            wait(k, a, |w| {
                let max = w.journal.max_txn();
                let t = w.journal.running.as_ref()?;
                (t.locked || t.blocks.len() > max).then_some(Q::Handles)
            })
            .await;
        }
    }
}

/// A handle reserved beforehand: it waits for nothing and joins a locked transaction too.
pub(crate) fn handle_reserved(k: &K) {
    let mut w = k.w();
    match &mut w.journal.running {
        Some(t) => t.updates += 1,
        None => w.begin_transaction(),
    }
}

/// Waits for the commit of a transaction, asking for it.
pub(crate) async fn wait_commit(k: &K, a: Actor, tid: u64) {
    k.w().request_commit(tid);
    wait(k, a, |w| (w.journal.committed < tid).then_some(Q::Commit)).await;
}

/// Waits until the oldest checkpoint is gone: home writes of others end, or the transaction that
/// has its blocks again commits.
async fn wait_commit_or_home(k: &K, a: Actor, tid: u64, oldest: u64) {
    let blocked = |w: &World| {
        let c = w.journal.checkpoints.front().filter(|c| c.tid == oldest)?;
        // A block of it under writeback, if there is one: its end is what is waited for.
        let under_way = c.blocks.iter().find_map(|id| {
            let m = w.journal.meta[*id as usize];
            let page = &w.cache.pages[m.page as usize];
            (m.checkpoint == oldest && page.is(crate::cache::flag::WRITEBACK)).then_some(page.bio)
        });
        under_way.map(Q::Bio)
    };
    wait(k, a, blocked).await;
    let gone = {
        let w = k.w();
        w.journal
            .checkpoints
            .front()
            .is_none_or(|c| c.tid != oldest)
    };
    if !gone && tid > k.w().journal.committed {
        wait_commit(k, a, tid).await;
    }
}

impl Journal {
    /// The newest transaction there ever was.
    pub(crate) fn last_tid(&self) -> u64 {
        self.next_tid
    }
}
