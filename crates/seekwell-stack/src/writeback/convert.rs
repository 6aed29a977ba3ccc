//! Conversion of unwritten blocks. When the data of such blocks have reached the disk, a worker
//! thread marks the blocks as written in the inode. The worker opens its own journal handle.
//!
//! A commit therefore never waits for such data, but fsync and sync wait for the worker. The handle
//! was reserved when the data were submitted. It can therefore join a transaction that accepts no
//! other handles. Not modelled: since 3.11, the writeback of a page ends with the conversion. In
//! the model, writeback ends with the write, which is earlier.

use super::inode::inode_changed;
use crate::executor::{Actor, idle};
use crate::journal::handle_reserved;
use crate::machine::{CONVERTER, K, Q, Written, wait};

/// Runs the conversion worker.
pub(crate) async fn thread(k: K) {
    loop {
        let next = k.w().conversions.queue.pop_front();
        match next {
            None => idle(&k, CONVERTER, None).await,
            Some(first) => convert(&k, first).await,
        }
    }
}

/// Converts all queued blocks of an inode in one handle.
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

/// Waits until an inode has no blocks to convert.
pub(crate) async fn wait_converted(k: &K, a: Actor, ino: u32) {
    wait(k, a, |w| {
        (w.fs.inodes[ino as usize].converting > 0).then_some(Q::Convert)
    })
    .await;
}

/// Waits until no inode has blocks to convert.
pub(crate) async fn wait_all_converted(k: &K, a: Actor) {
    wait(k, a, |w| (w.conversions.pending > 0).then_some(Q::Convert)).await;
}
