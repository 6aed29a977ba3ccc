//! 2.6.24: preemption, selection, dispatch rounds, expiry and timers.

use super::Cfq24;
use crate::cfq::rules;
use crate::cfq::{GRACE_TIMER, IDLE_TIMER};
use crate::cx::Cx;
use seekwell_core::{Flags, RqId};

impl Cfq24 {
    pub(super) fn slice_used(&self, cx: &Cx, q: u32) -> bool {
        let x = self.f.q(q);
        !x.slice_new && cx.jiffies() >= x.slice_end
    }

    /// 8.6.
    pub(super) fn expire(&mut self, cx: &mut Cx, q: u32, timed_out: bool) {
        let now = cx.jiffies();
        if self.f.q(q).wait_request {
            cx.disarm(IDLE_TIMER);
        }
        let x = self.f.qm(q);
        x.must_dispatch = false;
        x.wait_request = false;
        if timed_out && !x.slice_new {
            x.slice_resid = x.slice_end.wrapping_sub(now) as i64;
        }
        cx.why(rules::SLICE_EXPIRED, || {
            let how = if timed_out { "in its time" } else { "early" };
            format!("the slice of queue {q} ends {how}")
        });
        if self.f.q(q).busy {
            self.resort(cx, q, false);
        }
        if self.f.active == Some(q) {
            self.f.active = None;
        }
        self.f.ctx.deactivate();
    }

    /// 8.5: why `q`, with the new request `rq`, takes the disk; first match.
    pub(super) fn preempts(&self, cx: &Cx, q: u32, rq: RqId) -> Option<&'static str> {
        let a = self.f.active?;
        let (new, old) = (self.f.q(q), self.f.q(a));
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
        let active = self.f.ctx.active().filter(|_| old.wait_request)?;
        let distance = cx.rqs[rq].sector.distance(self.f.head);
        (active.seek.valid() && distance <= active.seek.mean())
            .then_some("its request is within the active process's mean distance")
    }

    /// 8.7.
    pub(super) fn select(&mut self, cx: &mut Cx) -> Option<u32> {
        if let Some(a) = self.f.active {
            let x = self.f.q(a);
            if self.slice_used(cx, a) {
                cx.why(rules::SLICE_USED, || {
                    format!("the slice of queue {a} is used up")
                });
            } else if !x.held.is_empty() {
                cx.why(rules::SLICE_CONTINUES, || {
                    format!("queue {a} has requests and time")
                });
                return Some(a);
            } else if cx.armed(IDLE_TIMER) || (x.dispatched > 0 && x.idle_window) {
                cx.why(rules::IDLING, || format!("waiting for queue {a}"));
                return None;
            }
            self.expire(cx, a, false);
        }
        let q = self.first_served(cx)?;
        cx.disarm(GRACE_TIMER);
        let x = self.f.qm(q);
        x.slice_end = 0;
        x.must_alloc_slice = false;
        x.fifo_checked = false;
        x.slice_new = true;
        self.f.active = Some(q);
        cx.why(rules::QUEUE_ACTIVATED, || {
            format!("queue {q} becomes active")
        });
        Some(q)
    }

    /// Head of the tree, unless it is of the IDLE class and others were served a moment ago.
    pub(super) fn first_served(&mut self, cx: &mut Cx) -> Option<u32> {
        let q = self.tree.first()?;
        if self.grace() && self.f.q(q).is_idle() {
            let (now, last) = (cx.jiffies(), self.f.last_end_any);
            let end = last + cx.hz() / 10;
            if now < end {
                cx.arm_jiffy(GRACE_TIMER, end);
                cx.why_text(rules::IDLE_GRACE, "grace: IDLE requests wait");
                return None;
            }
        }
        Some(q)
    }

    /// 8.3: the oldest request, if it has expired; looked at once per slice.
    pub(super) fn expired_head(&mut self, cx: &mut Cx, q: u32) -> Option<RqId> {
        let x = self.f.qm(q);
        if x.fifo_checked {
            return None;
        }
        x.fifo_checked = true;
        let (head, sync) = (RqId(x.held.fifo.first()?), x.sync);
        let start = cx.clock().jiffies(cx.rqs[head].start);
        if cx.jiffies() < start + self.f.set.fifo_expire_j[sync as usize] {
            return None;
        }
        cx.why_text(
            rules::FIFO_EXPIRED,
            "the oldest request of the queue has expired",
        );
        Some(head)
    }

    /// 8.8.
    pub(super) fn dispatch_rounds(&mut self, cx: &mut Cx) -> u32 {
        let mut moved = 0;
        while let Some(q) = self.select(cx) {
            let x = self.f.q(q);
            let limit = match x.is_idle() {
                true => 1,
                false => self.f.set.quantum,
            };
            let dispatched = u64::from(x.dispatched);
            if dispatched >= limit && (self.f.busy > 1 || dispatched >= 4 * limit) {
                cx.why(rules::DEPTH_REACHED, || {
                    format!("queue {q} has {dispatched} in flight")
                });
                break;
            }
            if !x.sync && self.f.sync_flight > 0 {
                cx.why_text(
                    rules::SYNC_IN_FLIGHT,
                    "sync requests are in flight: async waits",
                );
                break;
            }
            let x = self.f.qm(q);
            x.must_dispatch = false;
            x.wait_request = false;
            cx.disarm(IDLE_TIMER);
            moved += self.round(cx, q, limit);
        }
        moved
    }

    pub(super) fn round(&mut self, cx: &mut Cx, q: u32, limit: u64) -> u32 {
        let mut moved = 0;
        while let Some(rq) = self.expired_head(cx, q).or(self.f.q(q).held.next) {
            let ioc = cx.rqs[rq].ioc;
            self.move_request(cx, rq);
            self.f.ctx.activate(ioc);
            moved += 1;
            if u64::from(moved) >= limit || self.f.q(q).held.is_empty() {
                break;
            }
        }
        let x = self.f.q(q);
        let spent = !x.sync && u64::from(moved) >= self.f.set.max_requests(x.level);
        if self.f.busy > 1 && (spent || x.is_idle()) {
            self.f.qm(q).slice_end = cx.jiffies() + 1;
            self.expire(cx, q, false);
        }
        moved
    }

    pub(super) fn drain(&mut self, cx: &mut Cx) -> u32 {
        let mut moved = 0;
        while let Some(q) = self.tree.first() {
            while let Some(rq) = self.f.q(q).held.next {
                self.move_request(cx, rq);
                moved += 1;
            }
        }
        if let Some(a) = self.f.active {
            self.expire(cx, a, false);
        }
        moved
    }

    pub(super) fn idle_timer(&mut self, cx: &mut Cx) {
        if let Some(a) = self.f.active {
            if !self.slice_used(cx, a) {
                if self.f.busy == 0 {
                    return;
                }
                if !self.f.q(a).held.is_empty() {
                    self.f.qm(a).must_dispatch = true;
                    return self.f.kick(cx);
                }
            }
            cx.why(rules::IDLE_IN_VAIN, || {
                format!("idling for queue {a} was in vain")
            });
            self.expire(cx, a, false);
        }
        self.f.kick(cx);
    }

    pub(super) fn grace_timer(&mut self, cx: &mut Cx) {
        let end = self.f.last_end_any + cx.hz() / 10;
        if cx.jiffies() < end {
            cx.arm_jiffy(GRACE_TIMER, end);
        } else {
            self.f.kick(cx);
        }
    }
}
