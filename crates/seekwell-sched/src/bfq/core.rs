//! Code that single-queue and multi-queue BFQ share: queues, groups, counts of busy queues,
//! budgets, references.
//!
//! A variant ([`Variant`]) adds its own fields to a queue and to a process, and defines how many
//! sectors a request costs. The shared code is in this file, in [`super::queue`] (order of the
//! requests inside a queue), in [`super::coop`] (partners for merges, bursts) and in
//! [`super::tree`] (B-WF2Q+).

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

/// Budget of a slot, in sectors, before the speed of the device is known.
pub const DEFAULT_MAX_BUDGET: u64 = 16 * 1024;
/// The tuned budget is used after this number of slots. (The number is a running average, so that
/// 194 is reached after 11 slots.)
pub const MIN_ASSIGNED: u32 = 194;
/// Requests at most this many sectors apart belong to one stream.
pub const CLOSE: u64 = 8192;
/// Rate in sectors per second up to which a queue can count as soft real-time.
pub const SOFTRT_RATE: u64 = 7000;
/// A time in jiffies that is later than all others. It means "never".
pub const NEVER_J: u64 = u64::MAX / 2;

/// State of BFQ on one device that both variants use.
#[derive(Debug)]
pub struct Core<X: Variant> {
    /// Entities and service trees.
    pub wf: Wf2q,
    /// All queues, by [`QId`].
    pub queues: Vec<Queue<X>>,
    free: Vec<QId>,
    /// Queues freed since the variant last processed this list.
    pub freed: Vec<QId>,
    pub(super) info: Side<RqInfo>,
    pub(super) sort: Nodes<Sector>,
    pub(super) fifo: Links,
    pub(super) pos: Nodes<Sector>,
    /// All groups, by [`GroupId`].
    pub groups: Vec<Group>,
    /// Processes, indexed by io context.
    pub procs: Side<Proc<X::Proc>>,
    /// Queues of the current burst of creations.
    pub(super) burst: List,
    pub(super) burst_links: Links,
    /// The queue in service.
    pub serving: Option<QId>,
    /// Number of busy queues in each class.
    pub busy: [u32; 3],
    /// Number of busy queues that are raised. In v7 it can become negative, because of a defect of
    /// the original when 0 is written to low_latency.
    pub wr_busy: i64,
    /// `[0]`: number of queues that are busy or have requests in the driver. `[1]`: how many of
    /// these queues are constantly seeky (v7 only).
    pub engaged: [u32; 2],
    /// Number of groups with at least one queue that is busy or has requests in the driver.
    pub groups_pending: u32,
    /// Number of queued requests.
    pub queued: u32,
    /// Number of requests in the driver.
    pub in_driver: u32,
    /// End sector of the last request given to the device.
    pub last_position: Sector,
    /// True if queues are sorted by the position of their next request, to find close queues.
    pub use_pos: bool,
    /// Running average of the number of times a queue was selected; it stays below 256.
    pub budgets_assigned: u32,
    /// Tuned maximum budget, in sectors.
    pub tuned_budget: u64,
    /// Value of the tunable max_budget; 0: BFQ computes the maximum budget.
    pub user_budget: u64,
    /// Value of the tunable back_seek_max, in KiB.
    pub back_seek_max: u64,
    /// Value of the tunable back_seek_penalty.
    pub back_seek_penalty: u64,
    /// Value of the tunable low_latency.
    pub low_latency: bool,
    /// Whether the device queues commands: -1 unknown, 0 no, 1 yes.
    pub hw_tag: i8,
    /// Number of samples taken for the next decision about `hw_tag`.
    pub hw_tag_samples: u32,
    /// Largest number of requests that were in the driver at once since the last decision about
    /// `hw_tag`.
    pub max_in_driver: u32,
    /// True if the current burst of creations is large.
    pub large_burst: bool,
    /// Number of queues in the current burst of creations.
    pub burst_size: u32,
    /// The jiffy of the last creation that the current burst counts.
    pub last_in_burst_j: u64,
    /// Group of the queues in the current burst.
    pub burst_group: GroupId,
}

/// Returns the class and the level of an effective priority.
pub fn class_of(p: IoPrio) -> (ClassIdx, u8) {
    match p.class {
        Class::Rt => (0, p.level),
        Class::Be => (BE, p.level),
        Class::Idle => (IDLE, 7),
        Class::None => (BE, 4),
    }
}

impl<X: Variant> Core<X> {
    /// Returns the state for a new device, without queues.
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
    /// Returns a reference to queue `q` and its owner, for the text of a decision.
    pub fn about(&self, q: QId) -> About {
        About::queue(q, self.queue(q).pid)
    }

