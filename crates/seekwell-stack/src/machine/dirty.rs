//! What writing back remembers: dirty inodes in the order of their turns, work asked for, rates of
//! the device and of its dirtiers.

use super::world::World;
use crate::fs::WbList;
use seekwell_core::{Instant, Links, List};
use std::collections::VecDeque;

/// Work for the flusher: write everything that is dirty now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) number: u64,
    /// Sync writes, each inode waited for.
    pub(crate) wait: bool,
}

#[derive(Default)]
pub(crate) struct Flusher {
    pub(crate) links: Links,
    /// By time of first dirtying.
    pub(crate) dirty: List,
    pub(crate) io: List,
    pub(crate) more: List,
    pub(crate) work: VecDeque<Work>,
    pub(crate) next_work: u64,
    pub(crate) done: u64,
    pub(crate) work_wait: List,
    /// Dirtiers found the background threshold exceeded.
    pub(crate) kicked: bool,
    /// A timid pass met a congested queue.
    pub(crate) congested: bool,
    /// A periodic thread and a background thread do not work at once (2.6: one per device).
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
    /// An inode goes away.
    pub(crate) fn flusher_forget(&mut self, ino: u32) {
        self.move_inode(ino, WbList::None);
    }
}

/// Rates of the device and of its dirtiers, pages a second.
#[derive(Clone, Debug)]
pub(crate) struct Bandwidth {
    /// Pages whose write ended, and pages dirtied, since the beginning.
    pub(crate) written: u64,
    pub(crate) dirtied: u64,
    pub(crate) at: Instant,
    pub(crate) written_at: u64,
    pub(crate) dirtied_at: u64,
    /// Averages of the device's rate.
    pub(crate) write: f64,
    /// What each dirtier may do at the setpoint.
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
    /// Pages a second the device is believed to write.
    pub(crate) fn bandwidth(&self) -> u64 {
        self.write as u64
    }
}

/// A task's account with the throttle.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// Pages dirtied since it last paused.
    pub(crate) dirtied: u32,
    /// It looks at the limits after so many.
    pub(crate) check_after: u32,
    /// When its last pause should have ended: earlier than now is credit.
    pub(crate) paused_until: Instant,
}
