//! Functions with which an actor waits for a change of the modelled machine.

use super::K;
use super::world::World;
use crate::executor::{Actor, parked, pay};
use seekwell_core::{Control, Errno, Nanos, TaskId};

/// An event that an actor can wait for. The queue of the event is woken when it may have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Q {
    /// The end of a bio.
    Bio(u32),
    /// The end of all bios of a group.
    Group(u32),
    /// An inode's lock.
    Lock(u32),
    /// The end of a metadata block's log write.
    Shadow(u32),
    /// The end of a commit.
    Commit,
    /// The running transaction accepts handles again.
    Handles,
    /// A handle of the locked transaction ends.
    Updates,
    /// The flusher has finished some work.
    Flusher,
    /// The end of the running checkpoint.
    Checkpoint,
    /// Unwritten blocks have been converted.
    Convert,
    /// A completion in an AIO context.
    Aio(u32),
}

impl World {
    fn sleep_in(&mut self, q: Q, a: Actor) {
        let rt = &mut self.rt;
        match q {
            Q::Bio(i) => rt.sleep_on(&mut self.bios.get_mut(i).wait, a),
            Q::Group(i) => rt.sleep_on(&mut self.groups.get_mut(i).wait, a),
            Q::Lock(i) => rt.sleep_on(&mut self.fs.inodes[i as usize].lock_wait, a),
            Q::Shadow(i) => rt.sleep_on(&mut self.journal.meta[i as usize].wait, a),
            Q::Commit => rt.sleep_on(&mut self.journal.commit_wait, a),
            Q::Handles => rt.sleep_on(&mut self.journal.handle_wait, a),
            Q::Updates => rt.sleep_on(&mut self.journal.update_wait, a),
            Q::Checkpoint => rt.sleep_on(&mut self.journal.checkpoint_wait, a),
            Q::Flusher => rt.sleep_on(&mut self.flusher.work_wait, a),
            Q::Convert => rt.sleep_on(&mut self.conversions.wait, a),
            Q::Aio(i) => rt.sleep_on(&mut self.aios[i as usize].wait, a),
        }
    }
    /// Flushes the plug of a task that goes to sleep.
    pub(crate) fn before_sleep(&mut self, a: Actor) {
        if self.tasks[a as usize].plugs > 0 {
            let now = self.now();
            self.sink.control(now, Control::Sleep(TaskId(a)));
            self.sink_changed();
            self.schedules(a);
        }
    }
}

/// Waits until `blocked` returns `None`. The actor pays its CPU debt before its first sleep.
pub(crate) async fn wait(k: &K, a: Actor, mut blocked: impl FnMut(&World) -> Option<Q>) {
    loop {
        let owes = {
            let mut w = k.w();
            let Some(q) = blocked(&w) else { return };
            let owes = w.rt.debt[a as usize] > 0;
            if !owes {
                // The next submission depends on the event that the actor waits for here. Earlier
                // delays therefore do not count.
                w.tasks[a as usize].held = Nanos::ZERO;
                w.before_sleep(a);
                w.sleep_in(q, a);
            }
            owes
        };
        if owes {
            pay(k, a).await;
        } else {
            parked(k, a).await;
        }
    }
}

/// Waits until all bios of a group have ended, and frees the group. EIO if a bio failed.
pub(crate) async fn wait_group(k: &K, a: Actor, g: u32) -> Result<(), Errno> {
    wait(k, a, |w| {
        (w.groups.get(g).pending > 0).then_some(Q::Group(g))
    })
    .await;
    let mut w = k.w();
    let error = w.groups.get(g).error;
    w.groups.free(g);
    if error { Err(Errno::EIO) } else { Ok(()) }
}

/// Takes an inode's lock.
pub(crate) async fn lock(k: &K, a: Actor, ino: u32) {
    wait(k, a, |w| {
        w.fs.inodes[ino as usize].locked.then_some(Q::Lock(ino))
    })
    .await;
    k.w().fs.inodes[ino as usize].locked = true;
}

impl World {
    /// Releases an inode's lock.
    pub(crate) fn unlock(&mut self, ino: u32) {
        let i = &mut self.fs.inodes[ino as usize];
        debug_assert!(i.locked);
        i.locked = false;
        self.rt.wake_one(&mut i.lock_wait);
    }
}
