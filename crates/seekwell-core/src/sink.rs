//! Where bios go: a block queue, a stripe over queues, a virtual disk. Everything above the block
//! layer sees only this.

use crate::bio::{Bio, BioId};
use crate::cgroup::{IoCostModel, IoCostQos, IoMaxLimits};
use crate::event::{Snapshot, Tap};
use crate::ioc::{CgroupId, IoPrio, TaskId};
use crate::time::Instant;

/// A bio is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BioDone {
    /// Of the bio.
    pub id: BioId,
    /// When.
    pub at: Instant,
    /// It failed.
    pub error: bool,
}

/// What the outside tells a queue beside bios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The task opens a plug: its requests collect until it closes it.
    Plug(TaskId),
    /// The task closes its plug.
    Unplug(TaskId),
    /// The task goes to sleep: its plug is flushed from a worker.
    Sleep(TaskId),
    /// The last task of the io context exits.
    Exit(TaskId),
    /// The task is held because too much memory is dirty (`balance_dirty_pages`).
    DirtySleep(TaskId),
    /// ioprio_set on the task.
    Prio(TaskId, IoPrio),
    /// Nice value and CPU policy of the task changed (or are made known before its first bio).
    Nice(TaskId, i8, crate::ioc::Policy),
    /// The task moved to another cgroup.
    Cgroup(TaskId, CgroupId),
    /// `task` shares the io context of the second one (CLONE_IO).
    Share(TaskId, TaskId),
    /// A cgroup's weight.
    Weight(CgroupId, u32),
    /// Weight of a cgroup's own tasks against its children (blkio.leaf_weight of 3.8 and later).
    LeafWeight(CgroupId, u32),
    /// A cgroup is made under a parent.
    CgroupNew(CgroupId, CgroupId),
    /// A cgroup is gone.
    CgroupGone(CgroupId),
    /// A cgroup's `io.latency` for this device is written: its target, us; none.
    IoLatency(CgroupId, Option<u64>),
    /// A cgroup's `io.weight`, 1 to 10,000.
    IoWeight(CgroupId, u32),
    /// The root's `io.cost.qos` for this device is written.
    IoCostQos(IoCostQos),
    /// The root's `io.cost.model` for this device is written.
    IoCostModel(IoCostModel),
    /// A cgroup's `io.max` for this device is written.
    IoMax(CgroupId, IoMaxLimits),
}

/// What a scheduler has cost whoever submitted, since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerWork {
    /// Requests that were inserted.
    pub requests: u32,
    /// Instructions of one, from insertion over dispatch to completion.
    pub instructions: u32,
    /// Of these, what a queue without order would take as well.
    pub fifo_instructions: u32,
    /// The lock that is held meanwhile: 0 the queue's own, else a hardware queue's; none.
    pub lock: Option<u16>,
}

/// Accepts bios and gives completions.
///
/// Times never decrease. A submission never completes inside `submit`: completions come out of
/// [`BioSink::advance`], at their own times, in order.
pub trait BioSink {
    /// Takes a bio at `now`.
    fn submit(&mut self, now: Instant, bio: Bio);
    /// The same, of a bio that its program would have submitted at `asked`, had it not slept for a
    /// request of an earlier one. Only who measures latencies cares.
    fn submit_asked(&mut self, now: Instant, asked: Instant, bio: Bio) {
        let _ = asked;
        self.submit(now, bio);
    }
    /// The earliest time at which something happens by itself.
    fn next_event(&self) -> Option<Instant>;
    /// Runs to `to` inclusive; appends completions in time order. The caller advances from event
    /// to event, so that everything it submits in answer arrives in time.
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>);
    /// Tells the sink something; composites pass it on to all members.
    fn control(&mut self, now: Instant, what: Control);
    /// First sector behind the end.
    fn capacity(&self) -> crate::units::Sector;
    /// A writer should back off (legacy congestion), for reads or writes.
    fn congested(&self, write: bool) -> bool {
        let _ = write;
        false
    }
    /// `task` sleeps for want of a request: what it submits from now on waits behind. A program
    /// stops there; whoever models programs asks after each bio, and again after each event.
    fn waits(&self, task: TaskId) -> bool {
        let _ = task;
        false
    }
    /// Has what the scheduler costs counted from now on, or no longer; where nobody charges for it
    /// nothing is.
    fn count_work(&mut self, counts: bool) {
        let _ = counts;
    }
    /// What the scheduler has cost since it was last asked, if that is counted here.
    fn take_work(&mut self) -> Option<SchedulerWork> {
        None
    }
    /// What happens here, and in all that is below, goes into a stream from now on; `None`: nobody
    /// listens any more. Nothing else changes by it.
    fn listen(&mut self, tap: Option<&Tap>) {
        let _ = tap;
    }
    /// Appends what is inside, and inside all that is below, with ages as of `now`.
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        let _ = (now, out);
    }
}

impl<B: BioSink + ?Sized> BioSink for Box<B> {
    fn submit(&mut self, now: Instant, bio: Bio) {
        (**self).submit(now, bio)
    }
    fn submit_asked(&mut self, now: Instant, asked: Instant, bio: Bio) {
        (**self).submit_asked(now, asked, bio)
    }
    fn next_event(&self) -> Option<Instant> {
        (**self).next_event()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        (**self).advance(to, out)
    }
    fn control(&mut self, now: Instant, what: Control) {
        (**self).control(now, what)
    }
    fn capacity(&self) -> crate::units::Sector {
        (**self).capacity()
    }
    fn congested(&self, write: bool) -> bool {
        (**self).congested(write)
    }
    fn waits(&self, task: TaskId) -> bool {
        (**self).waits(task)
    }
    fn count_work(&mut self, counts: bool) {
        (**self).count_work(counts)
    }
    fn take_work(&mut self) -> Option<SchedulerWork> {
        (**self).take_work()
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        (**self).listen(tap)
    }
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        (**self).snapshot(now, out)
    }
}
