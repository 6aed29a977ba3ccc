//! turns: tasks take turns by the time that the device takes for them, newcomers before all others;
//! buffered writes pay double, and are few in the device while others than their own task come.
//!
//! Each task with sync requests has a queue, all buffered writes (whatever is not sync) are one
//! more. A request is charged to its queue when it completes: the time since the completion before
//! it, or since its own issue if that was later. The charges of all add up to the time the device was
//! busy, so no model of the device is wanted: a seek costs what it took, and on flash a request costs
//! its part of the device. Until then its queue has paid what its requests cost of late. The queue
//! that has paid least goes next; one that slept is at most a slice behind the others, so that a
//! reader who thinks is served at once.
//!
//! A task is new until it has had newcomer_kb. A program that starts is through by then, one that
//! copies is not. Who is new goes before who is not, and if it reads, the device stands still for
//! the moments it thinks. Whoever has waited for fifo_expire gets a turn all the same.
//!
//! On a rotating disk a turn lasts a slice, and who reads on and comes back quickly is waited for. On
//! flash a turn is one request, and nobody is waited for but newcomers beside older tasks.
//!
//! Left out: priorities, cgroups, a queue for each CPU; discards are taken for buffered writes; a task
//! that has slept for long is not new again.

mod check;
mod choose;
mod rules;
mod tunables;

use crate::contract::{Insert, IocEvent, MergeKind, Scheduler};
use crate::cx::{Cx, Emit, Slot};
use crate::registry::{Layer, SchedulerInfo, Waiting, hash_always};
use crate::tunable::{StoreError, Tunable};
use seekwell_core::{
    Bio, Era, Instant, IocId, Links, List, Nanos, Nodes, RqId, Sector, Side, Tree,
};
use tunables::Values;

/// Registry line.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "turns",
    layer: Layer::Mq,
    versions: &[("1", Era::Mq)],
    summary: "turns by measured device time, newcomers first, few buffered writes beside others",
    history: "In no kernel: designed with `seekwell arena`; docs/ideas/turns.md tells on what, and \
              where it stands on what was held out.",
    not_when: "Bulk writes whose speed matters while others read, and services that must not stall while \
               programs start: a newcomer's first 64 MiB go before them.",
    source: "docs/ideas/turns.md",
    per_process: true,
    hash: hash_always,
    // fifo_expire_async, then one of them after each turn, a slice and the wait in it.
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

/// Ends the wait for a task.
const IDLE: Slot = Slot::new(0, "idle_timer");
/// The queue of all that is not sync; a task's is its context's number and one.
const ASYNC: u32 = 0;
/// Sectors from the end of one request to the start of the next that are no seek: 2 MiB.
const NEAR: u64 = 4096;
/// Who reads on: half of its last requests were near, of 256.
const SEQUENTIAL: u32 = 128;
/// Sync requests are taken to come for so long after the last.
const RECENT: Nanos = Nanos::from_ms(1000);
/// Where payments begin, ns: six days below it there is room for newcomers.
const ZERO_NS: u64 = 1 << 50;
/// What a request is taken to cost before one was measured, ns.
const UNMEASURED_NS: u64 = 500_000;

/// A task's requests, and what is known of it.
#[derive(Clone, Debug)]
struct Queue {
    sorted: Tree,
    fifo: List,
    in_device: u32,
    /// What it has paid, ns: who has paid least is next.
    served_ns: u64,
    /// What its requests cost of late, ns.
    cost_ns: u64,
    /// End of what was dispatched last, and of what came last.
    position: Sector,
    end: Sector,
    /// When it began to wait for a turn, or had its last.
    waits_since: Instant,
    /// `START`: nothing was completed yet.
    last_done: Instant,
    /// Mean time from a completion to the next request, ns.
    think_ns: u64,
    /// How many of its last requests were near, of 256.
    near: u32,
    last_read: bool,
    /// A newcomer, and what it has had, KiB.
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

/// Where a request is, and whose.
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
    /// What its queue has paid for it in advance, ns.
    paid_ns: u64,
}

/// The scheduler.
#[derive(Debug)]
pub struct Turns {
    queues: Side<Queue>,
    nodes: Nodes<Sector>,
    links: Links,
    rq: Side<Rq>,
    /// Given back, or at the head: before everything.
    head: List,
    /// Tasks with requests that are not in their turn, by what they have paid.
    waiting: Tree,
    turns: Nodes<u64>,
    /// The same by how long they have waited for a turn.
    line: List,
    places: Links,
    /// The task in its turn, and since when.
    current: Option<u32>,
    since: Instant,
    /// Nobody had a turn since an expired buffered write went.
    async_went: bool,
    /// The least that any task with requests has paid that is not new; it never falls.
    floor_ns: u64,
    /// When the last sync request came, whose it was, and when the last of anybody else.
    last_sync: Option<Instant>,
    sync_by: u32,
    other_sync: Option<Instant>,
    last_done: Instant,
    rotational: bool,
    values: Values,
}

impl Turns {
    /// Empty, with the defaults.
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
            // No credit reaches below zero.
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

    /// It is no longer in the device. Its queue pays what it took instead of what was guessed.
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

    /// A neighbour that does the same: one tree has all operations.
    fn beside(&self, cx: &Cx, rq: RqId, found: Option<u32>) -> Option<RqId> {
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
            // One long pause is soon forgotten.
            q.think_ns = (q.think_ns * 3 + thought.min(2 * idle)) / 4;
            if on {
                // The device stood still for it.
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
                // They were held back for it, and nobody else asks again.
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

    /// The window does what writeback throttling is for, and puts nobody to sleep for his own reads.
    fn wants_wbt(&self) -> bool {
        crate::wbt::wanted(INFO.name)
    }
    /// Readers find a tag, however many writes there are.
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
    /// What is waited for stays apart from what is not.
    fn allow_merge(&mut self, cx: &mut Cx, rq: RqId, bio: &Bio, _: IocId) -> bool {
        cx.rqs[rq].sync == bio.is_sync(cx.queue.era)
    }
    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {
        if let (MergeKind::Front, Place::Queue(i)) = (kind, self.rq.at(rq.idx()).place) {
            // It starts elsewhere now.
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
        self.beside(cx, rq, found)
    }
    fn latter(&mut self, cx: &Cx, rq: RqId) -> Option<RqId> {
        let found = self.sorted(rq).then(|| self.nodes.next(rq.0))?;
        self.beside(cx, rq, found)
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
