//! Code shared by single-queue and multi-queue BFQ: queues, groups, busy counts, budgets,
//! references.
//!
//! A variant ([`Variant`]) adds its own fields to a queue and to a process, and defines the cost of
//! a request. Code that is the same in both is here, in [`super::queue`] (order inside a queue),
//! [`super::coop`] (partners for merging, bursts) and [`super::tree`] (B-WF2Q+).

use super::entity::{BE, ClassIdx, Entity, IDLE, Set};
use super::parts::RqInfo;
pub use super::parts::{Group, Proc, Queue, Reason, Variant};
use super::tree::{ROOT, Wf2q};
use crate::cx::Cx;
use seekwell_core::{
    About, CgroupId, Class, IoPrio, Links, List, Nodes, RqId, Sector, Side, TickClock,
};

/// Index of a queue.
pub type QId = u32;
/// Index of a group; 0 is the root.
pub type GroupId = u32;

/// Budget in sectors while the speed of the device is unknown.
pub const DEFAULT_MAX_BUDGET: u64 = 16 * 1024;
/// Number of slots (as a running average) after which the tuned budget is used.
pub const MIN_ASSIGNED: u32 = 194;
/// Requests within this distance, in sectors, belong to one stream.
pub const CLOSE: u64 = 8192;
/// A raised real-time queue may transfer up to this many sectors per second and still be soft
/// real-time.
pub const SOFTRT_RATE: u64 = 7000;
/// "Never", for times in jiffies that must compare as later than all others.
pub const NEVER_J: u64 = u64::MAX / 2;

/// State of a device under BFQ, as shared by both variants.
#[derive(Debug)]
pub struct Core<X: Variant> {
    /// Entities and their trees.
    pub wf: Wf2q,
    /// Queues.
    pub queues: Vec<Queue<X>>,
    free: Vec<QId>,
    /// Queues freed since the variant last checked.
    pub freed: Vec<QId>,
    pub(super) info: Side<RqInfo>,
    pub(super) sort: Nodes<Sector>,
    pub(super) fifo: Links,
    pub(super) pos: Nodes<Sector>,
    /// Groups; 0 is the root.
    pub groups: Vec<Group>,
    /// Processes, indexed by io context.
    pub procs: Side<Proc<X::Proc>>,
    /// Queues in a burst of creations.
    pub(super) burst: List,
    pub(super) burst_links: Links,
    /// The queue in service.
    pub serving: Option<QId>,
    /// Number of busy queues by class.
    pub busy: [u32; 3],
    /// Number of busy raised queues; v7 can make it negative (a quirk of writing 0 to low_latency).
    pub wr_busy: i64,
    /// Number of queues that are busy or have requests in the driver, and of those that are
    /// constantly seeky.
    pub engaged: [u32; 2],
    /// Number of groups with such queues.
    pub groups_pending: u32,
    /// Number of queued requests.
    pub queued: u32,
    /// Number of requests in the driver.
    pub in_driver: u32,
    /// End of the last request given to the device.
    pub last_position: Sector,
    /// Whether queues are looked up by position.
    pub use_pos: bool,
    /// Running average of the number of selections, up to 256.
    pub budgets_assigned: u32,
    /// M: the tuned maximum budget, sectors.
    pub tuned_budget: u64,
    /// max_budget as set by the user; 0 means automatic.
    pub user_budget: u64,
    /// back_seek_max, KiB.
    pub back_seek_max: u64,
    /// back_seek_penalty.
    pub back_seek_penalty: u64,
    /// low_latency.
    pub low_latency: bool,
    /// Whether the device queues: -1 unknown, 0 no, 1 yes.
    pub hw_tag: i8,
    /// Number of samples for this verdict.
    pub hw_tag_samples: u32,
    /// The largest number of requests in the driver so far.
    pub max_in_driver: u32,
    /// Whether the current burst of creations is large.
    pub large_burst: bool,
    /// Number of queues in the current burst.
    pub burst_size: u32,
    /// Time of the last creation counted in a burst.
    pub last_in_burst_j: u64,
    /// Group of the burst.
    pub burst_group: GroupId,
}

/// Class and level of an effective priority.
pub fn class_of(p: IoPrio) -> (ClassIdx, u8) {
    match p.class {
        Class::Rt => (0, p.level),
        Class::Be => (BE, p.level),
        Class::Idle => (IDLE, 7),
        Class::None => (BE, 4),
    }
}

