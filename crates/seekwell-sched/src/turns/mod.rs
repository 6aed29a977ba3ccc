//! turns: each task gets turns, and each turn is charged the device time that it used. New tasks go
//! before all others. Buffered writes are charged double. The device holds few buffered writes
//! while tasks other than the writer issue requests.
//!
//! Each task with sync requests has its own queue. All buffered writes (all requests that are not
//! sync) share one more queue. When a request completes, its queue is charged the time since the
//! previous completion, or since the issue of the request if that was later. The charges add up to
//! the time that the device was busy, so no model of the device is needed. A seek costs the time it
//! took, and on flash a request costs its fraction of the device. Until a request completes, its
//! queue is charged an estimate, namely its recent mean cost. The queue that was charged least goes
//! next. A queue that slept gets a credit of at most one slice, so that a reader with a long think
//! time is served at once.
//!
//! A task is *new* until it has read and written newcomer_kb. A program that starts has finished
//! reading by then; a program that copies files has not. New tasks go before others. While a new
//! task that reads is thinking, the device idles for a short time. A task that has waited for
//! fifo_expire_sync gets a turn in any case.
//!
//! On a rotating disk a turn lasts one slice. The device idles for a task that reads sequentially
//! and that issues its next request soon after a completion. On flash a turn is one request. There
//! the device idles only for a new task, and only if no other new task waits.
//!
//! Priorities, cgroups and one queue per CPU are not modelled. Discards are treated as buffered
//! writes. A task does not become new again, even after a long sleep.

mod check;
mod choose;
mod rules;
#[cfg(test)]
mod tests;
mod tunables;

use crate::contract::{Insert, IocEvent, MergeKind, Scheduler};
use crate::cx::{Cx, Emit, Slot};
use crate::info::{Layer, SchedulerInfo, Waiting, hash_always};
use crate::tunable::{StoreError, Tunable};
use seekwell_core::{
    Bio, Era, Instant, IocId, Links, List, Nanos, Nodes, RqId, Sector, Side, Tree,
};
use tunables::Values;

/// Registry entry of turns.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "turns",
    layer: Layer::Mq,
    versions: &[("1", Era::Mq)],
    summary: "turns by measured device time, new tasks first, few buffered writes in the device",
    history: "In no kernel: designed with `seekwell arena`; docs/ideas/turns.md gives the \
              workloads and the held-out results.",
    not_when: "Bulk writes that must be fast while other tasks read. Services that must not stall \
               while programs start, because the first 64 MiB of a new task go before their \
               requests.",
    source: "docs/ideas/turns.md",
    per_process: true,
    hash: hash_always,
    // The bound is fifo_expire_async. After that time, one buffered write goes after each turn,
    // which lasts a slice and an idle wait.
    waiting: Waiting {
        fixed_ms: 5500,
        requests: 8,
        per_task_ms: 400,
        per_task_requests: 8,
        writes_before_read: 16,
        except: &[],
    },
    rules: rules::RULES,
    tunables: |_| tunables::TUNABLES,
    make: |cx, _| Box::new(Turns::new(cx)),
};

/// Timer slot of the idle wait for a task.
const IDLE: Slot = Slot::new(0, "idle_timer");
/// Index of the queue of all requests that are not sync. The index of a task's queue is the number
/// of its io context plus one.
const ASYNC: u32 = 0;
/// A request is near if it starts at most this many sectors (2 MiB) from the end of the previous
/// request of its queue.
const NEAR: u64 = 4096;
/// A task reads sequentially if at least this fraction (half) of its recent requests were near. 256
/// means all.
const SEQUENTIAL: u32 = 128;
/// Sync requests count as recent for this long after the last one.
const RECENT: Nanos = Nanos::from_ms(1000);
/// Initial charge of a queue, ns. The keys below it (six days of device time) are for new tasks.
const ZERO_NS: u64 = 1 << 50;
/// Estimated cost of a request before a cost was measured, ns.
const UNMEASURED_NS: u64 = 500_000;

