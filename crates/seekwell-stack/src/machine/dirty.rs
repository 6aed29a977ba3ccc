//! State of writeback: ordered lists of dirty inodes, work that was requested from the flusher, and
//! the rates of the device and of the tasks that dirty pages.

use super::world::World;
use crate::fs::WbList;
use seekwell_core::{Instant, Links, List};
use std::collections::VecDeque;

/// Work for the flusher: write everything that is dirty at the time of the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) number: u64,
    /// Whether to write as sync does, and to wait for each inode.
    pub(crate) wait: bool,
}

#[derive(Default)]
pub(crate) struct Flusher {
    pub(crate) links: Links,
    /// Dirty inodes, in the order in which they first became dirty.
    pub(crate) dirty: List,
    pub(crate) io: List,
    pub(crate) more: List,
    pub(crate) work: VecDeque<Work>,
    pub(crate) next_work: u64,
    pub(crate) done: u64,
    pub(crate) work_wait: List,
    /// A task found the background threshold exceeded.
    pub(crate) kicked: bool,
    /// A pass that must not wait (`Pass::Timid`) found a congested queue.
    pub(crate) congested: bool,
    /// A pdflush thread is working. In 2.6, only one of the two threads works on a device at a
    /// time.
    pub(crate) busy: bool,
}

impl World {
    pub(crate) fn move_inode(&mut self, ino: u32, to: WbList) {
        let f = &mut self.flusher;
        let i = &mut self.fs.inodes[ino as usize];
        match i.on {
            WbList::None => {}
            WbList::Dirty => f.links.remove(&mut f.dirty, ino),
            WbList::Io => f.links.remove(&mut f.io, ino),
            WbList::More => f.links.remove(&mut f.more, ino),
        }
        i.on = to;
        match to {
            WbList::None => {}
            WbList::Dirty => f.links.push_back(&mut f.dirty, ino),
            WbList::Io => f.links.push_back(&mut f.io, ino),
            WbList::More => f.links.push_back(&mut f.more, ino),
        }
    }
    /// Removes an inode from the lists.
    pub(crate) fn flusher_forget(&mut self, ino: u32) {
        self.move_inode(ino, WbList::None);
    }
}

/// Rates at which the device writes and tasks dirty, pages per second.
#[derive(Clone, Debug)]
pub(crate) struct Bandwidth {
    /// Pages written and pages dirtied since the start.
    pub(crate) written: u64,
    pub(crate) dirtied: u64,
    pub(crate) at: Instant,
    pub(crate) written_at: u64,
    pub(crate) dirtied_at: u64,
    /// Average write rate of the device.
    pub(crate) write: f64,
    /// Rate that each dirtying task is allowed when dirty memory is at the setpoint.
    pub(crate) limit: f64,
}

impl Bandwidth {
    pub(crate) fn new(first_pages: u64) -> Self {
        Bandwidth {
            written: 0,
            dirtied: 0,
            at: Instant::START,
            written_at: 0,
            dirtied_at: 0,
            write: first_pages as f64,
            limit: first_pages as f64,
        }
    }
    /// Returns the estimated write rate of the device, pages per second.
    pub(crate) fn bandwidth(&self) -> u64 {
        self.write as u64
    }
}

/// Throttling state of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// Pages that the task has dirtied since its last pause.
    pub(crate) dirtied: u32,
    /// Number of dirtied pages after which the task checks the limits.
    pub(crate) check_after: u32,
    /// Scheduled end of the last pause. If this time is in the past, the task has credit.
    pub(crate) paused_until: Instant,
}