impl<X: Variant> Core<X> {
    /// A fresh device.
    pub fn new(cx: &Cx) -> Self {
        Core {
            wf: Wf2q::new(X::MQ, cx.jiffies(), cx.hz()),
            queues: Vec::new(),
            free: Vec::new(),
            freed: Vec::new(),
            info: Side::new(),
            sort: Nodes::new(),
            fifo: Links::new(),
            pos: Nodes::new(),
            groups: vec![Group::new(CgroupId::ROOT, None, ROOT)],
            procs: Side::new(),
            burst: List::new(),
            burst_links: Links::new(),
            serving: None,
            busy: [0; 3],
            wr_busy: 0,
            engaged: [0; 2],
            groups_pending: 0,
            queued: 0,
            in_driver: 0,
            last_position: Sector(0),
            use_pos: true,
            budgets_assigned: 0,
            tuned_budget: DEFAULT_MAX_BUDGET,
            user_budget: 0,
            back_seek_max: 16 * 1024,
            back_seek_penalty: 2,
            low_latency: true,
            hw_tag: -1,
            hw_tag_samples: 0,
            max_in_driver: 0,
            large_burst: false,
            burst_size: 0,
            last_in_burst_j: 0,
            burst_group: 0,
        }
    }
    /// A queue and its owner, for reasons.
    pub fn of(&self, q: QId) -> About {
        About::queue(q, self.queue(q).pid)
    }

    /// A queue.
    #[inline]
    pub fn queue(&self, q: QId) -> &Queue<X> {
        &self.queues[q as usize]
    }
    /// A queue, mutable.
    #[inline]
    pub fn queue_mut(&mut self, q: QId) -> &mut Queue<X> {
        &mut self.queues[q as usize]
    }
    /// The entity of a queue.
    #[inline]
    pub fn ent(&self, q: QId) -> &Entity {
        self.wf.entity(self.queue(q).ent)
    }
    /// The entity of a queue, mutable.
    #[inline]
    pub fn ent_mut(&mut self, q: QId) -> &mut Entity {
        let e = self.queue(q).ent;
        self.wf.entity_mut(e)
    }
    /// Queue of a request.
    #[inline]
    pub fn queue_of(&self, rq: RqId) -> Option<QId> {
        self.info.try_get(rq.idx()).and_then(|i| i.queue)
    }
    /// Number of busy queues.
    #[inline]
    pub fn busy_total(&self) -> u32 {
        self.busy.iter().sum()
    }
    /// Whether the queue is raised.
    #[inline]
    pub fn raised(&self, q: QId) -> bool {
        self.ent(q).raised()
    }
    /// Whether the queue is on the list of active or of idle queues. A queue in service is on
    /// neither list; nor is an idle queue that was forgotten. Writing 0 to `low_latency` walks only
    /// these lists: on Linux 6.18 the other queues stay raised.
    pub fn on_a_list(&self, q: QId) -> bool {
        self.queue(q).live && self.ent(q).set != Set::None
    }
    /// The class in force.
    #[inline]
    pub fn class(&self, q: QId) -> ClassIdx {
        self.ent(q).class
    }
    /// Whether no request is queued.
    #[inline]
    pub fn empty(&self, q: QId) -> bool {
        self.queue(q).sort.is_empty()
    }
    /// The cost of a request for its queue.
    #[inline]
    pub fn charge(&self, cx: &Cx, q: QId, rq: RqId) -> u64 {
        X::charge(self, cx, q, rq)
    }

    /// `bfq_max_budget`: the tuned maximum is used once enough budgets were assigned.
    #[inline]
    pub fn max_budget(&self) -> u64 {
        if self.budgets_assigned < MIN_ASSIGNED {
            DEFAULT_MAX_BUDGET
        } else {
            self.tuned_budget
        }
    }
    /// `bfq_min_budget`: a 32nd of the maximum.
    #[inline]
    pub fn min_budget(&self) -> u64 {
        self.max_budget() / 32
    }
    /// Counts a selection.
    #[inline]
    pub fn count_assignment(&mut self) {
        self.budgets_assigned = (self.budgets_assigned * 7 + 256) / 8;
    }