    /// Returns queue `q`.
    #[inline]
    pub fn queue(&self, q: QId) -> &Queue<X> {
        &self.queues[q as usize]
    }
    /// Returns queue `q`, mutable.
    #[inline]
    pub fn queue_mut(&mut self, q: QId) -> &mut Queue<X> {
        &mut self.queues[q as usize]
    }
    /// Returns the entity of queue `q`.
    #[inline]
    pub fn ent(&self, q: QId) -> &Entity {
        self.wf.entity(self.queue(q).ent)
    }
    /// Returns the entity of queue `q`, mutable.
    #[inline]
    pub fn ent_mut(&mut self, q: QId) -> &mut Entity {
        let e = self.queue(q).ent;
        self.wf.entity_mut(e)
    }
    /// Returns the queue that request `rq` refers to.
    #[inline]
    pub fn queue_of(&self, rq: RqId) -> Option<QId> {
        self.info.try_get(rq.idx()).and_then(|i| i.queue)
    }
    /// Returns the number of busy queues in all classes.
    #[inline]
    pub fn busy_total(&self) -> u32 {
        self.busy.iter().sum()
    }
    /// Returns true if the weight of the queue is raised.
    #[inline]
    pub fn raised(&self, q: QId) -> bool {
        self.ent(q).raised()
    }
    /// Returns true if the queue is on the list of active queues or on the list of idle queues. A
    /// queue in service is on neither list, and nor is an idle queue that was forgotten. A write of
    /// 0 to `low_latency` visits only these two lists, so that on Linux 6.18 the other queues stay
    /// raised.
    pub fn on_a_list(&self, q: QId) -> bool {
        self.queue(q).live && self.ent(q).set != Set::None
    }
    /// Returns the class of the queue that is in force.
    #[inline]
    pub fn class(&self, q: QId) -> ClassIdx {
        self.ent(q).class
    }
    /// Returns true if the queue holds no request.
    #[inline]
    pub fn empty(&self, q: QId) -> bool {
        self.queue(q).sort.is_empty()
    }
    /// Returns the number of sectors that queue `q` is charged for request `rq`.
    #[inline]
    pub fn charge(&self, cx: &Cx, q: QId, rq: RqId) -> u64 {
        X::charge(self, cx, q, rq)
    }

    /// `bfq_max_budget`: returns the tuned maximum budget, in sectors. Returns the default until
    /// enough budgets were assigned.
    #[inline]
    pub fn max_budget(&self) -> u64 {
        if self.budgets_assigned < MIN_ASSIGNED {
            DEFAULT_MAX_BUDGET
        } else {
            self.tuned_budget
        }
    }
    /// `bfq_min_budget`: returns the minimum budget, a 32nd of the maximum.
    #[inline]
    pub fn min_budget(&self) -> u64 {
        self.max_budget() / 32
    }
    /// Counts one selection of a queue in the running average.
    #[inline]
    pub fn count_assignment(&mut self) {
        self.budgets_assigned = (self.budgets_assigned * 7 + 256) / 8;
    }

    /// Creates a queue and sets the fields that both variants share.
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
    /// Returns the async queue of a group for a priority. At the first call `make` creates it.
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
    /// Sets the class and level that the process requests; they take effect at the next activation.
    pub fn set_prio(&mut self, q: QId, prio: IoPrio) {
        let (class, level) = class_of(prio);
        let e = self.ent_mut(q);
        e.new_class = class;
        e.new_weight = X::weight_of(level);
        e.changed = true;
    }
    /// Records that request `rq` refers to queue `q`.
    pub fn bind(&mut self, rq: RqId, q: QId) {
        self.info.at(rq.idx()).queue = Some(q);
        self.count_requests(q, 1);
    }
    /// Removes the reference of request `rq` to its queue.
    pub fn unbind(&mut self, rq: RqId) {
        if let Some(q) = self.info.at(rq.idx()).queue.take() {
            self.unbind_from(q);
        }
    }
    /// Removes one reference to `q`, because the request now refers to another queue.
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
    /// Moves a queue to another group. The entity of the queue must be in no tree.
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
    /// `bfq_put_queue`: frees queue `q` if nothing refers to it.
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
    /// Frees the queues whose entities left all service trees.
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
    /// `bfq_add_bfqq_busy`: makes queue `q` busy: activates its entity and updates the counters.
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
    /// `bfq_del_bfqq_busy`: makes queue `q` not busy. `expiring` is true at the end of its slot.
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
    /// Updates the counters for a queue that is not busy and has no request in the driver.
    pub fn at_rest(&mut self, q: QId) {
        let e = self.queue(q).ent;
        self.wf.uncount(e);
        self.engage(q, -1);
    }
    /// `bfq_requeue_bfqq`: inserts a queue that has requests into its service tree again.
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
    /// Sets the raising coefficient. The change takes effect at the next activation or requeue.
    pub fn set_coeff(&mut self, q: QId, coeff: u64) {
        let e = self.ent_mut(q);
        e.coeff = coeff;
        e.changed = true;
    }

    /// `bfq_updated_next_req`: changes the budget of a waiting queue so that its next request fits.
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

    /// Checks the invariants of queues and counters, and of the code that both variants share.
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

/// Converts milliseconds to jiffies; the result is at least 1.
pub fn jiffies_min_1(clock: TickClock, ms: u64) -> u64 {
    clock.from_ms(ms).max(1)
}

/// Number of fraction bits of a rate in sectors per microsecond.
pub const RATE_SHIFT: u32 = 16;

/// Returns the number of sectors transferred in `ms` milliseconds at `rate`.
pub fn sectors_in(rate: u64, ms: u64) -> u64 {
    ((u128::from(rate) * 1000 * u128::from(ms)) >> RATE_SHIFT) as u64
}
