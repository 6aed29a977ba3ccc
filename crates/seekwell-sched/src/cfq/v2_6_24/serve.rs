//! 2.6.24: preemption, selection of a queue, dispatch rounds, expiry and timers.

use super::Cfq24;
use crate::cfq::rules;
use crate::cfq::{GRACE_TIMER, IDLE_TIMER};
use crate::cx::Cx;
use seekwell_core::{Flags, RqId};

impl Cfq24 {
    /// `cfq_slice_used`: returns true if the slice is over.
    pub(super) fn slice_used(&self, cx: &Cx, q: u32) -> bool {
        let x = self.flat.queue(q);
        !x.slice_new && cx.jiffies() >= x.slice_end
    }

    /// `__cfq_slice_expired`: ends the slice of `q`. If `timed_out`, saves the rest or the overrun
    /// of the slice.
    pub(super) fn expire(&mut self, cx: &mut Cx, q: u32, timed_out: bool) {
        let now = cx.jiffies();
        if self.flat.queue(q).wait_request {
            cx.disarm(IDLE_TIMER);
        }
        let x = self.flat.queue_mut(q);
        x.must_dispatch = false;
        x.wait_request = false;
        if timed_out && !x.slice_new {
            x.slice_resid = x.slice_end.wrapping_sub(now) as i64;
        }
        cx.why(rules::SLICE_EXPIRED, || {
            let how = if timed_out { "in its time" } else { "early" };
            self.flat
                .about(q)
                .says(format!("the slice of {{who}} ends {how}"))
        });
        if self.flat.queue(q).busy {
            self.resort(cx, q, false);
        }
        if self.flat.active == Some(q) {
            self.flat.active = None;
        }
        self.flat.ctx.deactivate();
    }

