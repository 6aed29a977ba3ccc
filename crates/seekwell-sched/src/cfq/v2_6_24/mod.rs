//! CFQ of 2.6.24 and 2.6.25. One tree contains the queues that hold requests, sorted by class (RT,
//! BE, IDLE) and then by key. There are no groups, no workloads and no cooperating queues. A
//! dispatch round takes several requests, and sync preempts async. The two versions differ only in
//! the IDLE class. 2.6.24 serves it a tenth of a second after the last completion of another class
//! (the *grace* period). 2.6.25 serves it when no other queue waits.

mod serve;

use super::flat::Flat;
use super::queue::{ASYNC_QUEUES, async_slot};
use super::sorted::NONE;
use super::{GRACE_TIMER, IDLE_TIMER, Version};
use crate::cfq::rules;
use crate::contract::{Insert, IocEvent, MayQueue, MergeKind, Scheduler};
use crate::cx::Cx;
use crate::tunable::{StoreError, Tunable};
use seekwell_core::{About, Bio, Class, Flags, IoPrio, IocId, Nodes, RqId, Tree};

/// Sort key of a queue in the tree: rank of the class, then key.
type Key = (u8, u64);

/// CFQ of 2.6.24 and 2.6.25.
#[derive(Debug)]
pub(super) struct Cfq24 {
    flat: Flat,
    version: Version,
    tree: Tree,
    nodes: Nodes<Key>,
    async_queues: [Option<u32>; ASYNC_QUEUES],
}

const fn rank(class: Class) -> u8 {
    match class {
        Class::Rt => 0,
        Class::Be | Class::None => 1,
        Class::Idle => 2,
    }
}

impl Cfq24 {
    /// Creates the scheduler with the kernel's defaults.
    pub fn new(cx: &Cx, version: Version) -> Self {
        let mut flat = Flat::new(cx, version);
        flat.last_end_any = cx.jiffies();
        Cfq24 {
            flat,
            version,
            tree: Tree::new(),
            nodes: Nodes::new(),
            async_queues: [None; ASYNC_QUEUES],
        }
    }

    fn grace(&self) -> bool {
        self.version == Version::V2_6_24
    }

    /// `cfq_service_tree_add`: inserts a queue with requests at its key. With `front`, inserts it
    /// before all other queues of its class.
    fn resort(&mut self, cx: &Cx, q: u32, front: bool) {
        let x = self.flat.queue(q);
        let now = cx.jiffies();
        let key = if x.is_idle() && !self.grace() {
            let last = self.nodes.last(&self.tree).filter(|l| *l != q);
            last.map_or(now, |l| self.nodes.key(l).1) + cx.hz() / 5
        } else if front {
            0
        } else {
            // 32-bit arithmetic: if an async slice is longer than the longest sync slice, the
            // offset wraps around and moves its queue to the far end.
            let longest = self.flat.set.prio_slice_j(true, 0) as u32;
            let own = self.flat.set.prio_slice_j(x.sync, x.level) as u32;
            let offset = (self.flat.busy - 1).wrapping_mul(longest.wrapping_sub(own));
            let resid = std::mem::take(&mut self.flat.queue_mut(q).slice_resid);
            (now + u64::from(offset)).wrapping_add_signed(resid)
        };
        let key = (rank(self.flat.queue(q).class), key);
        if self.nodes.linked(q) {
            if self.nodes.key(q).1 == key.1 {
                return;
            }
            self.nodes.remove(&mut self.tree, q);
        }
        self.nodes.insert(&mut self.tree, q, key);
    }

    /// `cfq_del_cfqq_rr`: removes a queue without requests from the tree.
    fn rest(&mut self, q: u32) {
        self.nodes.remove(&mut self.tree, q);
        self.flat.queue_mut(q).busy = false;
        self.flat.busy -= 1;
    }