/// The queue of a task: its requests and statistics.
#[derive(Clone, Debug)]
struct Queue {
    sorted: Tree,
    fifo: List,
    in_device: u32,
    /// Device time that the queue was charged, ns. The queue that was charged least is next.
    served_ns: u64,
    /// Recent mean cost of a request of the queue, ns.
    cost_ns: u64,
    /// End sector of the last request dispatched (`position`) and of the last request inserted
    /// (`end`).
    position: Sector,
    end: Sector,
    /// Start of the wait for a turn, or the time at which the last request was dispatched.
    waits_since: Instant,
    /// Time of the last completion; `START` if nothing has completed.
    last_done: Instant,
    /// Mean time from a completion to the next request, ns.
    think_ns: u64,
    /// Decaying fraction of the task's requests that were near; 256 means all.
    near: u32,
    last_read: bool,
    /// True if the task is new (`new`), and the amount that it has read and written (`had_kb`),
    /// KiB.
    new: bool,
    had_kb: u64,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            sorted: Tree::new(),
            fifo: List::new(),
            in_device: 0,
            served_ns: 0,
            cost_ns: UNMEASURED_NS,
            position: Sector(0),
            end: Sector(0),
            waits_since: Instant::START,
            last_done: Instant::START,
            think_ns: 0,
            near: 0,
            last_read: false,
            new: false,
            had_kb: 0,
        }
    }
}

/// The place of a request, with the index of its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    Head,
    Queue(u32),
    Device(u32),
}

/// Data of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Rq {
    place: Place,
    /// Time that the queue was charged in advance for the request, ns.
    paid_ns: u64,
}

/// The scheduler turns.
#[derive(Debug)]
pub struct Turns {
    queues: Side<Queue>,
    nodes: Nodes<Sector>,
    links: Links,
    rq: Side<Rq>,
    /// Requests that were returned or inserted at the head. They go before all others.
    head: List,
    /// Tasks that have requests and wait for a turn, sorted by key.
    waiting: Tree,
    turns: Nodes<u64>,
    /// The same tasks, sorted by the time that they have waited for a turn.
    line: List,
    places: Links,
    /// The task that has the turn (`current`), and the start of the turn (`since`).
    current: Option<u32>,
    since: Instant,
    /// True if no task has had a turn since an expired buffered write was dispatched.
    async_went: bool,
    /// Smallest charge of a task that has requests and is not new, ns. The value never decreases.
    floor_ns: u64,
    /// Arrival of the last sync request (`last_sync`), the queue of that request (`sync_by`), and
    /// the arrival of the last sync request of another task (`other_sync`).
    last_sync: Option<Instant>,
    sync_by: u32,
    other_sync: Option<Instant>,
    last_done: Instant,
    rotational: bool,
    values: Values,
}

impl Turns {
    /// Creates the scheduler with the default tunables.
    pub fn new(cx: &Cx) -> Self {
        Turns {
            queues: Side::new(),
            nodes: Nodes::new(),
            links: Links::new(),
            rq: Side::new(),
            head: List::new(),
            waiting: Tree::new(),
            turns: Nodes::new(),
            line: List::new(),
            places: Links::new(),
            current: None,
            since: cx.now(),
            async_went: false,
            // The initial value is so high that no credit makes it negative.
            floor_ns: ZERO_NS + (1 << 40),
            last_sync: None,
            sync_by: ASYNC,
            other_sync: None,
            last_done: Instant::START,
            rotational: cx.queue.rotational,
            values: Values::default(),
        }
    }

    fn queue(&mut self, i: u32) -> &mut Queue {
        self.queues.at(i as usize)
    }
    fn all(&self) -> impl Iterator<Item = (u32, &Queue)> {
        (0..).map_while(|i| Some((i, self.queues.try_get(i as usize)?)))
    }
    fn price(&self, i: u32) -> u64 {
        if i == ASYNC {
            self.values.async_cost()
        } else {
            1
        }
    }