    /// Creates a queue, with the fields that both variants share.
    pub fn create(&mut self, group: GroupId, prio: IoPrio, sync: bool, x: X) -> QId {
        let (class, level) = class_of(prio);
        let node = self.groups[group as usize].node;
        let ent = self.wf.add_entity(node, class, X::weight_of(level));
        let q = Queue {
            live: true,
            ent,
            group,
            sync,
            busy_class: class,
            io_bound: true,
            max_budget: 2 * self.max_budget() / 3,
            own: x,
            ..Queue::default()
        };
        let id = match self.free.pop() {
            Some(i) => {
                self.queues[i as usize] = q;
                i
            }
            None => {
                self.queues.push(q);
                (self.queues.len() - 1) as QId
            }
        };
        self.wf.entity_mut(ent).queue = Some(id);
        id
    }
    /// The async queue of a group for a priority; `make` creates it at the first call.
    pub fn async_queue(
        &mut self,
        group: GroupId,
        prio: IoPrio,
        make: impl FnOnce(&mut Self) -> QId,
    ) -> QId {
        let (class, level) = class_of(prio);
        let slot = match class {
            0 => usize::from(level),
            BE => 8 + usize::from(level),
            _ => 16,
        };
        if let Some(q) = self.groups[group as usize].asyncs[slot] {
            return q;
        }
        let q = make(self);
        self.queue_mut(q).pinned = true;
        self.groups[group as usize].asyncs[slot] = Some(q);
        q
    }
    /// Sets the class and level that the process requests.
    pub fn set_prio(&mut self, q: QId, prio: IoPrio) {
        let (class, level) = class_of(prio);
        let e = self.ent_mut(q);
        e.new_class = class;
        e.new_weight = X::weight_of(level);
        e.changed = true;
    }
    /// Records that a request refers to a queue.
    pub fn bind(&mut self, rq: RqId, q: QId) {
        self.info.at(rq.idx()).queue = Some(q);
        self.count_requests(q, 1);
    }
    /// Removes the reference of a request to its queue.
    pub fn unbind(&mut self, rq: RqId) {
        if let Some(q) = self.info.at(rq.idx()).queue.take() {
            self.unbind_from(q);
        }
    }
    /// Removes one reference to `q`; its request refers to another queue.
    pub fn unbind_from(&mut self, q: QId) {
        self.count_requests(q, -1);
        self.free_if_unused(q);
    }
    fn count_requests(&mut self, q: QId, by: i32) {
        let mut at = Some(self.queue(q).ent);
        while let Some(e) = at {
            let x = self.wf.entity_mut(e);
            x.allocated = x.allocated.wrapping_add_signed(by);
            at = self.wf.parent(e);
        }
    }
    /// Moves a queue whose entity is in no tree to another group.
    pub fn change_group(&mut self, q: QId, to: GroupId, engaged: bool) {
        let n = self.ent(q).allocated as i32;
        self.count_requests(q, -n);
        if engaged {
            self.engage(q, -1);
        }
        self.queue_mut(q).group = to;
        let node = self.groups[to as usize].node;
        self.ent_mut(q).node = node;
        if engaged {
            self.engage(q, 1);
        }
        self.count_requests(q, n);
    }
    /// `bfq_put_queue`: frees a queue without references.
    pub fn free_if_unused(&mut self, q: QId) {
        let x = self.queue(q);
        let used = !x.live
            || x.procs > 0
            || self.wf.entity(x.ent).allocated > 0
            || x.pinned
            || x.stable_refs > 0
            || self.serving == Some(q)
            || self.wf.entity(x.ent).on_tree;
        if used {
            return;
        }
        let e = x.ent;
        self.pos_remove(q);
        self.burst_remove(q);
        self.wf.uncount(e);
        self.wf.free_entity(e);
        self.queue_mut(q).live = false;
        self.free.push(q);
        self.freed.push(q);
    }
    /// Frees queues whose entities were forgotten.
    #[inline]
    pub fn reap(&mut self) {
        while let Some(e) = self.wf.forgotten.pop() {
            if let Some(q) = self.wf.entity(e).queue {
                self.free_if_unused(q);
            }
        }
    }

