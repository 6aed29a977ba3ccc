//! 3.4 and later: handles a request that is inserted or grows. Sorts the request, updates
//! statistics and the idle window, and decides whether its queue preempts the active queue.

use super::Cfq;
use super::queue::Kind;
use super::rules;
use crate::cx::Cx;
use seekwell_core::{Flags, IocId, RqId, Sectors};

/// On a rotational disk, a request is far if it is more than this many sectors from the queue's
/// last request.
const FAR: u64 = 800;
/// On other disks, a request with fewer sectors than this counts as seeky.
const SMALL: Sectors = Sectors(64);
/// A request larger than this (one page) ends an idle wait at once.
const PAGE: Sectors = Sectors(8);
/// A queue is deep if it has had at least this many requests queued.
const DEEP: u32 = 4;

impl Cfq {
    /// `cfq_insert_request`: adds a request to its queue and updates the statistics.
    pub(super) fn insert_request(&mut self, cx: &mut Cx, rq: RqId) {
        let q = self.queue_of(rq);
        let ioc = cx.rqs[rq].ioc;
        let now = cx.jiffies();
        self.apply_prio(cx, q, ioc);
        self.tables.own[rq].deadline_j = now + self.set.fifo_expire_j[cx.rqs[rq].sync as usize];
        let held = &mut self.queues[q as usize].held;
        self.tables.links.push_back(&mut held.fifo, rq.0);
        self.sort_in(cx, q, rq);
        self.rq_queued += 1;
        if cx.rqs[rq].flags.contains(Flags::PRIO) {
            self.queue_mut(q).prio_pending += 1;
        }
        self.statistics(cx, q, rq, ioc);
        self.update_idle_window(cx, q, ioc);
        self.queue_mut(q).last_pos = cx.rqs[rq].end();
        self.react(cx, q, rq);
    }

    /// `cfq_add_rq_rb`: sorts a request into its queue. The queue becomes busy. Its next request
    /// and its place in the position tree can change.
    fn sort_in(&mut self, cx: &mut Cx, q: u32, rq: RqId) {
        let held = &mut self.queues[q as usize].held;
        self.tables
            .nodes
            .insert(&mut held.sorted, rq.0, cx.rqs[rq].sector);
        if !self.queue(q).busy {
            self.become_busy(cx, q);
        }
        let was = self.queue(q).held.next;
        let next = self.choose(cx, was, Some(rq), self.last_position);
        self.queue_mut(q).held.next = next;
        if next != was {
            self.enter_position(cx, q);
        } else {
            self.position_moves(cx, q);
        }
    }
    /// `cfq_add_cfqq_rr`: puts `q`, which holds requests again, on a service tree.
    fn become_busy(&mut self, cx: &mut Cx, q: u32) {
        let x = self.queue_mut(q);
        x.busy = true;
        let sync = x.sync;
        self.busy += 1;
        self.busy_sync += u32::from(sync);
        self.resort(cx, q, false);
        self.enter_position(cx, q);
    }

    /// `cfq_update_io_seektime`: updates the seek history of the queue and
    /// (`cfq_update_io_thinktime`) the think times of the context, the service tree and the group.
    fn statistics(&mut self, cx: &Cx, q: u32, rq: RqId, ioc: IocId) {
        let now = cx.jiffies();
        let (idle, group_idle) = (self.set.slice_idle_j, self.set.group_idle_j);
        let x = self.queue(q);
        let group = x.group;
        if x.sync {
            self.ctx.at(ioc).think.update(now, idle);
            if let Some(id) = self.queue(q).tree {
                self.group_mut(group).trees[id.idx()]
                    .think
                    .update(now, idle);
            }
        }
        self.group_mut(group).think.update(now, group_idle);
        let r = &cx.rqs[rq];
        let x = self.queue_mut(q);
        let bit = if cx.queue.rotational {
            x.last_pos.0 != 0 && r.sector.distance(x.last_pos) > FAR
        } else {
            r.sectors < SMALL
        };
        x.seek_history = x.seek_history << 1 | u32::from(bit);
    }

    /// `cfq_update_idle_window`: decides whether the device should idle for `q`.
    fn update_idle_window(&mut self, cx: &mut Cx, q: u32, ioc: IocId) {
        let limit = self.set.slice_idle_j;
        let mean = self.ctx.at(ioc).think.mean();
        let x = self.queue_mut(q);
        if !x.sync || x.is_idle() {
            return;
        }
        if x.held.len() >= DEEP {
            x.deep = true;
        }
        let no_idle = |r: RqId| cx.rqs[r].flags.contains(Flags::NOIDLE);
        let window = if x.held.next.is_some_and(no_idle)
            || !cx.alive(ioc)
            || limit == 0
            || (!x.deep && x.seeky())
        {
            false
        } else {
            mean.map_or(x.idle_window, |m| m <= limit)
        };
        if window != x.idle_window {
            x.idle_window = window;
            cx.why(rules::IDLE_WINDOW, || {
                let word = if window { "gets" } else { "loses" };
                self.about(q)
                    .says(format!("{{who}} {word} its idle window"))
            });
        }
    }

