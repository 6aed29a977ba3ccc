//! What there is of a queue, a group, a process and a request, and what a variant adds.

use super::core::{Core, GroupId, QId};
use super::entity::{ClassIdx, EntId};
use crate::cx::Cx;
use seekwell_core::{CgroupId, IocId, List, RqId, Sector, TaskId, Tree};

/// Why a queue leaves service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It was idled for, in vain.
    TooIdle,
    /// Its time is up.
    Timeout,
    /// Its budget is up.
    Exhausted,
    /// It is empty and not worth waiting for.
    NoMore,
    /// A more important queue became busy (mq).
    Preempted,
}

impl Reason {
    /// The specification's word.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::TooIdle => "TOO_IDLE",
            Reason::Timeout => "TIMEOUT",
            Reason::Exhausted => "EXHAUSTED",
            Reason::NoMore => "NO_MORE",
            Reason::Preempted => "PREEMPTED",
        }
    }
}

/// What a kernel variant adds.
pub trait Variant: Default + Clone + std::fmt::Debug + Send {
    /// In-tree multi-queue BFQ?
    const MQ: bool;
    /// Its data per process.
    type Proc: Default + Clone + std::fmt::Debug + Send;
    /// Sectors a request is charged.
    fn charge(core: &Core<Self>, cx: &Cx, q: QId, rq: RqId) -> u64;
    /// May it be deemed constantly seeky (v7)?
    fn constantly_seeky(&self) -> bool {
        false
    }
    /// Weight of a level without raising.
    fn weight_of(level: u8) -> u64;
}

/// A queue of requests: of a process (sync), of several merged ones, or of everybody with the same
/// priority (async).
#[derive(Clone, Debug, Default)]
pub struct Queue<X> {
    /// In use.
    pub live: bool,
    /// Its entity.
    pub ent: EntId,
    /// Group it belongs to.
    pub group: GroupId,
    /// Sync requests?
    pub sync: bool,
    /// Requests by sector.
    pub sort: Tree,
    /// Requests by arrival.
    pub fifo: List,
    /// Best request to serve next.
    pub next: Option<RqId>,
    /// Requests queued: async, sync.
    pub queued: [u32; 2],
    /// Requests in the driver.
    pub dispatched: u32,
    /// Processes that use it, and those that are to follow a merge arranged for them.
    pub procs: u32,
    /// Kept for ever (async queues).
    pub pinned: bool,
    /// References of delayed stable merges (mq).
    pub stable_refs: u32,
    /// The one process whose requests it holds.
    pub owner: Option<IocId>,
    /// The process it was made for (`bfqq->pid`); none of an async one, or once others joined.
    pub pid: Option<TaskId>,
    /// Queue into which its processes are to go.
    pub redirect: Option<QId>,
    /// Several processes use or used it.
    pub shared: bool,
    /// Shared and seeky: processes get their own queues back.
    pub split: bool,
    /// Has, or is treated as having, requests to schedule.
    pub busy: bool,
    /// Class it is counted busy in.
    pub busy_class: ClassIdx,
    /// Idled for.
    pub waiting: bool,
    /// The FIFO check of this slot is done.
    pub fifo_checked: bool,
    /// Spends most of its time waiting for its own I/O.
    pub io_bound: bool,
    /// Thinks shortly (v7: idle window).
    pub short_think: bool,
    /// Marked for a later soft-real-time computation.
    pub softrt_update: bool,
    /// Part of a large burst of new queues.
    pub in_large_burst: bool,
    /// Sectors it may be served in a slot.
    pub max_budget: u64,
    /// End of the request inserted last.
    pub last_request_pos: Sector,
    /// End of the slot; while not in service: when it became empty.
    pub budget_timeout_j: u64,
    /// When it last turned from idle to busy.
    pub last_idle_backlogged_j: u64,
    /// Sectors since then.
    pub service_from_backlogged: u64,
    /// Soft real-time again if a request comes after this.
    pub soft_rt_next_start_j: u64,
    /// Start of the raising period, or time of the last request while not raised.
    pub last_wr_j: u64,
    /// Length of the raising period, jiffies.
    pub wr_max_j: u64,
    /// Soft real-time periods remember when the interactive one began (mq).
    pub wr_switch_j: u64,
    /// The variant's own.
    pub own: X,
}

/// A cgroup with its own service trees.
#[derive(Clone, Debug)]
pub struct Group {
    /// The cgroup.
    pub cgroup: CgroupId,
    /// Its entity; `None`: the root.
    pub ent: Option<EntId>,
    /// Its inside.
    pub node: u32,
    /// Async queues: RT levels, BE levels, IDLE.
    pub asyncs: [Option<QId>; 17],
    /// Queues by position of their next request.
    pub pos: Tree,
    /// Queue created last (stable merges, mq).
    pub last_created: Option<QId>,
    /// Queues with requests, queued or in the driver.
    pub pending: u32,
}

/// Queues of a process, and the variant's data.
#[derive(Clone, Debug, Default)]
pub struct Proc<P> {
    /// Async and sync queue.
    pub queues: [Option<QId>; 2],
    /// Change of priority last seen.
    pub prio_gen: u32,
    /// The variant's own.
    pub own: P,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RqInfo {
    pub queue: Option<QId>,
    /// Jiffies (v7) or nanoseconds (mq).
    pub fifo_at: u64,
}

impl Group {
    /// A group with its entity and its inside.
    pub fn new(cgroup: CgroupId, ent: Option<EntId>, node: u32) -> Self {
        Group {
            cgroup,
            ent,
            node,
            asyncs: [None; 17],
            pos: Tree::new(),
            last_created: None,
            pending: 0,
        }
    }
}
