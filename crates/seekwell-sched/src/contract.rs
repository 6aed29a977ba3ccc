//! The contract between a block layer and a scheduler.
//!
//! One instance serves one queue. The layer calls; the scheduler answers through [`Cx`]: it emits
//! requests, arms timers, asks for a run of the queue, names the rule that decided.
//!
//! Liveness, for all: something queued and [`Scheduler::dispatch`] gives nothing implies a timer
//! armed, a request in flight, or a kick pending.

use crate::cx::Cx;
use crate::tunable::{StoreError, Tunable};
use seekwell_core::{Bio, CgroupId, IocId, RqId};

/// How a request comes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insert {
    /// In the scheduler's order.
    Sorted,
    /// Before everything (blk-mq `at_head`).
    AtHead,
    /// Given back by the driver after it had started (legacy `elv_requeue`, blk-mq requeue).
    Requeue,
    /// Given back un-started or stopped, to be scheduled again (Qualcomm `reinsert`).
    Reinsert,
}

/// Answer of [`Scheduler::bio_merge`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BioMerge {
    /// The generic search: one-hit cache, end-sector hash, then `find_front`.
    UseElevator,
    /// The scheduler searched its own lists and found this; the layer does the merge.
    Found(RqId, MergeKind),
    /// The scheduler searched and found nothing.
    No,
}

/// Which end of a request grew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MergeKind {
    /// A bio came behind it.
    Back,
    /// A bio came before it: its start moved.
    Front,
}

/// Answer of [`Scheduler::may_queue`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MayQueue {
    /// As the pool allows.
    May,
    /// Not now.
    No,
    /// Even if the pool is full.
    Must,
}

/// Something happened to an io context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IocEvent {
    /// First bio of a task on this queue; side tables may be filled.
    Attach,
    /// Last task gone; its queued requests remain.
    Exit,
    /// ioprio_set; [`seekwell_core::IoContext::prio_gen`] is already raised.
    Prio,
    /// It moved to another cgroup.
    Cgroup,
    /// Dead and without requests: the index is about to be reused, forget it.
    Release,
}

/// Something happened to a cgroup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CgroupEvent {
    /// Made.
    Online,
    /// Its weight (or leaf weight) changed.
    Weight,
    /// Gone.
    Offline,
}