    fn forget(&mut self, rq: RqId) {
        let own = self.rq.at(rq.idx());
        match std::mem::take(&mut own.place) {
            Place::Head => self.links.remove(&mut self.head, rq.0),
            Place::Queue(i) => {
                let q = self.queues.at(i as usize);
                self.links.remove(&mut q.fifo, rq.0);
                self.nodes.remove(&mut q.sorted, rq.0);
                if q.fifo.is_empty() && i != ASYNC && self.current != Some(i) {
                    self.leave_line(i);
                }
            }
            Place::Device(_) | Place::Outside => {}
        }
    }

    /// Handles a request that left the device. Charges its queue the measured time instead of the
    /// estimate. Returns the queue.
    fn leaves(&mut self, rq: RqId, took_ns: u64) -> Option<u32> {
        let own = self.rq.at(rq.idx());
        let Place::Device(i) = own.place else {
            return None;
        };
        own.place = Place::Outside;
        let paid = own.paid_ns;
        let price = self.price(i);
        let q = self.queues.at(i as usize);
        q.in_device -= 1;
        q.served_ns = (q.served_ns + took_ns * price).saturating_sub(paid * price);
        self.sort_again(i);
        Some(i)
    }

    /// Returns a neighbour only if it has the same operation, because one tree contains all
    /// operations.
    fn same_op(&self, cx: &Cx, rq: RqId, found: Option<u32>) -> Option<RqId> {
        found.map(RqId).filter(|n| cx.rqs[*n].op == cx.rqs[rq].op)
    }
    fn sorted(&self, rq: RqId) -> bool {
        let own = self.rq.try_get(rq.idx());
        own.is_some_and(|r| matches!(r.place, Place::Queue(_)))
    }

    fn queue_of(ioc: IocId, sync: bool) -> u32 {
        if sync { ioc.idx() as u32 + 1 } else { ASYNC }
    }
}

