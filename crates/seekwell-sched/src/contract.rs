//! The contract (trait) between a block layer and a scheduler.
//!
//! One instance serves one queue. The layer calls the functions of the scheduler. The scheduler
//! calls the functions of [`Cx`]: it emits requests, arms timers, asks for a run of the queue, and
//! names the rule that decided.
//!
//! Every scheduler must make progress. If requests are queued and [`Scheduler::dispatch`]
//! dispatches nothing, then a timer is armed, a request is in flight, or a kick is pending.

use crate::cx::Cx;
use crate::tunable::{StoreError, Tunable};
use seekwell_core::{Bio, CgroupId, IocId, RqId};

/// The way in which a request enters the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insert {
    /// A new request, to be placed in the scheduler's order.
    Sorted,
    /// A request that goes before all other requests (blk-mq `at_head`).
    AtHead,
    /// A request that the driver returned after it had started (legacy `elv_requeue`, blk-mq
    /// requeue).
    Requeue,
    /// A request that the driver stopped or returned unstarted, to be scheduled again (Qualcomm
    /// `reinsert`).
    Reinsert,
}

/// Result of [`Scheduler::bio_merge`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BioMerge {
    /// The layer makes the generic search: one-hit cache, end-sector hash, then `find_front`.
    UseElevator,
    /// The scheduler searched its own lists and found this request. The layer does the merge.
    Found(RqId, MergeKind),
    /// The scheduler searched its own lists and found no request.
    No,
}

/// The end at which a request grew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MergeKind {
    /// A bio was merged at the end of the request.
    Back,
    /// A bio was merged at the front of the request, so that its start sector changed.
    Front,
}

/// Result of [`Scheduler::may_queue`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MayQueue {
    /// A request may be allocated if the pool is not full.
    May,
    /// No request may be allocated at present.
    No,
    /// A request may be allocated even if the pool is full.
    Must,
}

/// An event of an io context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IocEvent {
    /// The task submitted its first bio on this queue. The scheduler can prepare its data.
    Attach,
    /// The last task of the context has exited. Its queued requests remain.
    Exit,
    /// The priority changed (`ioprio_set`). [`seekwell_core::IoContext::prio_gen`] is already
    /// incremented.
    Prio,
    /// The context was moved to another cgroup.
    Cgroup,
    /// The context has no task and no requests, and its index will be reused. The scheduler must
    /// delete its data.
    Release,
}

/// An event of a cgroup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CgroupEvent {
    /// The cgroup was created.
    Online,
    /// The weight or the leaf weight changed.
    Weight,
    /// The cgroup was removed.
    Offline,
}

