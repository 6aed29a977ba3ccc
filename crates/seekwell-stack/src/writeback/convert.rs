//! Unwritten blocks whose data have reached the disk: a worker says so in the inode, in a handle of
//! its own.
//!
//! The journal therefore never waits for such data; fsync and sync wait for the worker. Its handle
//! was reserved when the data were sent: it joins a transaction that takes no others any more.
//! Left out: page writeback of 3.11 and later ends with the conversion, here with the write itself,
//! a handle earlier.

use super::inode::inode_changed;
use crate::executor::{Actor, idle};
use crate::journal::handle_reserved;
use crate::machine::{CONVERTER, K, Q, Written, wait};

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
pub(crate) async fn wait_converted(k: &K, a: Actor, ino: u32) {
    wait(k, a, |w| {
        (w.fs.inodes[ino as usize].converting > 0).then_some(Q::Convert)
    })
    .await;
}

/// The same for all inodes.
pub(crate) async fn wait_all_converted(k: &K, a: Actor) {
    wait(k, a, |w| (w.conversions.pending > 0).then_some(Q::Convert)).await;
}
