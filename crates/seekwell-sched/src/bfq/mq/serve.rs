//! Service: chooses the queue and the request, ends a slot and charges the queue.

use super::{Bfq, IDLE_TIMER, MIN_TT};
use crate::bfq::core::{MIN_ASSIGNED, QId, Reason};
use crate::bfq::rules;
use crate::cx::{Cx, Emit};
use seekwell_core::{Nanos, RqId, Sector};

/// A slot shorter than this is charged the time of a seek, us.
const SHORT_SLOT_US: u64 = 1000;
/// In a slot longer than this, the amount of service decides whether the queue is slow, us.
const LONG_SLOT_US: u64 = 20_000;
/// Time charged for a short slot, ms: `[rotational, flash]`.
const SHORT_CHARGE_MS: [u64; 2] = [8, 2];
/// The shortest idle wait for a raised queue.
const RAISED_IDLE: Nanos = Nanos::from_ms(20);

impl Bfq {
    /// `__bfq_dispatch_request`: dispatches at most one request. Returns the number dispatched.
    pub(super) fn dispatch_one(&mut self, cx: &mut Cx) -> u32 {
        if let Some(rq) = self.head_links.pop_front(&mut self.heads).map(RqId) {
            cx.why(rules::AT_HEAD, || {
                "a request at the head goes first".to_owned()
            });
            if let Some(q) = self.core.queue_of(rq) {
                self.queue_mut(q).dispatched += 1;
                self.core.in_driver += 1;
                *self.started.at(rq.idx()) = true;
            }
            cx.emit(rq, Emit::Tail);
            return 1;
        }
        if self.core.busy_total() == 0 {
            return 0;
        }
        if self.set.strict && self.core.in_driver > 0 {
            cx.why(rules::STRICT, || {
                "strict: one request in the driver".to_owned()
            });
            return 0;
        }
        let Some(q) = self.select(cx) else { return 0 };
        let Some(rq) = self.queue(q).next else {
            return 0;
        };
        self.take(cx, q, rq);
        cx.emit(rq, Emit::Tail);
        1
    }

    /// `bfq_select_queue`: returns the queue to serve. Returns `None` if the device waits for the
    /// queue in service.
    fn select(&mut self, cx: &mut Cx) -> Option<QId> {
        let mut served = match self.core.serving {
            Some(q) if self.may_expire(cx, q) && !self.must_idle(cx, q) => {
                self.expire(cx, q, false, Reason::Timeout);
                None
            }
            served => served,
        };
        loop {
            let q = match served {
                Some(q) => q,
                None => self.take_next(cx)?,
            };
            let reason = if let Some(next) = self.queue(q).next {
                if self.core.charge(cx, q, next) <= self.core.ent(q).left() {
                    if self.queue(q).waiting {
                        self.queue_mut(q).waiting = false;
                        cx.disarm(IDLE_TIMER);
                    }
                    return Some(q);
                }
                Reason::Exhausted
            } else if self.queue(q).waiting
                || (self.queue(q).dispatched > 0 && self.better_to_idle(cx, q))
            {
                let donor = self.donor(cx, q);
                match donor {
                    Some(d) => cx.why(rules::INJECTION, || {
                        let whose = self.core.about(q).task;
                        self.core
                            .about(d)
                            .and(whose)
                            .says("{who} is served instead of {other}")
                    }),
                    None => cx.why(rules::WAITS_FOR_QUEUE, || {
                        self.core.about(q).says("the device waits for {who}")
                    }),
                }
                return donor;
            } else {
                Reason::NoMore
            };
            self.expire(cx, q, false, reason);
            served = None;
        }
    }
    /// `bfq_set_in_service_queue`: chooses a queue, puts it in service and starts its slot.
    fn take_next(&mut self, cx: &mut Cx) -> Option<QId> {
        if self.core.busy_total() == 0 {
            return None;
        }
        let j = cx.jiffies();
        let e = self.core.wf.select(j)?;
        let q = self.core.wf.entity(e).queue?;
        self.core.serving = Some(q);
        self.serving_last_pos = Sector(0);
        self.core.count_assignment();
        let rt = self.spans.wr_rt;
        let raised = self.core.raised(q);
        let x = self.core.queue_mut(q);
        x.fifo_checked = false;
        if raised && x.wr_max_j == rt && x.last_wr_j < j && x.budget_timeout_j < j {
            // The time that a soft real-time queue waits does not count in its raising period.
            if x.budget_timeout_j > x.last_wr_j {
                x.last_wr_j += j - x.budget_timeout_j;
            } else {
                x.last_wr_j = j;
            }
        }
        let softrt = x.wr_max_j == rt;
        let e = self.core.ent(q);
        let factor = if softrt {
            1
        } else {
            e.weight / e.orig_weight.max(1)
        };
        self.slot_start = cx.now();
        let end = j + self.set.timeout_j.saturating_mul(factor);
        self.queue_mut(q).budget_timeout_j = end;
        cx.why(rules::IN_SERVICE, || {
            self.core.about(q).says("{who} comes into service")
        });
        Some(q)
    }

