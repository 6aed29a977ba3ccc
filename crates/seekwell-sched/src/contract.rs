//! The contract between a block layer and a scheduler.
//!
//! One instance serves one queue. The layer calls the scheduler; the scheduler acts through [`Cx`]:
//! it emits requests, arms timers, asks for a run of the queue, and names the rule that decided.
//!
//! Liveness, for all schedulers: if requests are queued and [`Scheduler::dispatch`] returns
//! nothing, then a timer is armed, a request is in flight, or a kick is pending.

use crate::cx::Cx;
use crate::tunable::{StoreError, Tunable};
use seekwell_core::{Bio, CgroupId, IocId, RqId};

/// How a request enters the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insert {
    /// In the scheduler's order.
    Sorted,
    /// Before all other requests (blk-mq `at_head`).
    AtHead,
    /// Returned by the driver after it had started (legacy `elv_requeue`, blk-mq requeue).
    Requeue,
    /// Returned unstarted or stopped, to be scheduled again (Qualcomm `reinsert`).
    Reinsert,
}

/// The answer of [`Scheduler::bio_merge`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BioMerge {
    /// The generic search: one-hit cache, end-sector hash, then `find_front`.
    UseElevator,
    /// The scheduler searched its own lists and found this request; the layer does the merge.
    Found(RqId, MergeKind),
    /// The scheduler searched and found nothing.
    No,
}

/// Which end of a request grew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MergeKind {
    /// A bio was added at the end.
    Back,
    /// A bio was added in front: the start sector moved.
    Front,
}

/// The answer of [`Scheduler::may_queue`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MayQueue {
    /// Allowed if the pool has room.
    May,
    /// Not allowed at present.
    No,
    /// Allowed even if the pool is full.
    Must,
}

/// An event in the life of an io context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IocEvent {
    /// The task's first bio on this queue; side tables may be filled.
    Attach,
    /// The last task has exited; its queued requests remain.
    Exit,
    /// The priority changed (`ioprio_set`); [`seekwell_core::IoContext::prio_gen`] is already
    /// raised.
    Prio,
    /// The context moved to another cgroup.
    Cgroup,
    /// The context is dead and has no requests. Its index will be reused: forget it.
    Release,
}

/// An event in the life of a cgroup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CgroupEvent {
    /// Created.
    Online,
    /// Its weight (or leaf weight) changed.
    Weight,
    /// Removed.
    Offline,
}