/// A scheduler: one instance serves one queue.
///
/// The layer makes these calls for each request: `prepare`, `insert`, (then the scheduler calls
/// [`Cx::emit`]), `activate` (legacy layer only, when the driver first takes the request),
/// `completed`, `finish`. A request that is merged into another gets `joined` (as `gone`) and
/// `finish`. A request that the driver returns gets `deactivate` or `requeued`, and then `insert`.
#[allow(unused_variables)]
pub trait Scheduler: Send {
    /// Inserts a request. The scheduler may emit requests at once.
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert);

    /// Returns true for `none`. The blk-mq layer then works without an elevator: it issues requests
    /// directly, and a request holds a driver tag from its allocation on. `dispatch` with `force`
    /// then moves all waiting requests.
    fn bypass(&self) -> bool {
        false
    }
    /// blk-mq: returns true if the scheduler has separate lists for each CPU or hardware queue
    /// (`none`, kyber). Other schedulers have one state and one lock for all hardware queues. For
    /// them, a run of all hardware queues only runs the current hardware queue and those with
    /// refused requests (`blk_mq_run_hw_queues` with `QUEUE_FLAG_SQ_SCHED`).
    fn per_hctx(&self) -> bool {
        self.bypass()
    }
    /// blk-mq: returns true if the queue may throttle writeback by default. If false, the kernel
    /// calls `wbt_disable_default`. For the built-in schedulers, the value is in [`crate::wbt`].
    fn wants_wbt(&self) -> bool {
        true
    }
    /// blk-mq: returns true if a request may be merged into a queued one when it is inserted.
    /// (ADIOS returns false while a barrier waits.)
    fn insert_merges(&self) -> bool {
        true
    }
    /// blk-mq: called before the layer tries to merge a new request into a queued request.
    fn inserting(&mut self, cx: &mut Cx, rq: RqId) {}
    /// blk-mq: called after request `gone`, which was never queued, was merged at the end of
    /// `kept`. The layer then calls `finish` for `gone`.
    fn insert_merged(&mut self, cx: &mut Cx, kept: RqId, gone: RqId) {}

    /// Asks the scheduler for requests for a hardware queue (0 in the legacy layer). The scheduler
    /// emits one or more requests and returns their number, or returns 0. A blk-mq layer expects at
    /// most one. With `force` the scheduler must dispatch all requests, without delay; the layer
    /// repeats the call until the result is 0.
    fn dispatch(&mut self, cx: &mut Cx, hctx: u16, force: bool) -> u32;

    /// Returns true if a call of `dispatch` is useful (blk-mq `has_work`; BFQ returns true while it
    /// idles).
    fn has_work(&self, cx: &Cx, hctx: u16) -> bool;

    /// Returns true if an urgent request waits, for which the driver may stop its current request
    /// (row).
    fn urgent(&self) -> bool {
        false
    }

    /// Searches the scheduler's own lists for a request to merge the bio into (kyber, `none`,
    /// ADIOS).
    fn bio_merge(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> BioMerge {
        BioMerge::UseElevator
    }
    /// Returns a queued request that starts where `bio` ends.
    fn find_front(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> Option<RqId> {
        None
    }
    /// Returns true if this bio may be merged into that request. The layer makes this call for
    /// every match outside the plug, in the context of the submitter.
    fn allow_merge(&mut self, cx: &mut Cx, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
        true
    }
    /// Called after a bio was merged into `rq`, unless `rq` was then joined with a neighbour.
    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {}
    /// Called after `kept` took over the bios of `gone`. The scheduler must remove `gone`. The
    /// fields of `gone` are still those from before the join, but `kept` has already grown.
    fn joined(&mut self, cx: &mut Cx, kept: RqId, gone: RqId);
    /// Returns the request before `rq`, which may be joined with `rq`.
    fn former(&mut self, cx: &Cx, rq: RqId) -> Option<RqId> {
        None
    }
    /// Returns the request after `rq`, which may be joined with `rq`.
    fn latter(&mut self, cx: &Cx, rq: RqId) -> Option<RqId> {
        None
    }

    /// Legacy layer: returns whether a request may be allocated for this bio. `ioc` is the bio's
    /// context.
    fn may_queue(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> MayQueue {
        MayQueue::May
    }
    /// blk-mq: returns the shallow depth for the request of this bio; `None`: the whole tag pool.
    fn limit_depth(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> Option<u32> {
        None
    }
    /// Called after `cx.queue.nr_requests` changed.
    fn depth_changed(&mut self, cx: &mut Cx) {}

    /// Prepares the scheduler's data for a new request (`set_req`, `prepare_request`).
    fn prepare(&mut self, cx: &mut Cx, rq: RqId) {}
    /// Called before the request is freed (`put_req`, `finish_request`).
    fn finish(&mut self, cx: &mut Cx, rq: RqId) {}
    /// Called when the driver takes the request for the first time (legacy layer).
    fn activate(&mut self, cx: &mut Cx, rq: RqId) {}
    /// Undoes `activate`, because the request returns to the scheduler.
    fn deactivate(&mut self, cx: &mut Cx, rq: RqId) {}
    /// Called after the request completed, while the scheduler still counts it. `rq.start` and
    /// `rq.issue` give its latencies.
    fn completed(&mut self, cx: &mut Cx, rq: RqId) {}
    /// blk-mq: called when the driver returns a started request (bfq and kyber treat it like
    /// `finish`).
    fn requeued(&mut self, cx: &mut Cx, rq: RqId) {}

    /// Called when a timer that was armed with [`Cx::arm`] or [`Cx::arm_jiffy`] fires.
    fn timer(&mut self, cx: &mut Cx, slot: u8) {}
    /// Handles an event of an io context.
    fn ioc_event(&mut self, cx: &mut Cx, ioc: IocId, what: IocEvent) {}
    /// Handles an event of a cgroup.
    fn cgroup_event(&mut self, cx: &mut Cx, cgroup: CgroupId, what: CgroupEvent) {}

    /// Returns the tunables, with the kernel's names, units and defaults.
    fn tunables(&self) -> &'static [Tunable] {
        &[]
    }
    /// Returns the value of a tunable as sysfs prints it, without the newline; `None` if the name
    /// is unknown.
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        None
    }
    /// Stores a tunable as sysfs does: with the kernel's parsing, limits and rounding.
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        Err(StoreError::unknown(name))
    }

    /// Checks the invariants of the specification, and panics if one does not hold. For tests and
    /// debug runs.
    fn check(&self, cx: &Cx) {}
    /// Appends a description of the state to `out` in one or a few lines, for `explain`.
    fn state(&self, cx: &Cx, out: &mut String) {}
}
