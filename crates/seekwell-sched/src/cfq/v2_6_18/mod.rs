//! CFQ of 2.6.18. Waiting queues are on one round-robin list per level. A read is sync; all writes
//! are async and use shared queues. A slice begins with the first dispatch round. A queue with
//! requests in the driver waits on a separate list. Only a read preempts, and only the IDLE class.
//! Bios of different processes can be merged.

mod lists;
mod serve;

use super::flat::Flat;
use super::sorted::NONE;
use super::{GRACE_TIMER, IDLE_TIMER, Version};
use crate::cfq::rules;
use crate::contract::{Insert, IocEvent, MayQueue, MergeKind, Scheduler};
use crate::cx::Cx;
use crate::tunable::{StoreError, Tunable};
use seekwell_core::{About, Bio, Class, IocId, Links, List, Op, RqId};

/// Lists 0 to 7 contain the waiting queues of one level each.
const LEVELS: usize = 8;
/// The list in service.
const CUR: u8 = 8;
/// The list of queues with requests in the driver.
const BUSY: u8 = 9;
/// The list of queues of the IDLE class.
const IDLE: u8 = 10;
const LISTS: usize = 11;

/// CFQ of 2.6.18.
#[derive(Debug)]
pub(super) struct Cfq18 {
    flat: Flat,
    lists: [List; LISTS],
    links: Links,
    /// Async queues; the newest is at the end.
    async_queues: Vec<u32>,
    /// First level of the current sweep over the levels.
    level: usize,
    /// Last level of the current sweep, inclusive.
    level_end: usize,
    /// Number of requests dispatched since the active queue became active.
    dispatch_slice: u64,
}

impl Cfq18 {
    /// Creates the scheduler with the kernel's defaults.
    pub fn new(cx: &Cx) -> Self {
        Cfq18 {
            flat: Flat::new(cx, Version::V2_6_18),
            lists: [List::new(); LISTS],
            links: Links::new(),
            async_queues: Vec::new(),
            level: 0,
            level_end: 0,
            dispatch_slice: 0,
        }
    }

    fn remove_request(&mut self, cx: &Cx, rq: RqId) {
        let q = self.flat.queue_of(rq);
        self.flat.remove_request(cx, rq);
        if self.flat.queue(q).busy && self.flat.queue(q).held.is_empty() {
            self.leave_list(q);
            self.flat.queue_mut(q).busy = false;
            self.flat.busy -= 1;
        }
    }

    /// `cfq_dispatch_insert`: moves `rq` to the dispatch list. The end of `rq` is where the next
    /// search starts.
    fn move_request(&mut self, cx: &mut Cx, rq: RqId) {
        let q = self.flat.queue_of(rq);
        let next = self.flat.find_next(cx, q, rq);
        self.flat.queue_mut(q).held.next = next;
        self.remove_request(cx, rq);
        self.flat.send(cx, rq);
        if let Some(tail) = cx.out.last() {
            self.flat.head = cx.rqs[tail].end();
        }
    }

    /// `cfq_add_rq_rb`: sorts a request into its queue. If a queued request has the same start
    /// sector, that request is dispatched at once.
    fn sort_in(&mut self, cx: &mut Cx, q: u32, rq: RqId) {
        let start = cx.rqs[rq].sector;
        while let Some(alias) = self
            .flat
            .tables
            .nodes
            .find(&self.flat.queue(q).held.sorted, start)
        {
            cx.why(rules::ALIAS_EVICTED, || {
                About::rq(RqId(alias)).says("a second request with its start sector dispatches it")
            });
            self.move_request(cx, RqId(alias));
        }
        let held = &mut self.flat.queues[q as usize].held;
        self.flat.tables.nodes.insert(&mut held.sorted, rq.0, start);
        if !self.flat.queue(q).busy {
            self.flat.queue_mut(q).busy = true;
            self.flat.busy += 1;
            self.resort(q, false);
        }
        let next = self.flat.choose(cx, self.flat.queue(q).held.next, Some(rq));
        self.flat.queue_mut(q).held.next = next;
    }

    fn apply_prio(&mut self, cx: &Cx, q: u32, ioc: IocId) {
        if self.flat.apply_prio(cx, q, ioc) && self.flat.queue(q).busy {
            self.resort(q, false);
        }
    }

    /// Returns true if the queue has the ioprio of the task, by the rules of the kernel's hash
    /// table of queues.
    fn fits(&self, cx: &Cx, q: u32, ioc: IocId) -> bool {
        let (x, want) = (self.flat.queue(q), cx.iocs.get(ioc).ioprio);
        want.class == Class::None || (want.class, want.level) == (x.class, x.level)
    }

