//! The data that BFQ stores for a queue, a group, a process and a request. [`Variant`] lists the
//! parts that each kernel variant adds.

use super::core::{Core, GroupId, QId};
use super::entity::{ClassIdx, EntId};
use crate::cx::Cx;
use seekwell_core::{CgroupId, IocId, List, RqId, Sector, TaskId, Tree};

/// The reason why a queue leaves service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The device idled for the queue, but no request arrived.
    TooIdle,
    /// The time of the slot is used up.
    Timeout,
    /// The budget of the queue is used up.
    Exhausted,
    /// The queue is empty and the device does not idle for it.
    NoMore,
    /// Another queue preempted this queue (mq only).
    Preempted,
}

impl Reason {
    /// Returns the name of the reason as the specification writes it.
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

/// The parts that a kernel variant adds.
pub trait Variant: Default + Clone + std::fmt::Debug + Send {
    /// True for multi-queue BFQ (in the kernel), false for v7.
    const MQ: bool;
    /// The variant's data per process.
    type Proc: Default + Clone + std::fmt::Debug + Send;
    /// Returns the number of sectors that queue `q` is charged for request `rq`.
    fn charge(core: &Core<Self>, cx: &Cx, q: QId, rq: RqId) -> u64;
    /// Returns true if the queue counts as constantly seeky (v7 only).
    fn constantly_seeky(&self) -> bool {
        false
    }
    /// Returns the weight of a priority level without raising.
    fn weight_of(level: u8) -> u64;
}

/// A queue of requests. A sync queue belongs to one process, or to several processes that were
/// merged. An async queue belongs to all processes with the same priority.
#[derive(Clone, Debug, Default)]
pub struct Queue<X> {
    /// True while this entry of the table is in use.
    pub live: bool,
    /// Entity of the queue in the service trees.
    pub ent: EntId,
    /// Group that contains the queue.
    pub group: GroupId,
    /// True for sync requests, false for async requests.
    pub sync: bool,
    /// Queued requests, sorted by start sector.
    pub sort: Tree,
    /// Queued requests, in order of arrival.
    pub fifo: List,
    /// Request that the queue dispatches next.
    pub next: Option<RqId>,
    /// Number of queued requests: `[async, sync]`.
    pub queued: [u32; 2],
    /// Number of requests of the queue that are in the driver.
    pub dispatched: u32,
    /// Number of processes that use the queue, plus those that a planned merge will move to it.
    pub procs: u32,
    /// True for async queues, which are never freed.
    pub pinned: bool,
    /// Number of processes that remember the queue for a delayed stable merge (mq only).
    pub stable_refs: u32,
    /// The process whose requests the queue holds, if there is only one.
    pub owner: Option<IocId>,
    /// The process for which the queue was created (`bfqq->pid`). `None` for an async queue, and
    /// after other processes joined the queue.
    pub pid: Option<TaskId>,
    /// The queue that the processes of this queue will use after a planned merge.
    pub redirect: Option<QId>,
    /// True if several processes use the queue or used it earlier.
    pub shared: bool,
    /// True if the shared queue is seeky, so that its processes get separate queues again.
    pub split: bool,
    /// True if the queue has requests to schedule, or is treated as if it had.
    pub busy: bool,
    /// The class under which the queue is counted as busy.
    pub busy_class: ClassIdx,
    /// True while the device idles for the queue.
    pub waiting: bool,
    /// True if the FIFO was already checked in this slot.
    pub fifo_checked: bool,
    /// True if the process spends most of its time waiting for its own I/O.
    pub io_bound: bool,
    /// True if the think time of the process is short (v7: the idle window).
    pub short_think: bool,
    /// True if the soft real-time test must be computed at a later completion.
    pub softrt_update: bool,
    /// True if the queue was created or activated in a large burst.
    pub in_large_burst: bool,
    /// Number of sectors that the queue may be served in one slot.
    pub max_budget: u64,
    /// End sector of the last request that was inserted.
    pub last_request_pos: Sector,
    /// The jiffy at which the slot ends. Out of service: the jiffy at which the queue became empty.
    pub budget_timeout_j: u64,
    /// The jiffy of the last change from idle to busy.
    pub last_idle_backlogged_j: u64,
    /// Number of sectors served since the last change from idle to busy.
    pub service_from_backlogged: u64,
    /// A request that arrives after this jiffy makes the queue soft real-time again.
    pub soft_rt_next_start_j: u64,
    /// The jiffy at which the raising began. While the queue is not raised: the jiffy of its last
    /// request.
    pub last_wr_j: u64,
    /// Length of the raising period, in jiffies.
    pub wr_max_j: u64,
    /// During a soft real-time period: the jiffy at which the interactive period began (mq only).
    pub wr_switch_j: u64,
    /// Fields that only this variant uses.
    pub own: X,
}

/// A cgroup that contains queues and has its own service trees.
#[derive(Clone, Debug)]
pub struct Group {
    /// Id of the cgroup.
    pub cgroup: CgroupId,
    /// Entity of the group in its parent; `None` for the root.
    pub ent: Option<EntId>,
    /// Node that holds the service trees inside the group.
    pub node: u32,
    /// Async queues: 8 RT levels, 8 BE levels, one for the IDLE class.
    pub asyncs: [Option<QId>; 17],
    /// Queues, sorted by the start sector of their next request.
    pub pos: Tree,
    /// The queue that was created last (for stable merges, mq only).
    pub last_created: Option<QId>,
    /// Number of queues that have requests, queued or in the driver.
    pub pending: u32,
}

/// Data of a process: its queues, and the data of the variant.
#[derive(Clone, Debug, Default)]
pub struct Proc<P> {
    /// Queues of the process: `[async, sync]`.
    pub queues: [Option<QId>; 2],
    /// Generation of the last priority change that BFQ noticed.
    pub prio_gen: u32,
    /// Fields that only this variant uses.
    pub own: P,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RqInfo {
    pub queue: Option<QId>,
    /// Time at which the request expires: in jiffies (v7) or in nanoseconds (mq).
    pub fifo_at: u64,
}

impl Group {
    /// Returns an empty group with its entity and the node inside the group.
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