    /// `bfq_dispatch_rq_from_bfqq`: charges queue `q` for request `rq` and moves the request to the
    /// driver.
    fn take(&mut self, cx: &mut Cx, q: QId, rq: RqId) {
        let cost = self.core.charge(cx, q, rq);
        self.serve(cx, q, cost);
        let serving = self.core.serving == Some(q);
        if serving && std::mem::take(&mut self.wait_dispatch) {
            self.waited = Some(rq);
        }
        self.queue_mut(q).dispatched += 1;
        self.learn_rate(cx, q, rq);
        self.core.remove(cx, rq);
        self.core.in_driver += 1;
        *self.started.at(rq.idx()) = true;
        if !serving {
            return;
        }
        self.update_raising(cx, q);
        if self.core.busy_total() > 1 && self.idle_class(q) {
            self.expire(cx, q, false, Reason::Exhausted);
        }
    }
    /// `bfq_bfqq_served`: charges `sectors` to queue `q`.
    fn serve(&mut self, cx: &Cx, q: QId, sectors: u64) {
        let raised = self.core.raised(q);
        let x = self.queue_mut(q);
        if x.service_from_backlogged == 0 {
            x.own.first_io_j = cx.jiffies();
        }
        if raised {
            x.own.service_from_wr += sectors;
        }
        x.service_from_backlogged += sectors;
        let e = x.ent;
        self.core.wf.serve(e, sectors);
    }

    /// `bfq_completed_request`: updates the state after a request of `q` completed.
    pub(super) fn complete(&mut self, cx: &mut Cx, q: QId) {
        let now = cx.now().0;
        self.learn_depth(q);
        self.core.in_driver -= 1;
        let x = self.queue_mut(q);
        x.dispatched -= 1;
        x.own.think.last_end = now;
        if x.dispatched == 0 && !x.busy {
            x.budget_timeout_j = cx.jiffies();
            self.core.at_rest(q);
        }
        self.late_completion(cx);
        self.last_completed = (!self.queue(q).shared).then_some(q);
        let x = self.queue(q);
        if x.softrt_update
            && x.dispatched == 0
            && x.sort.is_empty()
            && self.core.ent(q).coeff != super::WR_COEFF
        {
            self.queue_mut(q).soft_rt_next_start_j = self.softrt_next(cx, q);
        }
        if self.core.serving == Some(q) {
            if self.must_idle(cx, q) {
                if self.queue(q).dispatched == 0 {
                    self.arm(cx, q);
                }
                return;
            }
            if self.may_expire(cx, q) {
                self.expire(cx, q, false, Reason::Timeout);
            } else if self.core.empty(q)
                && (self.queue(q).dispatched == 0 || !self.better_to_idle(cx, q))
            {
                self.expire(cx, q, false, Reason::NoMore);
            }
        }
        if self.core.in_driver == 0 {
            self.schedule(cx);
        }
    }
    /// `bfq_arm_slice_timer`: starts to idle for the queue in service, which is empty.
    fn arm(&mut self, cx: &mut Cx, q: QId) {
        self.queue_mut(q).waiting = true;
        let raised = self.core.raised(q);
        let mut wait = self.set.slice_idle;
        if self.seeky(q) && !raised && !self.asymmetric(cx, q) {
            wait = wait.min(MIN_TT);
        } else if raised {
            wait = wait.max(RAISED_IDLE);
        }
        self.idling_since = cx.now();
        cx.why(rules::IDLE_ARMED, || {
            self.core
                .about(q)
                .says(format!("idles for {{who}}, at most {} us", wait.as_us()))
        });
        cx.arm_for(IDLE_TIMER, cx.now() + wait, || self.core.about(q));
    }
    /// `bfq_idle_slice_timer_body`: ends the idle wait, because the timer fired.
    pub(super) fn idle_over(&mut self, cx: &mut Cx) {
        if let Some(q) = self.core.serving {
            self.queue_mut(q).waiting = false;
            if self.budget_timeout(cx, q) {
                self.expire(cx, q, true, Reason::Timeout);
            } else if self.core.empty(q) {
                self.expire(cx, q, true, Reason::TooIdle);
            }
        }
        self.schedule(cx);
    }