    /// Returns the newest async queue with the ioprio of the task.
    fn find_async(&self, cx: &Cx, ioc: IocId) -> Option<u32> {
        let newest_first = self.async_queues.iter().rev().copied();
        newest_first.into_iter().find(|q| self.fits(cx, *q, ioc))
    }

    /// Returns the queue of a process and its ioprio.
    fn find_queue(&self, cx: &Cx, ioc: IocId, sync: bool) -> Option<u32> {
        if !sync {
            return self.find_async(cx, ioc);
        }
        self.flat
            .ctx
            .queue(ioc, true)
            .filter(|q| self.fits(cx, *q, ioc))
    }

    /// Returns the async queue for `ioc` and takes a reference. Creates the queue if there is none.
    fn async_queue(&mut self, cx: &Cx, ioc: IocId) -> u32 {
        let q = match self.find_async(cx, ioc) {
            Some(q) => q,
            None => {
                let q = self.flat.new_queue(cx, false, ioc);
                self.async_queues.push(q);
                q
            }
        };
        self.flat.queue_mut(q).refs += 1;
        q
    }

    fn put(&mut self, cx: &mut Cx, q: u32) {
        if !self.flat.unref(q) {
            return;
        }
        if self.flat.active == Some(q) {
            self.expire(cx, q, false);
        }
        self.async_queues.retain(|i| *i != q);
        self.flat.free(q);
    }
}

const fn is_sync(op: Op) -> bool {
    matches!(op, Op::Read)
}

impl Scheduler for Cfq18 {
    /// `cfq_insert_request`: adds a request to its queue and updates the statistics.
    fn insert(&mut self, cx: &mut Cx, rq: RqId, _: Insert) {
        let q = self.flat.queue_of(rq);
        let ioc = cx.rqs[rq].ioc;
        self.apply_prio(cx, q, ioc);
        self.sort_in(cx, q, rq);
        let held = &mut self.flat.queues[q as usize].held;
        self.flat.tables.links.push_back(&mut held.fifo, rq.0);
        let active = self.flat.active;
        if !is_sync(cx.rqs[rq].op) {
            if let Some(a) = active
                && self.flat.ctx.is_active(ioc)
                && cx.armed(IDLE_TIMER)
            {
                cx.why(rules::AWAITED_WRITES, || {
                    About::rq(rq).says("{who}, the awaited process, writes: the idle wait ends")
                });
                cx.disarm(IDLE_TIMER);
                self.expire(cx, a, false);
                cx.run_queue();
            }
            return;
        }
        self.flat.statistics(cx, rq, ioc);
        self.flat.update_idle_window(cx, q, ioc);
        let Some(a) = active else { return };
        if a == q {
            if self.flat.queue(q).wait_request {
                cx.why(rules::AWAITED_REQUEST, || {
                    self.flat
                        .about(q)
                        .with(rq)
                        .says("the awaited request of {who}: the idle wait ends")
                });
                self.flat.queue_mut(q).must_dispatch = true;
                cx.disarm(IDLE_TIMER);
                cx.run_queue();
            }
        } else if self.flat.queue(a).is_idle() && !self.flat.queue(q).is_idle() {
            cx.why(rules::PREEMPTION, || {
                self.flat.about(q).says("{who} preempts the IDLE class")
            });
            self.preempt(cx, a, q);
        }
    }
    fn dispatch(&mut self, cx: &mut Cx, _: u16, force: bool) -> u32 {
        match (self.flat.busy, force) {
            (0, _) => 0,
            (_, true) => self.drain(cx),
            (_, false) => self.dispatch_rounds(cx),
        }
    }
    fn has_work(&self, _: &Cx, _: u16) -> bool {
        self.flat.busy > 0
    }