    fn remove_request(&mut self, cx: &Cx, rq: RqId) {
        let q = self.flat.queue_of(rq);
        self.flat.remove_request(cx, rq);
        if self.flat.queue(q).busy && self.flat.queue(q).held.is_empty() {
            self.rest(q);
        }
    }

    /// `cfq_dispatch_insert`: moves `rq` from its queue to the dispatch list.
    fn move_request(&mut self, cx: &mut Cx, rq: RqId) {
        self.remove_request(cx, rq);
        self.flat.send(cx, rq);
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
            self.resort(cx, q, false);
        }
        let next = self.flat.choose(cx, self.flat.queue(q).held.next, Some(rq));
        self.flat.queue_mut(q).held.next = next;
    }

    /// Reads the class and level of `q`, if they changed. A queue in the tree keeps its place.
    fn apply_prio(&mut self, cx: &Cx, q: u32, ioc: IocId) {
        if self.flat.apply_prio(cx, q, ioc) && self.nodes.linked(q) {
            let key = self.nodes.key(q).1;
            self.nodes.set_key(q, (rank(self.flat.queue(q).class), key));
        }
    }

    /// Returns the shared async queue for `ioc` and takes a reference.
    fn async_queue(&mut self, cx: &Cx, ioc: IocId) -> u32 {
        let prio = match cx.iocs.get(ioc).ioprio {
            p if p.class == Class::None => IoPrio::be(4),
            p => p,
        };
        let slot = async_slot(prio);
        let q = match (self.async_queues[slot], self.flat.ctx.queue(ioc, false)) {
            (Some(q), _) => q,
            // The table entry is empty: store the queue that the context already has.
            (None, Some(old)) => old,
            (None, None) => self.flat.new_queue(cx, false, ioc),
        };
        if self.async_queues[slot].is_none() {
            self.async_queues[slot] = Some(q);
            self.flat.queue_mut(q).refs += 1;
        }
        self.flat.queue_mut(q).refs += 1;
        q
    }

    fn notice_prio(&mut self, cx: &mut Cx, ioc: IocId) {
        let prio_gen = cx.iocs.get(ioc).prio_gen;
        if self.flat.ctx.at(ioc).prio_gen == prio_gen {
            return;
        }
        self.flat.ctx.at(ioc).prio_gen = prio_gen;
        if let Some(old) = self.flat.ctx.queue(ioc, false) {
            self.flat.ctx.at(ioc).queue[0] = self.async_queue(cx, ioc);
            self.put(cx, old);
        }
        if let Some(q) = self.flat.ctx.queue(ioc, true) {
            self.flat.queue_mut(q).prio_changed = true;
        }
    }

    fn put(&mut self, cx: &mut Cx, q: u32) {
        if self.flat.unref(q) {
            if self.flat.active == Some(q) {
                self.expire(cx, q, false);
                self.flat.kick(cx);
            }
            self.flat.free(q);
        }
    }

    fn bio_queue(&self, cx: &Cx, bio: &Bio, ioc: IocId) -> Option<u32> {
        self.flat.ctx.queue(ioc, bio.is_sync(cx.queue.era))
    }
}