/// A scheduler: one instance, one queue.
///
/// Order of calls for a request: `prepare`, `insert`, then through `Cx::emit` out, `activate`
/// (legacy: when the driver first looks at it), `completed`, `finish`. A request merged away gets
/// `joined` (as `gone`) and `finish`; one given back gets `deactivate` or `requeued` and `insert`.
#[allow(unused_variables)]
pub trait Scheduler: Send {
    /// Takes a request. May emit at once.
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert);

    /// True for `none`: the blk-mq layer takes its no-elevator path (direct issue, driver tags from
    /// the allocation on) and `dispatch` with `force` moves everything that waits.
    fn bypass(&self) -> bool {
        false
    }
    /// blk-mq: does it keep lists of its own for each CPU or hardware queue (`none`, kyber)? The
    /// others have one state under one lock, whichever hardware queue asks: a run of "all" hardware
    /// queues is then one of the queue at hand and of those with requests that were refused
    /// (`blk_mq_run_hw_queues` with `QUEUE_FLAG_SQ_SCHED`).
    fn per_hctx(&self) -> bool {
        self.bypass()
    }
    /// blk-mq: may the queue throttle writeback by default (`wbt_disable_default` if not)? Of the
    /// schedulers here [`crate::wbt`] says it.
    fn wants_wbt(&self) -> bool {
        true
    }
    /// blk-mq: may requests that are inserted now become part of ones inside? (ADIOS: not while a
    /// barrier waits.)
    fn insert_merges(&self) -> bool {
        true
    }
    /// blk-mq, right before a request that is about to be inserted is tried as an addition to one
    /// that is inside already.
    fn inserting(&mut self, cx: &mut Cx, rq: RqId) {}
    /// That try succeeded: `gone`, which never was inside, became the end of `kept`. `finish` of
    /// `gone` follows.
    fn insert_merged(&mut self, cx: &mut Cx, kept: RqId, gone: RqId) {}

    /// Asked for work for a hardware queue (0 in the legacy layer): emits at least one request and
    /// returns how many, or 0. A blk-mq layer expects at most one. `force`: drain, hold nothing
    /// back; called until it returns 0.
    fn dispatch(&mut self, cx: &mut Cx, hctx: u16, force: bool) -> u32;

    /// Would a dispatch be worth a try? (blk-mq `has_work`; BFQ says yes while it idles.)
    fn has_work(&self, cx: &Cx, hctx: u16) -> bool;

    /// An urgent request waits: the driver may stop what it does (ROW).
    fn urgent(&self) -> bool {
        false
    }

    /// Search for a merge partner in lists of the scheduler's own (kyber, none, ADIOS).
    fn bio_merge(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> BioMerge {
        BioMerge::UseElevator
    }
    /// A queued request that starts where `bio` ends.
    fn find_front(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> Option<RqId> {
        None
    }
    /// May this bio go into that request? Asked for the submitter, for every find outside the plug.
    fn allow_merge(&mut self, cx: &mut Cx, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
        true
    }
    /// `rq` grew by a bio and was not joined with a neighbour.
    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {}
    /// `kept` took over the bios of `gone`, which must be forgotten. `gone`'s fields are as before
    /// the join; `kept` has grown already.
    fn joined(&mut self, cx: &mut Cx, kept: RqId, gone: RqId);
    /// Neighbour before `rq`, as a candidate for joining.
    fn former(&mut self, cx: &Cx, rq: RqId) -> Option<RqId> {
        None
    }
    /// Neighbour behind `rq`.
    fn latter(&mut self, cx: &Cx, rq: RqId) -> Option<RqId> {
        None
    }

    /// Legacy: may a request be allocated for this bio? `ioc` is its context.
    fn may_queue(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> MayQueue {
        MayQueue::May
    }
    /// blk-mq: shallow depth for this bio's request; `None`: the whole pool.
    fn limit_depth(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> Option<u32> {
        None
    }
    /// `cx.queue.nr_requests` changed.
    fn depth_changed(&mut self, cx: &mut Cx) {}

    /// Private data for a new request (`set_req`, `prepare_request`).
    fn prepare(&mut self, cx: &mut Cx, rq: RqId) {}
    /// The request is about to be freed (`put_req`, `finish_request`).
    fn finish(&mut self, cx: &mut Cx, rq: RqId) {}
    /// The driver looks at it for the first time.
    fn activate(&mut self, cx: &mut Cx, rq: RqId) {}
    /// Undo `activate`: it comes back.
    fn deactivate(&mut self, cx: &mut Cx, rq: RqId) {}
    /// Done. `rq.start` and `rq.issue` tell the latencies; the scheduler still counts it.
    fn completed(&mut self, cx: &mut Cx, rq: RqId) {}
    /// blk-mq: the driver hands a started request back (bfq, kyber: as `finish`).
    fn requeued(&mut self, cx: &mut Cx, rq: RqId) {}

    /// A timer armed with [`Cx::arm`] or [`Cx::arm_jiffy`] fired.
    fn timer(&mut self, cx: &mut Cx, slot: u8) {}
    /// About an io context.
    fn ioc_event(&mut self, cx: &mut Cx, ioc: IocId, what: IocEvent) {}
    /// About a cgroup.
    fn cgroup_event(&mut self, cx: &mut Cx, cgroup: CgroupId, what: CgroupEvent) {}

    /// Its tunables, with the kernel's names, units and defaults.
    fn tunables(&self) -> &'static [Tunable] {
        &[]
    }
    /// Reads a tunable as sysfs would print it (without the newline); `None`: no such name.
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        None
    }
    /// Writes a tunable as sysfs would take it: parsing, clamping and rounding are the kernel's.
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        Err(StoreError::unknown(name))
    }

    /// Checks the specification's invariants; panics if one is broken. For tests and debug runs.
    fn check(&self, cx: &Cx) {}
    /// One line or a few about the state, for `explain`.
    fn state(&self, cx: &Cx, out: &mut String) {}
}
