//! Unwritten blocks whose data have reached the disk, until somebody says so in the inode.

use super::threads::CONVERTER;
use super::world::World;
use crate::executor::Sleep;
use seekwell_core::List;
use std::collections::VecDeque;

/// Pages of an inode whose data are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) ino: u32,
    pub(crate) idx: u32,
    pub(crate) n: u32,
}

/// Work for the worker, and who waits for it.
#[derive(Default)]
pub(crate) struct Conversions {
    pub(crate) queue: VecDeque<Written>,
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
