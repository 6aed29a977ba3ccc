//! The interface to which bios are submitted. A block queue, a stripe over several queues and a
//! virtual disk implement it. Code above the block layer uses only this interface.

use crate::bio::{Bio, BioId};
use crate::cgroup::{IoCostModel, IoCostQos, IoMaxLimits};
use crate::event::{Snapshot, Tap};
use crate::ioc::{CgroupId, IoPrio, TaskId};
use crate::time::Instant;

/// The completion of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BioDone {
    /// Id of the bio.
    pub id: BioId,
    /// Time of the completion.
    pub at: Instant,
    /// True if the bio failed.
    pub error: bool,
}

/// Messages to a queue, apart from bios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The task opens a plug. Its requests are collected until the task closes the plug.
    Plug(TaskId),
    /// The task closes its plug.
    Unplug(TaskId),
    /// The task goes to sleep. A worker then flushes its plug.
    Sleep(TaskId),
    /// The last task of the io context exits.
    Exit(TaskId),
    /// The task must wait because too much memory is dirty (`balance_dirty_pages`).
    DirtySleep(TaskId),
    /// The task's priority was set with ioprio_set.
    Prio(TaskId, IoPrio),
    /// Nice value and CPU policy of the task, before its first bio or after a change.
    Nice(TaskId, i8, crate::ioc::Policy),
    /// The task moved to another cgroup.
    Cgroup(TaskId, CgroupId),
    /// The first task shares the io context of the second task (CLONE_IO).
    Share(TaskId, TaskId),
    /// The weight of a cgroup was written.
    Weight(CgroupId, u32),
    /// The weight of a cgroup's own tasks against its child cgroups was written (blkio.leaf_weight,
    /// 3.8 and later).
    LeafWeight(CgroupId, u32),
    /// The first cgroup was created below the second one.
    CgroupNew(CgroupId, CgroupId),
    /// A cgroup was removed.
    CgroupGone(CgroupId),
    /// A cgroup's `io.latency` for this device was written: the target in us, or none.
    IoLatency(CgroupId, Option<u64>),
    /// A cgroup's `io.weight` was written, 1 to 10,000.
    IoWeight(CgroupId, u32),
    /// The root's `io.cost.qos` for this device was written.
    IoCostQos(IoCostQos),
    /// The root's `io.cost.model` for this device was written.
    IoCostModel(IoCostModel),
    /// A cgroup's `io.max` for this device was written.
    IoMax(CgroupId, IoMaxLimits),
}

/// CPU work of the scheduler since the last query. The task that submits is charged for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerWork {
    /// Number of inserted requests.
    pub requests: u32,
    /// Instructions per request, from insertion to completion.
    pub instructions: u32,
    /// The part of these instructions that a queue without any order would need too.
    pub fifo_instructions: u32,
    /// The lock that is held during the work. 0 is the lock of the queue, `n + 1` is the lock of
    /// hardware queue `n`, `None` is no lock.
    pub lock: Option<u16>,
}

/// An object that accepts bios and returns their completions.
///
/// Times never decrease. A bio does not complete inside `submit`. [`BioSink::advance`] returns
/// completions in order, each with its own time.
pub trait BioSink {
    /// Submits a bio at `now`.
    fn submit(&mut self, now: Instant, bio: Bio);
    /// Like `submit`, for a delayed bio. The program would have submitted the bio at `asked`, but
    /// slept because an earlier bio waited for a request. Only latencies depend on `asked`.
    fn submit_asked(&mut self, now: Instant, asked: Instant, bio: Bio) {
        let _ = asked;
        self.submit(now, bio);
    }
    /// Returns the earliest time at which the state changes without a call; `None` if it does not.
    fn next_event(&self) -> Option<Instant>;
    /// Runs up to time `to`, inclusive, and appends completions in the order of time. The caller
    /// must advance from one event to the next, so that it can react to each completion in time.
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>);
    /// Sends a message. A sink with several members passes the message to all of them.
    fn control(&mut self, now: Instant, what: Control);
    /// Returns the first sector after the end.
    fn capacity(&self) -> crate::units::Sector;
    /// Returns true if a task that writes (or reads) should wait a moment (congestion of the legacy
    /// layer).
    fn congested(&self, write: bool) -> bool {
        let _ = write;
        false
    }
    /// Returns true if `task` sleeps because no request is free. Further bios of this task are then
    /// queued. A program stops at that point, so a model of programs must check this after each bio
    /// and after each event.
    fn waits(&self, task: TaskId) -> bool {
        let _ = task;
        false
    }
    /// Turns the counting of scheduler work on or off. If no part of the sink charges for the work,
    /// nothing is counted.
    fn count_work(&mut self, counts: bool) {
        let _ = counts;
    }
    /// Returns the scheduler's work since the last call, if it is counted.
    fn take_work(&mut self) -> Option<SchedulerWork> {
        None
    }
    /// Sends the events of this sink and its members to a stream. `None` ends this. Events do not
    /// change the results.
    fn listen(&mut self, tap: Option<&Tap>) {
        let _ = tap;
    }
    /// Appends snapshots of this sink and its members. Ages are relative to `now`.
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
