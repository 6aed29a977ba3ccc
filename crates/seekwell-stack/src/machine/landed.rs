//! Unwritten blocks whose data have reached the disk, and which the inode still marks as unwritten.

use super::threads::CONVERTER;
use super::world::World;
use crate::executor::Sleep;
use seekwell_core::List;
use std::collections::VecDeque;

/// Pages of an inode whose data are on the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) ino: u32,
    pub(crate) idx: u32,
    pub(crate) n: u32,
}

/// Work for the conversion thread, and the tasks that wait for it.
#[derive(Default)]
pub(crate) struct Conversions {
    pub(crate) queue: VecDeque<Written>,
    /// Number of conversions that are queued or in progress.
    pub(crate) pending: u32,
    pub(crate) wait: List,
}

impl World {
    /// Handles data of a file that have reached the disk. Queues a conversion if some of the blocks
    /// were unwritten.
    pub(crate) fn data_landed(&mut self, ino: u32, idx: u32, n: u32) {
        let i = &self.fs.inodes[ino as usize];
        if i.unwritten.is_empty() || !i.unwritten.overlaps(idx, n) {
            return;
        }
        // Here the inode's block is already in the running transaction, for example after an append
        // with a sync. A handle would change nothing else, so the conversion is done immediately.
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