    fn engage(&mut self, q: QId, by: i32) {
        let seeky = self.queue(q).own.constantly_seeky();
        self.engaged[0] = self.engaged[0].wrapping_add_signed(by);
        if seeky {
            self.engaged[1] = self.engaged[1].wrapping_add_signed(by);
        }
        let g = &mut self.groups[self.queues[q as usize].group as usize];
        let before = g.pending;
        g.pending = before.wrapping_add_signed(by);
        if before == 0 || g.pending == 0 {
            self.groups_pending = self.groups_pending.wrapping_add_signed(by);
        }
    }
    /// `bfq_add_bfqq_busy`: a queue becomes busy: activates it and updates the counters.
    pub fn add_busy(&mut self, q: QId, backshift: bool, j: u64) {
        let e = self.queue(q).ent;
        self.wf.activate(e, backshift, false, false, j);
        let class = self.wf.entity(e).class;
        let raised = self.wf.entity(e).raised();
        let x = self.queue_mut(q);
        x.busy = true;
        x.busy_class = class;
        let at_rest = x.dispatched == 0;
        self.busy[usize::from(class)] += 1;
        if at_rest {
            if !raised {
                self.wf.count(e);
            }
            self.engage(q, 1);
        }
        if raised {
            self.wr_busy += 1;
        }
    }
    /// `bfq_del_bfqq_busy`: a queue stops being busy. `expiring`: at the end of its slot.
    pub fn del_busy(&mut self, q: QId, expiring: bool, j: u64) {
        let x = self.queue_mut(q);
        x.busy = false;
        let (e, class, at_rest) = (x.ent, x.busy_class, x.dispatched == 0);
        self.busy[usize::from(class)] -= 1;
        if self.wf.entity(e).raised() {
            self.wr_busy -= 1;
        }
        self.wf.deactivate(e, true, expiring, j);
        if at_rest {
            self.at_rest(q);
        }
    }
    /// The queue is neither busy nor has requests in the driver.
    pub fn at_rest(&mut self, q: QId) {
        let e = self.queue(q).ent;
        self.wf.uncount(e);
        self.engage(q, -1);
    }
    /// `bfq_requeue_bfqq`: inserts a backlogged queue again.
    pub fn requeue(&mut self, q: QId, expiring: bool, j: u64) {
        let e = self.queue(q).ent;
        let leaves = self.serving == Some(q) && X::MQ;
        self.wf.activate(e, false, leaves, expiring, j);
        let class = self.wf.entity(e).class;
        let x = self.queue_mut(q);
        let old = std::mem::replace(&mut x.busy_class, class);
        if old != class && self.queues[q as usize].busy {
            self.busy[usize::from(old)] -= 1;
            self.busy[usize::from(class)] += 1;
        }
    }
    /// Starts, changes or ends raising; takes effect at the next activation or requeue.
    pub fn set_coeff(&mut self, q: QId, coeff: u64) {
        let e = self.ent_mut(q);
        e.coeff = coeff;
        e.changed = true;
    }

    /// `bfq_updated_next_req`: adapts a waiting queue's budget to its next request.
    pub fn fit_budget(&mut self, cx: &Cx, q: QId) {
        let Some(next) = self.queue(q).next else {
            return;
        };
        if self.serving == Some(q) {
            return;
        }
        let mut b = self.queue(q).max_budget.max(self.charge(cx, q, next));
        if X::MQ {
            b = b.max(self.ent(q).service);
        }
        if self.ent(q).budget != b {
            self.ent_mut(q).budget = b;
            self.requeue(q, false, cx.jiffies());
        }
    }

    /// Checks the invariants of queues and counts, and of the parts that both variants share.
    pub fn check(&self, cx: &Cx) {
        self.wf.check();
        let live = || self.queues.iter().filter(|q| q.live);
        let sum = |f: &dyn Fn(&Queue<X>) -> u32| live().map(f).sum::<u32>();
        assert_eq!(self.queued, sum(&|q| q.queued[0] + q.queued[1]), "queued");
        assert_eq!(
            self.busy_total(),
            sum(&|q| u32::from(q.busy)),
            "busy queues"
        );
        for (i, q) in self.queues.iter().enumerate().filter(|q| q.1.live) {
            let n = (q.queued[0] + q.queued[1]) as usize;
            assert_eq!(q.sort.len(), n, "queue {i}: tree and count");
            assert_eq!(q.fifo.len(), n, "queue {i}: fifo and count");
            assert_eq!(q.next.is_some(), n > 0, "queue {i}: next");
            assert!(
                q.busy || n == 0,
                "queue {i} holds requests, yet is not busy"
            );
            if let Some(next) = q.next {
                assert_eq!(self.queue_of(next), Some(i as QId), "next is its own");
                assert_eq!(self.sort.key(next.0), cx.rqs[next].sector, "key of next");
            }
            if let Some(to) = q.redirect
                && q.procs > 0
            {
                let t = self.queue(to);
                let enough = t.live && t.procs >= q.procs && to != i as QId;
                assert!(enough, "queue {i} leads to queue {to}, which expects fewer");
            }
        }
        if let Some(q) = self.serving {
            assert!(self.queue(q).live, "P1: the queue in service exists");
            assert!(
                self.wf.serving(self.queue(q).ent),
                "P1: its entity is served"
            );
        }
    }
}

/// Milliseconds converted to jiffies, at least one.
pub fn jiffies_min_1(clock: TickClock, ms: u64) -> u64 {
    clock.from_ms(ms).max(1)
}

/// Number of fraction bits of a rate in sectors/us.
pub const RATE_SHIFT: u32 = 16;

/// Number of sectors transferred in `ms` at a rate.
pub fn sectors_in(rate: u64, ms: u64) -> u64 {
    ((u128::from(rate) * 1000 * u128::from(ms)) >> RATE_SHIFT) as u64
}
