//! Targets of bios: a block queue, a stripe over queues, a virtual disk. Code above the block layer
//! sees only this interface.

use crate::bio::{Bio, BioId};
use crate::cgroup::{IoCostModel, IoCostQos, IoMaxLimits};
use crate::event::{Snapshot, Tap};
use crate::ioc::{CgroupId, IoPrio, TaskId};
use crate::time::Instant;

/// The completion of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BioDone {
    /// The bio's id.
    pub id: BioId,
    /// Time of the completion.
    pub at: Instant,
    /// The bio failed.
    pub error: bool,
}

/// Messages to a queue besides bios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The task opens a plug: its requests collect until the task closes the plug.
    Plug(TaskId),
    /// The task closes its plug.
    Unplug(TaskId),
    /// The task goes to sleep: a worker flushes its plug.
    Sleep(TaskId),
    /// The last task of the io context exits.
    Exit(TaskId),
    /// The task is held because too much memory is dirty (`balance_dirty_pages`).
    DirtySleep(TaskId),
    /// ioprio_set on the task.
    Prio(TaskId, IoPrio),
    /// Nice value and CPU policy of the task changed (or are set before its first bio).
    Nice(TaskId, i8, crate::ioc::Policy),
    /// The task moved to another cgroup.
    Cgroup(TaskId, CgroupId),
    /// `task` shares the io context of the second one (CLONE_IO).
    Share(TaskId, TaskId),
    /// A cgroup's weight.
    Weight(CgroupId, u32),
    /// Weight of a cgroup's own tasks against its children (blkio.leaf_weight of 3.8 and later).
    LeafWeight(CgroupId, u32),
    /// A cgroup is created under a parent.
    CgroupNew(CgroupId, CgroupId),
    /// A cgroup is removed.
    CgroupGone(CgroupId),
    /// A cgroup's `io.latency` for this device is written: the target in us, or none.
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

/// The scheduler's cost to the submitter since the last query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerWork {
    /// Number of inserted requests.
    pub requests: u32,
    /// Instructions per request, from insertion to completion.
    pub instructions: u32,
    /// The part of these instructions that a queue without order would also need.
    pub fifo_instructions: u32,
    /// The lock that is held meanwhile: 0 for the queue's own, else a hardware queue's; `None` for
    /// no lock.
    pub lock: Option<u16>,
}

/// Accepts bios and returns completions.
///
/// Times never decrease. A bio never completes inside `submit`: completions come from
/// [`BioSink::advance`], at their own times, in order.
pub trait BioSink {
    /// Takes a bio at `now`.
    fn submit(&mut self, now: Instant, bio: Bio);
    /// Like `submit`, for a bio that its program would have submitted at `asked` if it had not
    /// slept for the request of an earlier bio. The difference matters only for latencies.
    fn submit_asked(&mut self, now: Instant, asked: Instant, bio: Bio) {
        let _ = asked;
        self.submit(now, bio);
    }
    /// The earliest time at which the sink changes by itself.
    fn next_event(&self) -> Option<Instant>;
    /// Runs up to `to`, inclusive, and appends completions in time order. The caller advances from
    /// event to event, so that its answers to completions arrive in time.
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>);
    /// Sends the sink a message; composites pass it to all members.
    fn control(&mut self, now: Instant, what: Control);
    /// The first sector after the end.
    fn capacity(&self) -> crate::units::Sector;
    /// Whether a writer or reader should back off (legacy congestion).
    fn congested(&self, write: bool) -> bool {
        let _ = write;
        false
    }
    /// Whether `task` sleeps because no request is free; further bios of this task queue up. A
    /// program stops at that point, so a model of programs checks this after each bio, and again
    /// after each event.
    fn waits(&self, task: TaskId) -> bool {
        let _ = task;
        false
    }
    /// Turns the counting of scheduler work on or off. Nothing is counted if no part of the sink
    /// charges for it.
    fn count_work(&mut self, counts: bool) {
        let _ = counts;
    }
    /// The scheduler's work since the last call, if it is counted here.
    fn take_work(&mut self) -> Option<SchedulerWork> {
        None
    }
    /// Sends the events here and below to a stream; `None` ends this. Listening changes nothing
    /// else.
    fn listen(&mut self, tap: Option<&Tap>) {
        let _ = tap;
    }
    /// Appends snapshots of the contents here and below, with ages as of `now`.
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
