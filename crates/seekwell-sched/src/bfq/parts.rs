//! The data of a queue, a group, a process and a request, and the parts that a variant adds.

use super::core::{Core, GroupId, QId};
use super::entity::{ClassIdx, EntId};
use crate::cx::Cx;
use seekwell_core::{CgroupId, IocId, List, RqId, Sector, TaskId, Tree};

/// Why a queue leaves service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The device idled for it in vain.
    TooIdle,
    /// Its time is used up.
    Timeout,
    /// Its budget is used up.
    Exhausted,
    /// It is empty and the device does not wait for it.
    NoMore,
    /// A more important queue became busy (mq).
    Preempted,
}

impl Reason {
    /// The name in the specification.
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
    /// Whether this is in-tree multi-queue BFQ.
    const MQ: bool;
    /// The variant's data per process.
    type Proc: Default + Clone + std::fmt::Debug + Send;
    /// Number of sectors charged for a request.
    fn charge(core: &Core<Self>, cx: &Cx, q: QId, rq: RqId) -> u64;
    /// Whether it counts as constantly seeky (v7).
    fn constantly_seeky(&self) -> bool {
        false
    }
    /// The weight of a level without raising.
    fn weight_of(level: u8) -> u64;
}

/// A queue of requests: of one process (sync), of several merged processes, or of all processes
/// with the same priority (async).
#[derive(Clone, Debug, Default)]
pub struct Queue<X> {
    /// In use.
    pub live: bool,
    /// Its entity.
    pub ent: EntId,
    /// Group it belongs to.
    pub group: GroupId,
    /// Whether it holds sync requests.
    pub sync: bool,
    /// Requests sorted by sector.
    pub sort: Tree,
    /// Requests in order of arrival.
    pub fifo: List,
    /// The best request to serve next.
    pub next: Option<RqId>,
    /// Number of queued requests: async, sync.
    pub queued: [u32; 2],
    /// Number of requests in the driver.
    pub dispatched: u32,
    /// Number of processes that use it or are due to move to it by a planned merge.
    pub procs: u32,
    /// Never freed (async queues).
    pub pinned: bool,
    /// Number of references of delayed stable merges (mq).
    pub stable_refs: u32,
    /// The one process whose requests it holds.
    pub owner: Option<IocId>,
    /// The process it was created for (`bfqq->pid`); `None` for an async queue, or after other
    /// processes joined.
    pub pid: Option<TaskId>,
    /// The queue to which its processes are due to move.
    pub redirect: Option<QId>,
    /// Several processes use or used it.
    pub shared: bool,
    /// Shared and seeky: the processes get their own queues back.
    pub split: bool,
    /// Has, or is treated as having, requests to schedule.
    pub busy: bool,
    /// The class in which it is counted as busy.
    pub busy_class: ClassIdx,
    /// The device idles for it.
    pub waiting: bool,
    /// The FIFO check of this slot is done.
    pub fifo_checked: bool,
    /// Spends most of its time waiting for its own I/O.
    pub io_bound: bool,
    /// Its think time is short (v7: idle window).
    pub short_think: bool,
    /// Marked for a later soft real-time computation.
    pub softrt_update: bool,
    /// Part of a large burst of new queues.
    pub in_large_burst: bool,
    /// Number of sectors it may be served in a slot.
    pub max_budget: u64,
    /// End of the last request inserted.
    pub last_request_pos: Sector,
    /// End of the slot; while not in service, the time at which it became empty.
    pub budget_timeout_j: u64,
    /// When it last changed from idle to busy.
    pub last_idle_backlogged_j: u64,
    /// Sectors served since then.
    pub service_from_backlogged: u64,
    /// It becomes soft real-time again if a request arrives after this jiffy.
    pub soft_rt_next_start_j: u64,
    /// Start of the raising period; while not raised, the time of the last request.
    pub last_wr_j: u64,
    /// Length of the raising period in jiffies.
    pub wr_max_j: u64,
    /// For a soft real-time period, when the interactive period began (mq).
    pub wr_switch_j: u64,
    /// The variant's fields.
    pub own: X,
}

/// A cgroup with its own service trees.
#[derive(Clone, Debug)]
pub struct Group {
    /// The cgroup.
    pub cgroup: CgroupId,
    /// Its entity; `None` for the root.
    pub ent: Option<EntId>,
    /// The node inside it.
    pub node: u32,
    /// Async queues: RT levels, BE levels, IDLE.
    pub asyncs: [Option<QId>; 17],
    /// Queues sorted by the position of their next request.
    pub pos: Tree,
    /// The queue created last (stable merges, mq).
    pub last_created: Option<QId>,
    /// Number of queues with requests, queued or in the driver.
    pub pending: u32,
}

/// Queues of a process, and the variant's data.
#[derive(Clone, Debug, Default)]
pub struct Proc<P> {
    /// The async and the sync queue.
    pub queues: [Option<QId>; 2],
    /// Generation of the last priority change seen.
    pub prio_gen: u32,
    /// The variant's fields.
    pub own: P,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RqInfo {
    pub queue: Option<QId>,
    /// Time in the FIFO: jiffies (v7) or nanoseconds (mq).
    pub fifo_at: u64,
}

impl Group {
    /// A group with its entity and the node inside it.
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
