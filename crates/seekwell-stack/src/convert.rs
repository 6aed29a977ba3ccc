//! Unwritten blocks whose data have reached the disk: a worker says so in the inode, in a handle of
//! its own.
//!
//! The journal therefore never waits for such data; fsync and sync wait for the worker. Its handle
//! was reserved when the data were sent: it joins a transaction that takes no others any more.
//! Left out: page writeback of 3.11 and later ends with the conversion, here with the write itself,
//! a handle earlier.

use crate::journal::handle_reserved;
use crate::kernel::CONVERTER;
use crate::rt::{K, Sleep, idle};
use crate::wait::{Q, wait};
use crate::world::World;
use crate::writeback::inode_changed;
use seekwell_core::List;
use std::collections::VecDeque;

/// Pages of an inode whose data are there.
#[derive(Clone, Copy, Debug)]
struct Written {
    ino: u32,
    idx: u32,
    n: u32,
}

/// Work for the worker, and who waits for it.
#[derive(Default)]
pub(crate) struct Conversions {
    queue: VecDeque<Written>,
    /// Queued, and being done.
    pub(crate) pending: u32,
    pub(crate) wait: List,
}

impl World {
    /// Data of pages of a file have reached the disk: were any of them unwritten?
    pub(crate) fn data_landed(&mut self, ino: u32, idx: u32, n: u32) {
        let i = &self.fs.inodes[ino as usize];
        if i.unwritten.is_empty() || !i.unwritten.overlaps(idx, n) {
            return;
        }
        // The inode's block is in the running transaction already, as after an append that is
        // synced: a handle would change nothing else.
        if i.index.is_empty() && self.in_running(self.fs.inode_block(ino)) {
            self.fs.inodes[ino as usize].unwritten.take(idx, n);
            return self.inode_in_txn(ino, true);
        }
        let i = &mut self.fs.inodes[ino as usize];
        i.converting += 1;
        i.pins += 1;
        self.conversions.pending += 1;
        self.conversions.queue.push_back(Written { ino, idx, n });
        self.rt.wake(CONVERTER, Sleep::Idle);
    }
}

/// The worker.
pub(crate) async fn thread(k: K) {
    loop {
        let next = k.w().conversions.queue.pop_front();
        match next {
            None => idle(&k, CONVERTER, None).await,
            Some(first) => convert(&k, first).await,
        }
    }
}

/// Converts what is queued of one inode, in one handle.
async fn convert(k: &K, first: Written) {
    let ino = first.ino;
    handle_reserved(k);
    let done = {
        let mut w = k.w();
        let w = &mut *w;
        let unwritten = &mut w.fs.inodes[ino as usize].unwritten;
        let queue = &mut w.conversions.queue;
        unwritten.take(first.idx, first.n);
        let mut done = 1;
        while let Some(more) = queue.front().copied().filter(|q| q.ino == ino) {
            unwritten.take(more.idx, more.n);
            queue.pop_front();
            done += 1;
        }
        w.inode_in_txn(ino, true);
        done
    };
    inode_changed(k, CONVERTER, ino).await;
    k.w().handle_stop();
    let mut w = k.w();
    let w = &mut *w;
    let i = &mut w.fs.inodes[ino as usize];
    i.converting -= done;
    i.pins -= done;
    w.conversions.pending -= done;
    w.rt.wake_all(&mut w.conversions.wait);
    w.maybe_release(ino);
}

/// Waits until nothing of an inode is to be converted any more.
pub(crate) async fn wait_converted(k: &K, a: crate::rt::Actor, ino: u32) {
    wait(k, a, |w| {
        (w.fs.inodes[ino as usize].converting > 0).then_some(Q::Convert)
    })
    .await;
}

/// The same for all inodes.
pub(crate) async fn wait_all_converted(k: &K, a: crate::rt::Actor) {
    wait(k, a, |w| (w.conversions.pending > 0).then_some(Q::Convert)).await;
}