    /// `cfq_rq_enqueued`: handles the effect of a new request. The request can end an idle wait, or
    /// its queue can preempt the active queue.
    fn react(&mut self, cx: &mut Cx, q: u32, rq: RqId) {
        if self.active == Some(q) {
            if !self.queue(q).wait_request {
                return;
            }
            if cx.rqs[rq].sectors > PAGE || self.busy > 1 {
                cx.why(rules::AWAITED_REQUEST, || {
                    self.about(q)
                        .with(rq)
                        .says("the awaited request of {who}: the idle wait ends")
                });
                cx.disarm(super::IDLE_TIMER);
                self.queue_mut(q).wait_request = false;
                cx.run_queue();
            } else {
                cx.why(rules::AWAITED_IS_SMALL, || {
                    self.about(q).with(rq).says(
                        "the awaited request is small and no other queue is busy: the idle wait \
                         continues",
                    )
                });
                self.queue_mut(q).must_dispatch = true;
            }
        } else if let Some(reason) = self.preempts(cx, q, rq) {
            cx.why(rules::PREEMPTION, || {
                self.about(q)
                    .with(rq)
                    .says(format!("{{who}} preempts: {reason}"))
            });
            self.preempt(cx, q);
            cx.run_queue();
        }
    }

    /// `cfq_should_preempt`: returns the reason why `q` preempts the active queue because of its
    /// new request `rq`. The first condition that holds decides.
    fn preempts(&self, cx: &Cx, q: u32, rq: RqId) -> Option<&'static str> {
        let a = self.active?;
        let (new, old) = (self.queue(q), self.queue(a));
        if new.is_idle() {
            return None;
        }
        if old.is_idle() {
            return Some("the active queue is of the IDLE class");
        }
        if old.is_rt() && !new.is_rt() {
            return None;
        }
        if cx.rqs[rq].sync && !old.sync {
            return Some("sync before async");
        }
        if new.group != old.group {
            return None;
        }
        if old.slice_used(cx.jiffies()) {
            return Some("the active slice is used up");
        }
        let alone_with_active = || {
            new.tree
                .is_some_and(|id| self.group(new.group).count(id) == 2)
        };
        if self.serving.kind == Kind::NoIdle
            && new.kind() == Kind::NoIdle
            && alone_with_active()
            && old.held.is_empty()
        {
            return Some("two queues share the NOIDLE tree and the active one is empty");
        }
        if cx.rqs[rq].flags.contains(Flags::PRIO) && old.prio_pending == 0 {
            return Some("its request is marked PRIO");
        }
        if new.is_rt() && !old.is_rt() {
            return Some("RT before BE");
        }
        if old.held.is_empty() && !self.should_idle(cx, a) {
            return Some("the active queue is empty, and the disk does not idle for it");
        }
        if !self.ctx.has_active() || !old.wait_request {
            return None;
        }
        self.close(cx, rq)
            .then_some("its request is close to the head")
    }

    /// `cfq_preempt_queue`: moves `q` to the front of its service tree and ends the active slice.
    fn preempt(&mut self, cx: &mut Cx, q: u32) {
        let Some(a) = self.active else { return };
        let kind = self.queue(a).kind();
        self.expire(cx, a, true);
        if kind != self.queue(q).kind() {
            let group = self.queue(q).group;
            self.group_mut(group).saved.rest = 0;
        }
        self.resort(cx, q, true);
        let x = self.queue_mut(q);
        x.slice_end = 0;
        x.slice_new = true;
    }

    /// `cfq_reposition_rq_rb`: sorts `rq` again after a bio was merged at its front.
    pub(super) fn front_merged(&mut self, cx: &mut Cx, rq: RqId) {
        let q = self.queue_of(rq);
        let held = &mut self.queues[q as usize].held;
        self.tables.nodes.remove(&mut held.sorted, rq.0);
        self.sort_in(cx, q, rq);
    }

    /// `cfq_merged_requests`: removes request `gone`, whose bios `kept` took over.
    pub(super) fn join(&mut self, cx: &mut Cx, kept: RqId, gone: RqId) {
        let (kq, gq) = (self.queue_of(kept), self.queue_of(gone));
        let deadline = self.tables.own[gone].deadline_j;
        if deadline < self.tables.own[kept].deadline_j && kq == gq {
            let fifo = &mut self.queues[kq as usize].held.fifo;
            self.tables.links.remove(fifo, kept.0);
            self.tables.links.insert_after(fifo, gone.0, kept.0);
            self.tables.own[kept].deadline_j = deadline;
        }
        if self.queue(kq).held.next == Some(gone) {
            self.queue_mut(kq).held.next = Some(kept);
        }
        self.remove_request(cx, gone);
        self.position_moves(cx, kq);
        let x = self.queue(gq);
        if x.busy && x.held.is_empty() && self.active != Some(gq) {
            self.rest(gq);
        }
    }

    /// `cfq_remove_request`: removes `rq` from its queue.
    pub(super) fn remove_request(&mut self, cx: &Cx, rq: RqId) {
        let q = self.queue_of(rq);
        if self.queue(q).held.next == Some(rq) {
            let next = self.find_next(cx, q, rq);
            self.queue_mut(q).held.next = next;
        }
        self.tables.remove(&mut self.queues[q as usize].held, rq);
        self.rq_queued -= 1;
        let x = self.queue_mut(q);
        if cx.rqs[rq].flags.contains(Flags::PRIO) {
            x.prio_pending -= 1;
        }
        if x.held.is_empty() {
            // The queue stays on the service tree until its slice expires.
            self.leave_position(q);
        } else {
            self.position_moves(cx, q);
        }
    }
}