    /// `bfq_bfqq_is_slow`: returns whether the slot was slow, and the time that is charged for it,
    /// in ms.
    fn judge(&self, cx: &Cx, q: QId, idled: bool) -> (bool, u64) {
        if !self.queue(q).sync {
            return (false, 0);
        }
        let end = if idled { self.idling_since } else { cx.now() };
        let us = end.since(self.slot_start).as_us();
        let slow = self.seeky(q);
        if us < SHORT_SLOT_US {
            return (slow, SHORT_CHARGE_MS[usize::from(self.flash)]);
        }
        if us > LONG_SLOT_US {
            let s = self.core.ent(q).service;
            return (s < self.core.tuned_budget / 2, us / 1000);
        }
        (slow, us / 1000)
    }
    /// `bfq_bfqq_charge_time`: charges a slow queue for its time: the sectors of `ms` at the tuned
    /// rate.
    fn charge_time(&mut self, cx: &Cx, q: QId, ms: u64) {
        let timeout_ms = cx.clock().to_ms((cx.hz() / 8).max(1)).max(1);
        let for_time = self.core.tuned_budget * ms.min(timeout_ms) / timeout_ms;
        let e = self.core.ent_mut(q);
        let total = for_time.max(e.service);
        e.budget = e.budget.max(total);
        let more = total - e.service;
        self.serve(cx, q, more);
    }

    /// `bfq_bfqq_expire`: ends a slot: decides whether the queue was slow, charges it, and computes
    /// the budget of its next slot.
    pub(super) fn expire(&mut self, cx: &mut Cx, q: QId, idled: bool, reason: Reason) {
        let (slow, ms) = self.judge(cx, q, idled);
        let e = self.core.ent(q);
        let raised = e.raised();
        if !raised && (slow || (reason == Reason::Timeout && e.left() >= e.budget / 3)) {
            self.charge_time(cx, q, ms);
        }
        cx.why(rules::EXPIRED, || {
            let (word, s) = (if slow { ", slow" } else { "" }, self.core.ent(q).service);
            self.core.about(q).says(format!(
                "{{who}} expires: {}{word}, charged {s}",
                reason.name()
            ))
        });
        let j = cx.jiffies();
        if self.core.low_latency && !raised {
            self.queue_mut(q).last_wr_j = j;
        }
        if self.core.low_latency && self.core.empty(q) {
            if self.queue(q).dispatched == 0 {
                self.queue_mut(q).soft_rt_next_start_j = self.softrt_next(cx, q);
            } else {
                self.queue_mut(q).softrt_update = true;
            }
        }
        self.injected = false;
        self.wait_dispatch = false;
        self.waited = None;
        self.next_budget(cx, q, reason);
        self.leave(cx, q, reason);
        let gone = !self.queue(q).live;
        if gone {
            return;
        }
        let e = self.queue(q).ent;
        if !self.queue(q).busy && !matches!(reason, Reason::Timeout | Reason::Exhausted) {
            self.queue_mut(q).own.non_blocking = true;
        } else {
            self.core.ent_mut(q).service = 0;
        }
        self.core.wf.reset_parents(e);
    }
    /// `__bfq_bfqq_recalc_budget`: computes the budget of the next slot from the reason why this
    /// slot ended.
    fn next_budget(&mut self, cx: &Cx, q: QId, reason: Reason) {
        let x = self.queue(q);
        let (b, m, top) = (x.max_budget, self.core.min_budget(), self.core.tuned_budget);
        let mut budget = if !x.sync {
            top
        } else if self.core.raised(q) {
            2 * m
        } else {
            match reason {
                Reason::TooIdle if x.dispatched > 0 => (2 * b).min(top),
                Reason::TooIdle if b > 5 * m => b - 4 * m,
                Reason::TooIdle => m,
                Reason::Timeout => (2 * b).min(top),
                Reason::Exhausted => (4 * b).min(top),
                Reason::NoMore => self.core.ent(q).service.max(m),
                Reason::Preempted => return,
            }
        };
        if self.core.budgets_assigned >= MIN_ASSIGNED && self.core.user_budget == 0 {
            budget = budget.min(top);
        }
        self.queue_mut(q).max_budget = budget;
        if let Some(next) = self.queue(q).next {
            let need = self.core.charge(cx, q, next);
            self.core.ent_mut(q).budget = budget.max(need);
        }
    }
    /// `__bfq_bfqq_expire`: takes a queue out of service. The queue waits again, or becomes idle if
    /// it is empty.
    pub(super) fn leave(&mut self, cx: &mut Cx, q: QId, reason: Reason) {
        let j = cx.jiffies();
        let seeky = self.seeky(q);
        let keep = reason == Reason::Preempted && self.needed(cx, q);
        let x = self.queue_mut(q);
        x.split |= x.shared && seeky;
        if x.sort.is_empty() && !keep {
            if x.dispatched == 0 {
                x.budget_timeout_j = j;
            }
            self.core.del_busy(q, true, j);
        } else {
            self.core.requeue(q, true, j);
            if self.core.use_pos {
                self.core.pos_place(cx, q);
            }
        }
        let x = self.queue_mut(q);
        x.waiting = false;
        let e = x.ent;
        cx.disarm(IDLE_TIMER);
        self.core.wf.leave_service(e);
        self.core.serving = None;
        self.core.free_if_unused(q);
    }
}
