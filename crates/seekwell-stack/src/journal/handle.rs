//! Journal handles, with which metadata changes join the running transaction, and the wait for the
//! commit of a transaction.

use crate::executor::{Actor, Sleep};
use crate::machine::{K, Q, Txn, World, wait};

impl World {
    /// Requests the commit of a transaction.
    pub(crate) fn request_commit(&mut self, tid: u64) {
        if tid > self.journal.committed && tid > self.journal.requested {
            self.journal.requested = tid;
            self.rt.wake(crate::machine::JOURNAL, Sleep::Idle);
        }
    }
    /// Begins a transaction with one handle.
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
        self.rt.wake(crate::machine::JOURNAL, Sleep::Idle);
    }
    /// Makes blocks available that uncommitted transactions have freed. Called when no other blocks
    /// are free.
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
    /// Records that the inode's data must be on the disk before the running transaction commits.
    pub(crate) fn order_data(&mut self, ino: u32) {
        let t = self.journal.running.as_mut().expect("under a handle");
        let i = &mut self.fs.inodes[ino as usize];
        if i.ordered_tid != t.tid {
            i.ordered_tid = t.tid;
            i.pins += 1;
            t.inodes.push(ino);
        }
    }
}

/// Opens a handle. Waits while the running transaction is locked or full, or while the journal is
/// full.
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
            super::commit::make_room(k, a).await;
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

/// Opens a handle that was reserved earlier. This function never waits, and the handle can join a
/// locked transaction.
pub(crate) fn handle_reserved(k: &K) {
    let mut w = k.w();
    match &mut w.journal.running {
        Some(t) => t.updates += 1,
        None => w.begin_transaction(),
    }
}

/// Requests the commit of a transaction and waits for it.
pub(crate) async fn wait_commit(k: &K, a: Actor, tid: u64) {
    k.w().request_commit(tid);
    wait(k, a, |w| (w.journal.committed < tid).then_some(Q::Commit)).await;
}

/// Waits until the oldest checkpoint is gone. This happens when other tasks have written its blocks
/// home, or when the transaction that has changed its blocks again commits.
pub(super) async fn wait_commit_or_home(k: &K, a: Actor, tid: u64, oldest: u64) {
    let blocked = |w: &World| {
        let c = w.journal.checkpoints.front().filter(|c| c.tid == oldest)?;
        // If a block of the checkpoint is under writeback, wait for the end of that write.
        let under_way = c.blocks.iter().find_map(|id| {
            let m = w.journal.meta[*id as usize];
            let page = &w.cache.pages[m.page as usize];
            (m.checkpoint == oldest && page.is(crate::memory::flag::WRITEBACK)).then_some(page.bio)
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