    fn find_front(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> Option<RqId> {
        let q = self.find_queue(cx, ioc, is_sync(bio.op))?;
        let found = self
            .flat
            .tables
            .nodes
            .find(&self.flat.queue(q).held.sorted, bio.end())?;
        Some(RqId(found))
    }
    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {
        if kind == MergeKind::Front {
            let q = self.flat.queue_of(rq);
            let held = &mut self.flat.queues[q as usize].held;
            self.flat.tables.nodes.remove(&mut held.sorted, rq.0);
            self.sort_in(cx, q, rq);
        }
    }
    fn joined(&mut self, cx: &mut Cx, kept: RqId, gone: RqId) {
        let q = self.flat.queue_of(kept);
        if self.flat.queue(q).held.next == Some(gone) {
            self.flat.queue_mut(q).held.next = Some(kept);
        }
        self.remove_request(cx, gone);
    }
    fn former(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.flat.tables.nodes.prev(rq.0).map(RqId)
    }
    fn latter(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.flat.tables.nodes.next(rq.0).map(RqId)
    }

    fn may_queue(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> MayQueue {
        let Some(q) = self.find_queue(cx, ioc, is_sync(bio.op)) else {
            return MayQueue::May;
        };
        self.apply_prio(cx, q, ioc);
        self.flat.may_queue(q)
    }
    fn prepare(&mut self, cx: &mut Cx, rq: RqId) {
        let (ioc, sync) = (cx.rqs[rq].ioc, is_sync(cx.rqs[rq].op));
        self.flat.meet(cx, ioc);
        let q = match self.flat.ctx.queue(ioc, sync) {
            Some(q) => q,
            None => {
                let q = if sync {
                    let q = self.flat.new_queue(cx, true, ioc);
                    self.flat.queue_mut(q).refs += 1;
                    q
                } else {
                    self.async_queue(cx, ioc)
                };
                self.flat.ctx.at(ioc).queue[sync as usize] = q;
                q
            }
        };
        self.flat.own(rq, q);
    }
    fn finish(&mut self, cx: &mut Cx, rq: RqId) {
        if let Some(q) = self.flat.disown(rq) {
            self.put(cx, q);
        }
    }
    fn activate(&mut self, _: &mut Cx, _: RqId) {
        self.flat.activate();
    }
    fn deactivate(&mut self, _: &mut Cx, _: RqId) {
        self.flat.in_driver -= 1;
    }

    /// `cfq_completed_request`: updates the state after request `rq` completed.
    fn completed(&mut self, cx: &mut Cx, rq: RqId) {
        let now = cx.jiffies();
        let q = self.flat.queue_of(rq);
        let (ioc, sync) = (cx.rqs[rq].ioc, is_sync(cx.rqs[rq].op));
        self.flat.in_driver -= 1;
        let x = self.flat.queue_mut(q);
        x.dispatched -= 1;
        let again = x.dispatched == 0 && x.busy;
        if again {
            x.served = now;
        }
        if !x.is_idle() {
            self.flat.last_end_any = now;
        }
        self.flat.sync_flight -= u32::from(self.flat.queue(q).sync);
        if again {
            self.resort(q, false);
        }
        if sync {
            self.flat.ctx.at(ioc).think.last_end = now;
        }
        if self.flat.active == Some(q) {
            let x = self.flat.queue(q);
            if now > x.slice_end {
                self.expire(cx, q, false);
            } else if sync && x.held.is_empty() && !self.flat.arm(cx, q) {
                self.flat.kick(cx);
            }
        }
    }

    fn timer(&mut self, cx: &mut Cx, slot: u8) {
        match slot {
            _ if slot == GRACE_TIMER => self.grace_timer(cx),
            _ => self.idle_timer(cx),
        }
    }
    fn ioc_event(&mut self, cx: &mut Cx, ioc: IocId, what: IocEvent) {
        match what {
            IocEvent::Attach => self.flat.ctx.attach(ioc),
            IocEvent::Release => self.flat.ctx.release(ioc),
            // The async queue changes at once, the sync queue at the next request.
            IocEvent::Prio => {
                if let Some(old) = self.flat.ctx.queue(ioc, false) {
                    self.flat.ctx.at(ioc).queue[0] = self.async_queue(cx, ioc);
                    self.put(cx, old);
                }
                if let Some(q) = self.flat.ctx.queue(ioc, true) {
                    self.flat.queue_mut(q).prio_changed = true;
                }
            }
            IocEvent::Exit => {
                for kind in [0, 1] {
                    let q = std::mem::replace(&mut self.flat.ctx.at(ioc).queue[kind], NONE);
                    if q == NONE {
                        continue;
                    }
                    if self.flat.active == Some(q) {
                        cx.why(rules::PROCESS_EXITED, || {
                            self.flat
                                .about(q)
                                .says("{who} of the active queue has exited")
                        });
                        self.expire(cx, q, false);
                    }
                    self.put(cx, q);
                }
            }
            IocEvent::Cgroup => {}
        }
    }

    fn tunables(&self) -> &'static [Tunable] {
        self.flat.set.tunables()
    }
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        self.flat.set.show(cx, name)
    }
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        self.flat.set.store(cx, name, text)
    }
    fn check(&self, cx: &Cx) {
        self.flat.check(cx);
        for (l, list) in self.lists.iter().enumerate() {
            for q in self.links.iter(list) {
                assert_eq!(
                    self.flat.queue(q).list,
                    Some(l as u8),
                    "cfq: queue {q} on list {l}"
                );
                assert!(
                    self.flat.queue(q).busy,
                    "cfq: a queue without requests is on list {l}"
                );
            }
        }
        let listed: usize = self.lists.iter().map(List::len).sum();
        assert_eq!(
            listed, self.flat.busy as usize,
            "cfq: queues with requests are on lists"
        );
        assert!(
            self.level <= self.level_end && self.level_end < LEVELS,
            "cfq: level sweep"
        );
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        self.flat.describe(cx, out);
    }
}