    /// `cfq_should_preempt`: returns the reason why `q` preempts the active queue because of its
    /// new request `rq`. The first condition that holds decides.
    pub(super) fn preempts(&self, cx: &Cx, q: u32, rq: RqId) -> Option<&'static str> {
        let a = self.flat.active?;
        let (new, old) = (self.flat.queue(q), self.flat.queue(a));
        if self.slice_used(cx, a) {
            return Some("the active slice is used up");
        }
        if new.is_idle() {
            return None;
        }
        if old.is_idle() {
            return Some("the active queue is of the IDLE class");
        }
        if cx.rqs[rq].sync && !old.sync {
            return Some("sync before async");
        }
        if cx.rqs[rq].flags.contains(Flags::META) && old.meta_pending == 0 {
            return Some("its request is marked META");
        }
        let active = self.flat.ctx.active().filter(|_| old.wait_request)?;
        let distance = cx.rqs[rq].sector.distance(self.flat.head);
        (active.seek.valid() && distance <= active.seek.mean())
            .then_some("its request is within the active process's mean distance")
    }

    /// `cfq_select_queue`: returns the queue to dispatch from and makes it active. Returns `None`
    /// if nothing may be dispatched.
    pub(super) fn select(&mut self, cx: &mut Cx) -> Option<u32> {
        if let Some(a) = self.flat.active {
            let x = self.flat.queue(a);
            if self.slice_used(cx, a) {
                cx.why(rules::SLICE_USED, || {
                    self.flat.about(a).says("the slice of {who} is used up")
                });
            } else if !x.held.is_empty() {
                cx.why(rules::SLICE_CONTINUES, || {
                    self.flat.about(a).says("{who} has requests and time")
                });
                return Some(a);
            } else if cx.armed(IDLE_TIMER) || (x.dispatched > 0 && x.idle_window) {
                cx.why(rules::IDLING, || {
                    self.flat.about(a).says("waiting for {who}")
                });
                return None;
            }
            self.expire(cx, a, false);
        }
        let q = self.first_served(cx)?;
        cx.disarm(GRACE_TIMER);
        let x = self.flat.queue_mut(q);
        x.slice_end = 0;
        x.must_alloc_slice = false;
        x.fifo_checked = false;
        x.slice_new = true;
        self.flat.active = Some(q);
        cx.why(rules::QUEUE_ACTIVATED, || {
            self.flat.about(q).says("{who} becomes active")
        });
        Some(q)
    }

    /// `cfq_get_next_queue`: returns the first queue of the tree. Returns `None` if that queue is
    /// of the IDLE class and its grace period is not over.
    pub(super) fn first_served(&mut self, cx: &mut Cx) -> Option<u32> {
        let q = self.tree.first()?;
        if self.grace() && self.flat.queue(q).is_idle() {
            let (now, last) = (cx.jiffies(), self.flat.last_end_any);
            let end = last + cx.hz() / 10;
            if now < end {
                cx.arm_jiffy(GRACE_TIMER, end);
                cx.why_text(
                    rules::IDLE_GRACE,
                    "grace period: requests of the IDLE class wait",
                );
                return None;
            }
        }
        Some(q)
    }

    /// `cfq_check_fifo`: returns the oldest request if it has expired. Each slice makes this check
    /// once.
    pub(super) fn expired_head(&mut self, cx: &mut Cx, q: u32) -> Option<RqId> {
        let x = self.flat.queue_mut(q);
        if x.fifo_checked {
            return None;
        }
        x.fifo_checked = true;
        let (head, sync) = (RqId(x.held.fifo.first()?), x.sync);
        let start = cx.clock().jiffies(cx.rqs[head].start);
        if cx.jiffies() < start + self.flat.set.fifo_expire_j[sync as usize] {
            return None;
        }
        cx.why(rules::FIFO_EXPIRED, || {
            self.flat
                .about(q)
                .with(head)
                .says("the oldest request of the queue has expired")
        });
        Some(head)
    }

    /// `cfq_dispatch_requests`: runs rounds of up to quantum requests, one queue after another,
    /// until a queue must wait. Returns the number of requests dispatched.
    pub(super) fn dispatch_rounds(&mut self, cx: &mut Cx) -> u32 {
        let mut moved = 0;
        while let Some(q) = self.select(cx) {
            let x = self.flat.queue(q);
            let limit = match x.is_idle() {
                true => 1,
                false => self.flat.set.quantum,
            };
            let dispatched = u64::from(x.dispatched);
            if dispatched >= limit && (self.flat.busy > 1 || dispatched >= 4 * limit) {
                cx.why(rules::DEPTH_REACHED, || {
                    self.flat
                        .about(q)
                        .says(format!("{{who}} has {dispatched} in flight"))
                });
                break;
            }
            if !x.sync && self.flat.sync_flight > 0 {
                cx.why(rules::SYNC_IN_FLIGHT, || {
                    self.flat
                        .about(q)
                        .says("sync requests are in flight: async waits")
                });
                break;
            }
            let x = self.flat.queue_mut(q);
            x.must_dispatch = false;
            x.wait_request = false;
            cx.disarm(IDLE_TIMER);
            moved += self.round(cx, q, limit);
        }
        moved
    }

    /// `__cfq_dispatch_requests`: dispatches up to `limit` requests of queue `q`. Returns their
    /// number.
    pub(super) fn round(&mut self, cx: &mut Cx, q: u32, limit: u64) -> u32 {
        let mut moved = 0;
        while let Some(rq) = self.expired_head(cx, q).or(self.flat.queue(q).held.next) {
            let ioc = cx.rqs[rq].ioc;
            self.move_request(cx, rq);
            self.flat.ctx.activate(ioc);
            moved += 1;
            if u64::from(moved) >= limit || self.flat.queue(q).held.is_empty() {
                break;
            }
        }
        let x = self.flat.queue(q);
        let spent = !x.sync && u64::from(moved) >= self.flat.set.max_requests(x.level);
        if self.flat.busy > 1 && (spent || x.is_idle()) {
            self.flat.queue_mut(q).slice_end = cx.jiffies() + 1;
            self.expire(cx, q, false);
        }
        moved
    }

    /// `cfq_forced_dispatch`: dispatches all requests, one queue after another. Returns their
    /// number.
    pub(super) fn drain(&mut self, cx: &mut Cx) -> u32 {
        let mut moved = 0;
        while let Some(q) = self.tree.first() {
            while let Some(rq) = self.flat.queue(q).held.next {
                self.move_request(cx, rq);
                moved += 1;
            }
        }
        if let Some(a) = self.flat.active {
            self.expire(cx, a, false);
        }
        moved
    }

    /// `cfq_idle_slice_timer`: ends the idle wait, because the timer fired.
    pub(super) fn idle_timer(&mut self, cx: &mut Cx) {
        if let Some(a) = self.flat.active {
            if !self.slice_used(cx, a) {
                if self.flat.busy == 0 {
                    return;
                }
                if !self.flat.queue(a).held.is_empty() {
                    self.flat.queue_mut(a).must_dispatch = true;
                    return self.flat.kick(cx);
                }
            }
            cx.why(rules::IDLE_IN_VAIN, || {
                self.flat
                    .about(a)
                    .says("no request of {who} arrived during the idle wait")
            });
            self.expire(cx, a, false);
        }
        self.flat.kick(cx);
    }

    /// `cfq_idle_class_timer`: ends the grace period of the IDLE class. If other queues were served
    /// since then, the period starts again.
    pub(super) fn grace_timer(&mut self, cx: &mut Cx) {
        let end = self.flat.last_end_any + cx.hz() / 10;
        if cx.jiffies() < end {
            cx.arm_jiffy(GRACE_TIMER, end);
        } else {
            self.flat.kick(cx);
        }
    }
}
