//! 2.6.18: selection of a queue, dispatch rounds, expiry and timers.

use super::{BUSY, CUR, Cfq18, IDLE, LEVELS};
use crate::cfq::rules;
use crate::cfq::{GRACE_TIMER, IDLE_TIMER};
use crate::cx::Cx;
use seekwell_core::RqId;

impl Cfq18 {
    /// `__cfq_set_active_queue`: makes `q` active and starts its slice.
    pub(super) fn activate_queue(&mut self, cx: &mut Cx, q: u32) {
        cx.disarm(GRACE_TIMER);
        let x = self.flat.queue_mut(q);
        x.slice_end = 0;
        x.must_alloc_slice = false;
        x.fifo_checked = false;
        self.flat.active = Some(q);
        cx.why(rules::QUEUE_ACTIVATED, || {
            self.flat.about(q).says("{who} becomes active")
        });
    }

    /// `__cfq_slice_expired`: ends the slice of `q`.
    pub(super) fn expire(&mut self, cx: &mut Cx, q: u32, preempted: bool) {
        if self.flat.queue(q).wait_request {
            cx.disarm(IDLE_TIMER);
        }
        if !preempted && self.flat.queue(q).dispatched == 0 {
            self.flat.queue_mut(q).served = cx.jiffies();
            self.flat.kick(cx);
        }
        let x = self.flat.queue_mut(q);
        x.must_dispatch = false;
        x.wait_request = false;
        cx.why(rules::SLICE_EXPIRED, || {
            self.flat.about(q).says("the slice of {who} ends")
        });
        if self.flat.queue(q).busy {
            self.resort(q, preempted);
        }
        if self.flat.active == Some(q) {
            self.flat.active = None;
        }
        self.flat.ctx.deactivate();
        self.dispatch_slice = 0;
    }

    /// `cfq_select_queue`: returns the queue to dispatch from and makes it active. Returns `None`
    /// if nothing may be dispatched.
    pub(super) fn select(&mut self, cx: &mut Cx) -> Option<u32> {
        if let Some(a) = self.flat.active {
            let x = self.flat.queue(a);
            if !x.must_dispatch && cx.jiffies() > x.slice_end {
                cx.why(rules::SLICE_USED, || {
                    self.flat.about(a).says("the slice of {who} is used up")
                });
            } else if !x.held.is_empty() {
                cx.why(rules::SLICE_CONTINUES, || {
                    self.flat.about(a).says("{who} has requests and time")
                });
                return Some(a);
            } else if x.dispatched > 0 {
                cx.why(rules::OWN_IN_FLIGHT, || {
                    self.flat.about(a).says("{who} has requests in the driver")
                });
                return None;
            } else if x.sync && self.flat.arm(cx, a) {
                return None;
            }
            self.expire(cx, a, false);
        }
        let q = self.first_served(cx);
        match q {
            Some(q) => self.activate_queue(cx, q),
            None => self.flat.active = None,
        }
        q
    }

    /// `cfq_check_fifo`: returns the oldest request if it has expired. In each slice this check is
    /// made until it finds an expired request.
    pub(super) fn expired_head(&mut self, cx: &mut Cx, q: u32) -> Option<RqId> {
        let x = self.flat.queue(q);
        if x.fifo_checked {
            return None;
        }
        let (head, sync) = (RqId(x.held.fifo.first()?), x.sync);
        let start = cx.clock().jiffies(cx.rqs[head].start);
        if cx.jiffies() <= start + self.flat.set.fifo_expire_j[sync as usize] {
            return None;
        }
        self.flat.queue_mut(q).fifo_checked = true;
        cx.why(rules::FIFO_EXPIRED, || {
            self.flat
                .about(q)
                .with(head)
                .says("the oldest request of the queue has expired")
        });
        Some(head)
    }

    /// `cfq_dispatch_requests`: runs rounds of up to quantum requests. Stops after a round of a
    /// queue for which the device should idle. Returns the number of requests dispatched.
    pub(super) fn dispatch_rounds(&mut self, cx: &mut Cx) -> u32 {
        let (mut moved, mut previous) = (0, None);
        while let Some(q) = self.select(cx) {
            if previous == Some(q) {
                break;
            }
            let x = self.flat.queue_mut(q);
            x.must_dispatch = false;
            x.wait_request = false;
            let limit = match x.is_idle() {
                true => 1,
                false => self.flat.set.quantum,
            };
            cx.disarm(IDLE_TIMER);
            moved += self.round(cx, q, limit);
            if self.flat.queue(q).idle_window && self.flat.active.is_some() {
                break;
            }
            previous = Some(q);
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
            self.dispatch_slice += 1;
            self.flat.ctx.activate(ioc);
            moved += 1;
            if u64::from(moved) >= limit || self.flat.queue(q).held.is_empty() {
                break;
            }
        }
        if self.flat.queue(q).slice_end == 0 {
            let end = self.flat.slice_end_of(cx, q);
            self.flat.queue_mut(q).slice_end = end;
        }
        let x = self.flat.queue(q);
        let spent = !x.sync && self.dispatch_slice >= self.flat.set.max_requests(x.level);
        if spent || x.is_idle() || !x.idle_window {
            self.expire(cx, q, false);
        }
        moved
    }

    /// `cfq_forced_dispatch`: dispatches all requests, one list after another. Returns their
    /// number.
    pub(super) fn drain(&mut self, cx: &mut Cx) -> u32 {
        let mut moved = 0;
        let order = (0..LEVELS).chain([BUSY as usize, CUR as usize, IDLE as usize]);
        for list in order {
            // A queue leaves its list when its last request is dispatched.
            while let Some(q) = self.lists[list].first() {
                while let Some(rq) = self.flat.queue(q).held.next {
                    self.move_request(cx, rq);
                    moved += 1;
                }
            }
        }
        if let Some(a) = self.flat.active {
            self.expire(cx, a, false);
        }
        moved
    }

    /// `cfq_preempt_queue`: makes `q` active instead of `a`.
    pub(super) fn preempt(&mut self, cx: &mut Cx, a: u32, q: u32) {
        let mut left = self.lists[CUR as usize].len();
        let mut at = self.lists[CUR as usize].first();
        while let Some(i) = at.filter(|_| left > 0) {
            at = self.links.next(i);
            left -= 1;
            self.resort(i, true);
        }
        self.expire(cx, a, true);
        self.activate_queue(cx, q);
        self.flat.queue_mut(q).must_dispatch = true;
        cx.run_queue();
    }

    /// `cfq_idle_slice_timer`: ends the idle wait, because the timer fired.
    pub(super) fn idle_timer(&mut self, cx: &mut Cx) {
        if let Some(a) = self.flat.active {
            let x = self.flat.queue(a);
            if cx.jiffies() <= x.slice_end {
                if self.flat.busy == 0 {
                    return;
                }
                if !x.held.is_empty() {
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