/// A scheduler: one instance serves one queue.
///
/// Order of calls for one request: `prepare`, `insert`, then [`Cx::emit`] by the scheduler,
/// `activate` (legacy: when the driver first looks at the request), `completed`, `finish`. A
/// request that is merged into another gets `joined` (as `gone`) and `finish`. A request that is
/// returned gets `deactivate` or `requeued`, then `insert`.
#[allow(unused_variables)]
pub trait Scheduler: Send {
    /// Takes a request. May emit requests at once.
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert);

    /// True for `none`: the blk-mq layer takes its path without an elevator (direct issue; a
    /// request holds a driver tag from its allocation on), and `dispatch` with `force` moves all
    /// waiting requests.
    fn bypass(&self) -> bool {
        false
    }
    /// blk-mq: true if the scheduler keeps separate lists for each CPU or hardware queue (`none`,
    /// kyber). The other schedulers have one state under one lock for all hardware queues. For
    /// them, a run of "all" hardware queues runs only the current one and those with refused
    /// requests (`blk_mq_run_hw_queues` with `QUEUE_FLAG_SQ_SCHED`).
    fn per_hctx(&self) -> bool {
        self.bypass()
    }
    /// blk-mq: whether the queue may throttle writeback by default; if not, the kernel calls
    /// `wbt_disable_default`. For the built-in schedulers, [`crate::wbt`] holds the answer.
    fn wants_wbt(&self) -> bool {
        true
    }
    /// blk-mq: whether requests that are inserted at present may be merged into queued ones.
    /// (ADIOS: not while a barrier waits.)
    fn insert_merges(&self) -> bool {
        true
    }
    /// blk-mq: called before the layer tries to merge a new request into a queued one.
    fn inserting(&mut self, cx: &mut Cx, rq: RqId) {}
    /// The merge succeeded: `gone`, which was never queued, became the end of `kept`. `finish` of
    /// `gone` follows.
    fn insert_merged(&mut self, cx: &mut Cx, kept: RqId, gone: RqId) {}

    /// Asks for work for a hardware queue (0 in the legacy layer). Emits at least one request and
    /// returns the number emitted, or returns 0. A blk-mq layer expects at most one. With `force`,
    /// the scheduler drains and holds nothing back; the layer calls until the answer is 0.
    fn dispatch(&mut self, cx: &mut Cx, hctx: u16, force: bool) -> u32;

    /// Whether a dispatch is worth a try (blk-mq `has_work`; BFQ answers yes while it idles).
    fn has_work(&self, cx: &Cx, hctx: u16) -> bool;

    /// True if an urgent request waits: the driver may stop its current request (ROW).
    fn urgent(&self) -> bool {
        false
    }

    /// Searches the scheduler's own lists for a merge partner (kyber, `none`, ADIOS).
    fn bio_merge(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> BioMerge {
        BioMerge::UseElevator
    }
    /// Finds a queued request that starts where `bio` ends.
    fn find_front(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> Option<RqId> {
        None
    }
    /// Whether this bio may join that request. The layer asks on behalf of the submitter, for every
    /// match outside the plug.
    fn allow_merge(&mut self, cx: &mut Cx, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
        true
    }
    /// `rq` grew by a bio and was not joined with a neighbour.
    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {}
    /// `kept` took over the bios of `gone`, which the scheduler must forget. The fields of `gone`
    /// still have their values from before the join; `kept` has already grown.
    fn joined(&mut self, cx: &mut Cx, kept: RqId, gone: RqId);
    /// The neighbour before `rq`, as a candidate for joining.
    fn former(&mut self, cx: &Cx, rq: RqId) -> Option<RqId> {
        None
    }
    /// The neighbour after `rq`, as a candidate for joining.
    fn latter(&mut self, cx: &Cx, rq: RqId) -> Option<RqId> {
        None
    }

    /// Legacy: whether a request may be allocated for this bio. `ioc` is the bio's context.
    fn may_queue(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> MayQueue {
        MayQueue::May
    }
    /// blk-mq: the shallow depth for this bio's request; `None`: the whole pool.
    fn limit_depth(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> Option<u32> {
        None
    }
    /// `cx.queue.nr_requests` changed.
    fn depth_changed(&mut self, cx: &mut Cx) {}

    /// Sets up private data for a new request (`set_req`, `prepare_request`).
    fn prepare(&mut self, cx: &mut Cx, rq: RqId) {}
    /// The request is about to be freed (`put_req`, `finish_request`).
    fn finish(&mut self, cx: &mut Cx, rq: RqId) {}
    /// The driver looks at the request for the first time.
    fn activate(&mut self, cx: &mut Cx, rq: RqId) {}
    /// Undoes `activate`: the request returns.
    fn deactivate(&mut self, cx: &mut Cx, rq: RqId) {}
    /// The request has completed; the scheduler still counts it. `rq.start` and `rq.issue` give its
    /// latencies.
    fn completed(&mut self, cx: &mut Cx, rq: RqId) {}
    /// blk-mq: the driver returns a started request (bfq and kyber treat this like `finish`).
    fn requeued(&mut self, cx: &mut Cx, rq: RqId) {}

    /// A timer armed with [`Cx::arm`] or [`Cx::arm_jiffy`] fired.
    fn timer(&mut self, cx: &mut Cx, slot: u8) {}
    /// An event of an io context.
    fn ioc_event(&mut self, cx: &mut Cx, ioc: IocId, what: IocEvent) {}
    /// An event of a cgroup.
    fn cgroup_event(&mut self, cx: &mut Cx, cgroup: CgroupId, what: CgroupEvent) {}

    /// The tunables, with the kernel's names, units and defaults.
    fn tunables(&self) -> &'static [Tunable] {
        &[]
    }
    /// Reads a tunable as sysfs would print it, without the newline; `None` if the name is unknown.
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        None
    }
    /// Writes a tunable as sysfs would take it, with the kernel's parsing, clamping and rounding.
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        Err(StoreError::unknown(name))
    }

    /// Checks the specification's invariants; panics if one is broken. For tests and debug runs.
    fn check(&self, cx: &Cx) {}
    /// Describes the state in one or a few lines, for `explain`.
    fn state(&self, cx: &Cx, out: &mut String) {}
}