impl Scheduler for Cfq24 {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, _: Insert) {
        let q = self.flat.queue_of(rq);
        let ioc = cx.rqs[rq].ioc;
        self.apply_prio(cx, q, ioc);
        self.sort_in(cx, q, rq);
        let held = &mut self.flat.queues[q as usize].held;
        self.flat.tables.links.push_back(&mut held.fifo, rq.0);
        if cx.rqs[rq].flags.contains(Flags::META) {
            self.flat.queue_mut(q).meta_pending += 1;
        }
        self.flat.statistics(cx, rq, ioc);
        let x = self.flat.queue(q);
        if x.sync && (self.grace() || !x.is_idle()) {
            self.flat.update_idle_window(cx, q, ioc);
        }
        if self.flat.active == Some(q) {
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
        } else if let (Some(reason), Some(a)) = (self.preempts(cx, q, rq), self.flat.active) {
            cx.why(rules::PREEMPTION, || {
                self.flat
                    .about(q)
                    .says(format!("{{who}} preempts: {reason}"))
            });
            self.expire(cx, a, true);
            self.resort(cx, q, true);
            let x = self.flat.queue_mut(q);
            x.slice_end = 0;
            x.slice_new = true;
            x.must_dispatch = true;
            cx.run_queue();
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
        let q = self.bio_queue(cx, bio, ioc)?;
        let found = self
            .flat
            .tables
            .nodes
            .find(&self.flat.queue(q).held.sorted, bio.end())?;
        Some(RqId(found))
    }
    fn allow_merge(&mut self, cx: &mut Cx, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
        if bio.is_sync(cx.queue.era) && !cx.rqs[rq].sync {
            return false;
        }
        self.bio_queue(cx, bio, ioc) == Some(self.flat.queue_of(rq))
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
        // The SYNC bit decides: for a plain read this finds the async queue of the process.
        let sync = bio.flags.contains(Flags::SYNC);
        let Some(q) = self.flat.ctx.queue(ioc, sync) else {
            return MayQueue::May;
        };
        self.apply_prio(cx, q, ioc);
        self.flat.may_queue(q)
    }
    fn prepare(&mut self, cx: &mut Cx, rq: RqId) {
        let (ioc, sync) = (cx.rqs[rq].ioc, cx.rqs[rq].sync);
        self.flat.meet(cx, ioc);
        self.notice_prio(cx, ioc);
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
    fn activate(&mut self, cx: &mut Cx, rq: RqId) {
        self.flat.activate();
        self.flat.head = cx.rqs[rq].end();
    }
    fn deactivate(&mut self, _: &mut Cx, _: RqId) {
        self.flat.in_driver -= 1;
    }

    /// `cfq_completed_request`: updates the state after request `rq` completed.
    fn completed(&mut self, cx: &mut Cx, rq: RqId) {
        let now = cx.jiffies();
        let q = self.flat.queue_of(rq);
        let (ioc, sync) = (cx.rqs[rq].ioc, cx.rqs[rq].sync);
        self.flat.in_driver -= 1;
        let x = self.flat.queue_mut(q);
        x.dispatched -= 1;
        let idle = x.is_idle();
        self.flat.sync_flight -= u32::from(self.flat.queue(q).sync);
        if !idle {
            self.flat.last_end_any = now;
        }
        if sync {
            self.flat.ctx.at(ioc).think.last_end = now;
        }
        if self.flat.active == Some(q) {
            if self.flat.queue(q).slice_new {
                let end = self.flat.slice_end_of(cx, q);
                let x = self.flat.queue_mut(q);
                x.slice_end = end;
                x.slice_new = false;
                cx.why(rules::SLICE_STARTS, || {
                    self.flat.about(q).says(format!(
                        "the slice of {{who}} starts: {} jiffies",
                        end - now
                    ))
                });
            }
            if self.slice_used(cx, q) || (idle && !self.grace()) {
                self.expire(cx, q, true);
            } else if sync && self.flat.queue(q).held.is_empty() {
                self.flat.arm(cx, q);
            }
        }
        if self.flat.in_driver == 0 {
            self.flat.kick(cx);
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
                        self.flat.kick(cx);
                    }
                    self.put(cx, q);
                }
            }
            // A change of priority is noticed at the context's next request. This version has no
            // cgroups.
            IocEvent::Prio | IocEvent::Cgroup => {}
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
        assert_eq!(
            self.tree.len(),
            self.flat.busy as usize,
            "cfq: busy queues are on the tree"
        );
        for q in self.nodes.iter(&self.tree) {
            assert!(
                self.flat.queue(q).busy,
                "cfq: a resting queue is on the tree"
            );
        }
        assert!(
            !cx.armed(GRACE_TIMER) || self.grace(),
            "cfq: 2.6.25 has no grace timer"
        );
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        self.flat.describe(cx, out);
    }
}