impl Scheduler for Turns {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        if how != Insert::Sorted {
            self.rq.at(rq.idx()).place = Place::Head;
            self.links.push_front(&mut self.head, rq.0);
            return;
        }
        let (now, r) = (cx.now(), &cx.rqs[rq]);
        let i = Self::queue_of(r.ioc, r.sync);
        self.rq.at(rq.idx()).place = Place::Queue(i);
        if i != ASYNC {
            if i != self.sync_by {
                self.other_sync = self.last_sync;
                self.sync_by = i;
            }
            self.last_sync = Some(now);
        }
        let idle = self.values.idle_ns();
        let on = self.current == Some(i);
        let q = self.queues.at(i as usize);
        let empty = q.fifo.is_empty();
        let mut thought = 0;
        if empty && q.in_device == 0 && q.last_done != Instant::START {
            thought = now.since(q.last_done).0;
            // The cap lets the mean recover quickly after one long pause.
            q.think_ns = (q.think_ns * 3 + thought.min(2 * idle)) / 4;
            if on {
                // The device idled for this task.
                q.served_ns += thought.min(idle);
            }
        }
        let near = u32::from(q.end.distance(r.sector) <= NEAR);
        q.near = (q.near * 3 + near * 256) / 4;
        q.end = r.end();
        self.nodes.insert(&mut q.sorted, rq.0, r.sector);
        self.links.push_back(&mut q.fifo, rq.0);
        if empty {
            self.wakes(i, thought, now);
        }
    }

    fn dispatch(&mut self, cx: &mut Cx, _: u16, force: bool) -> u32 {
        if let Some(rq) = self.links.pop_front(&mut self.head) {
            self.rq.at(rq as usize).place = Place::Outside;
            cx.emit(RqId(rq), Emit::Tail);
            return 1;
        }
        let Some(i) = self.choose(cx, force) else {
            return 0;
        };
        let Some(rq) = self.take(cx, i) else { return 0 };
        self.forget(rq);
        let paid_ns = self.pays(cx, i, rq);
        *self.rq.at(rq.idx()) = Rq {
            place: Place::Device(i),
            paid_ns,
        };
        cx.emit(rq, Emit::Tail);
        1
    }

    fn has_work(&self, _: &Cx, _: u16) -> bool {
        let some = |i: u32| {
            let q = self.queues.try_get(i as usize);
            q.is_some_and(|q| !q.fifo.is_empty())
        };
        !self.head.is_empty()
            || !self.waiting.is_empty()
            || some(ASYNC)
            || self.current.is_some_and(some)
    }

    fn completed(&mut self, cx: &mut Cx, rq: RqId) {
        let now = cx.now();
        let took = now.since(self.last_done.max(cx.rqs[rq].issue)).0;
        self.last_done = now;
        if let Some(i) = self.leaves(rq, took) {
            let on = self.current == Some(i);
            let q = self.queue(i);
            q.last_done = now;
            q.cost_ns = (q.cost_ns * 7 + took) / 8;
            let idle = q.fifo.is_empty() && q.in_device == 0;
            if on && idle && (!self.line.is_empty() || !self.queue(ASYNC).fifo.is_empty()) {
                // Other requests were delayed for this task, and no other event would run the
                // queue.
                cx.kick();
            }
        }
    }
    fn requeued(&mut self, _: &mut Cx, rq: RqId) {
        self.leaves(rq, 0);
    }
    fn finish(&mut self, _: &mut Cx, rq: RqId) {
        self.leaves(rq, 0);
    }
    fn timer(&mut self, cx: &mut Cx, _: u8) {
        cx.kick();
    }
    fn ioc_event(&mut self, _: &mut Cx, ioc: IocId, what: IocEvent) {
        let i = Self::queue_of(ioc, true);
        if what == IocEvent::Attach {
            let new = self.values.newcomer_kb() > 0;
            *self.queue(i) = Queue {
                new,
                ..Queue::default()
            };
        } else if what == IocEvent::Release && self.current == Some(i) {
            self.current = None;
        }
    }

    /// Returns false: the window replaces writeback throttling. With the throttling, a task could
    /// sleep because of its own reads.
    fn wants_wbt(&self) -> bool {
        crate::wbt::wanted(INFO.name)
    }
    /// Limits async requests to three quarters of the tags, so that tags are left for readers.
    fn limit_depth(&mut self, cx: &mut Cx, bio: &Bio, _: IocId) -> Option<u32> {
        let most = (cx.queue.nr_requests * 3 / 4).max(1);
        (!bio.is_sync(cx.queue.era)).then_some(most)
    }

    fn find_front(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> Option<RqId> {
        let i = Self::queue_of(ioc, bio.is_sync(cx.queue.era));
        let found = self
            .nodes
            .find(&self.queues.at(i as usize).sorted, bio.end());
        found.map(RqId).filter(|rq| cx.rqs[*rq].op == bio.op)
    }
    /// Returns true if bio and request are both sync or both async.
    fn allow_merge(&mut self, cx: &mut Cx, rq: RqId, bio: &Bio, _: IocId) -> bool {
        cx.rqs[rq].sync == bio.is_sync(cx.queue.era)
    }
    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {
        if let (MergeKind::Front, Place::Queue(i)) = (kind, self.rq.at(rq.idx()).place) {
            // The start sector of the request has changed.
            let q = self.queues.at(i as usize);
            self.nodes.remove(&mut q.sorted, rq.0);
            self.nodes.insert(&mut q.sorted, rq.0, cx.rqs[rq].sector);
        }
    }
    fn joined(&mut self, _: &mut Cx, _: RqId, gone: RqId) {
        self.forget(gone);
    }
    fn former(&mut self, cx: &Cx, rq: RqId) -> Option<RqId> {
        let found = self.sorted(rq).then(|| self.nodes.prev(rq.0))?;
        self.same_op(cx, rq, found)
    }
    fn latter(&mut self, cx: &Cx, rq: RqId) -> Option<RqId> {
        let found = self.sorted(rq).then(|| self.nodes.next(rq.0))?;
        self.same_op(cx, rq, found)
    }

    fn tunables(&self) -> &'static [Tunable] {
        tunables::TUNABLES
    }
    fn show(&self, _: &Cx, name: &str) -> Option<String> {
        self.values.show(name)
    }
    fn store(&mut self, _: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        self.values.store(name, text)
    }

    fn check(&self, cx: &Cx) {
        self.check_all(cx);
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        self.tell(cx, out);
    }
}
