//! Service: chooses the queue and the request, ends a slot and charges the queue.

use super::insert::enough;
use super::{BfqSq, IDLE_TIMER, PEAK_SAMPLES, SlotUser};
use crate::bfq::core::{NEVER_J, QId, RATE_SHIFT, Reason, sectors_in};
use crate::bfq::entity::gt;
use crate::bfq::rules;
use crate::cx::{Cx, Emit};
use seekwell_core::RqId;

/// A slot shorter than this is not used to judge the speed of its queue.
const SHORTEST_SLOT_US: u64 = 100;
/// Only slots longer than this are used to estimate the device's rate.
const RATE_SLOT_US: u64 = 20_000;
/// Threshold of the test whether the device queues commands. Each completion at which at least this
/// many requests are queued or in the driver is a sample. The device queues commands if more than
/// this many requests were in the driver at once.
const HW_TAG_LOAD: u32 = 4;
/// Number of samples after which the test whether the device queues commands decides.
const HW_TAG_SAMPLES: u32 = 32;
/// How long the device idles for a seeky queue.
const SEEKY_IDLE_MS: u64 = 2;

impl BfqSq {
    /// `bfq_bfqq_budget_timeout`: returns true if the time of the slot is used up.
    pub(super) fn budget_timeout(&self, cx: &Cx, q: QId) -> bool {
        let x = self.queue(q);
        !x.own.budget_new && cx.jiffies() >= x.budget_timeout_j
    }
    /// `bfq_may_expire_for_budg_timeout`: returns true if the queue may expire because of its time.
    /// While the device idles for the queue, it may expire only if a third of its budget is left.
    fn may_expire(&self, cx: &Cx, q: QId) -> bool {
        let e = self.core.ent(q);
        (!self.queue(q).waiting || e.left() >= e.budget / 3) && self.budget_timeout(cx, q)
    }
    fn queueing(&self) -> bool {
        self.core.hw_tag != 0
    }
    fn all_engaged_seeky(&self) -> bool {
        self.core.engaged[0] == self.core.engaged[1]
    }
    /// `bfq_bfqq_may_idle`: returns true if the queue stays in service although it is empty.
    fn must_not_expire(&self, q: QId) -> bool {
        let x = self.queue(q);
        if !x.sync {
            return false;
        }
        let raised = self.core.raised(q);
        let asymmetric = self.core.wf.weights.varied();
        let hopeless = x.own.constantly_seeky && self.all_engaged_seeky();
        if self.r5 {
            let idle = x.short_think
                && !(self.queueing()
                    && (self.core.wr_busy > 0 || (!asymmetric && (self.flash || hopeless))));
            return raised || (x.io_bound && idle);
        }
        let in_burst =
            x.in_large_burst && self.queueing() && (self.flash || x.own.constantly_seeky);
        let boosts = x.io_bound
            && x.short_think
            && !(self.queueing() && (self.core.wr_busy > 0 || self.flash || hopeless));
        !in_burst && (raised || asymmetric || boosts)
    }
    /// `bfq_bfqq_must_idle`: returns true if `q` is empty and the device should idle for it.
    fn must_idle(&self, q: QId) -> bool {
        self.core.empty(q) && self.set.slice_idle_j > 0 && self.must_not_expire(q)
    }

    /// `bfq_select_queue`: returns the queue to serve. Returns `None` if the device waits for the
    /// queue in service.
    fn select(&mut self, cx: &mut Cx) -> Option<QId> {
        let Some(q) = self.core.serving else {
            return self.take_next(cx);
        };
        let mut reason = Reason::Timeout;
        if !(self.may_expire(cx, q) && !cx.armed(IDLE_TIMER) && !self.must_idle(q)) {
            if let Some(next) = self.queue(q).next {
                if self.core.charge(cx, q, next) <= self.core.ent(q).left() {
                    if cx.armed(IDLE_TIMER) {
                        self.queue_mut(q).waiting = false;
                        cx.disarm(IDLE_TIMER);
                    }
                    return Some(q);
                }
                reason = Reason::Exhausted;
            } else if cx.armed(IDLE_TIMER)
                || (self.queue(q).dispatched > 0 && self.must_not_expire(q))
            {
                cx.why(rules::WAITS_FOR_QUEUE, || {
                    self.core.about(q).says("the device waits for {who}")
                });
                return None;
            } else {
                reason = Reason::NoMore;
            }
        }
        self.expire(cx, q, false, reason);
        self.take_next(cx)
    }
    /// `bfq_set_in_service_queue`: chooses a queue and puts it in service.
    fn take_next(&mut self, cx: &mut Cx) -> Option<QId> {
        if self.core.busy_total() == 0 {
            return None;
        }
        let e = self.core.wf.select(cx.jiffies())?;
        let q = self.core.wf.entity(e).queue?;
        self.core.serving = Some(q);
        self.core.count_assignment();
        let x = self.queue_mut(q);
        x.own.may_must = true;
        x.own.budget_new = true;
        x.fifo_checked = false;
        cx.why(rules::IN_SERVICE, || {
            self.core.about(q).says("{who} comes into service")
        });
        Some(q)
    }

    /// `bfq_dispatch_requests`: dispatches at most one request. Returns the number dispatched.
    pub(super) fn dispatch_one(&mut self, cx: &mut Cx) -> u32 {
        if self.core.busy_total() == 0 {
            return 0;
        }
        let Some(q) = self.select(cx) else { return 0 };
        let (sync, dispatched) = (self.queue(q).sync, self.queue(q).dispatched);
        let others = self.core.busy_total() > 1;
        // v7r5 limits sync queues as well.
        if !sync || self.r5 {
            let limit = match (sync, self.idle_class(q)) {
                (false, _) => self.set.max_budget_async_rq,
                (true, true) => 1,
                (true, false) => self.set.quantum,
            };
            if dispatched >= limit && (others || dispatched >= limit.saturating_mul(4)) {
                cx.why(rules::ENOUGH_IN_FLIGHT, || {
                    format!("{dispatched} requests are in flight, which is the limit")
                });
                return 0;
            }
        }
        if !sync && self.sync_flight > 0 {
            cx.why(rules::SYNC_IN_FLIGHT, || {
                "async waits for the sync requests".to_owned()
            });
            return 0;
        }
        self.queue_mut(q).waiting = false;
        self.dispatch_from(cx, q)
    }

    /// `bfq_dispatch_request`: dispatches at most one request of queue `q`. Returns the number
    /// dispatched.
    fn dispatch_from(&mut self, cx: &mut Cx, q: QId) -> u32 {
        let late = self.core.check_fifo(q, None, cx.jiffies());
        let Some(rq) = late.or(self.queue(q).next) else {
            return 0;
        };
        let cost = self.core.charge(cx, q, rq);
        if cost > self.core.ent(q).left() {
            cx.why(rules::LATE_OVER_BUDGET, || {
                "the late request exceeds the budget".to_owned()
            });
            self.core.set_next(cx, q, Some(rq));
            if self.core.in_driver == 0 {
                self.schedule(cx);
            }
            self.expire(cx, q, false, Reason::Exhausted);
            return 0;
        }
        let e = self.queue(q).ent;
        self.core.wf.serve(e, cost);
        self.move_out(cx, q, rq);
        self.lower_or_raise(cx, q);
        if self.slot_user == SlotUser::Nobody {
            self.slot_user = SlotUser::Process(cx.rqs[rq].ioc);
        }
        let one_only =
            self.idle_class(q) || (!self.queue(q).sync && self.set.max_budget_async_rq <= 1);
        if one_only && self.core.busy_total() > 1 {
            self.expire(cx, q, false, Reason::Exhausted);
        }
        1
    }
    fn move_out(&mut self, cx: &mut Cx, q: QId, rq: RqId) {
        self.queue_mut(q).dispatched += 1;
        self.core.remove(cx, rq);
        cx.emit(rq, Emit::Sorted);
        if self.queue(q).sync {
            self.sync_flight += 1;
        }
    }

    /// `bfq_update_wr_data`: ends the raising if it is due, and applies a change of weight at once.
    fn lower_or_raise(&mut self, cx: &mut Cx, q: QId) {
        let j = cx.jiffies();
        if self.core.raised(q) {
            let over = j > self.queue(q).last_wr_j + self.queue(q).wr_max_j;
            if over || self.excluded(q) {
                cx.why(rules::RAISING_ENDS, || {
                    self.core.about(q).says("raising of {who} ends")
                });
                self.queue_mut(q).last_wr_j = j;
                self.end_wr(q);
            }
        }
        let e = self.core.ent(q);
        if (e.weight > e.orig_weight) != e.raised() {
            let e = self.queue(q).ent;
            self.core.wf.apply_change(e, true);
        }
    }

    /// `bfq_forced_dispatch`: dispatches all requests and charges nothing. Returns their number.
    pub(super) fn drain(&mut self, cx: &mut Cx) -> u32 {
        if self.core.busy_total() == 0 {
            return 0;
        }
        if let Some(q) = self.core.serving {
            self.leave(cx, q);
        }
        let order: Vec<QId> = self.core.wf.active_queues().collect();
        let mut moved = 0;
        for q in order {
            while let Some(rq) = self.queue(q).next {
                self.move_out(cx, q, rq);
                moved += 1;
            }
            let b = self.core.max_budget();
            self.queue_mut(q).max_budget = b;
            let e = self.queue(q).ent;
            self.core.wf.cleanup_of(e);
        }
        cx.why(rules::DRAIN, || format!("a drain moves {moved} requests"));
        moved
    }

    /// `bfq_completed_request`: updates the state after request `rq` completed.
    pub(super) fn complete(&mut self, cx: &mut Cx, rq: RqId) {
        let Some(q) = self.core.queue_of(rq) else {
            return;
        };
        self.learn_depth();
        self.core.in_driver -= 1;
        self.queue_mut(q).dispatched -= 1;
        if self.queue(q).dispatched == 0 && !self.queue(q).busy {
            self.core.at_rest(q);
        }
        if self.queue(q).sync {
            self.sync_flight -= 1;
            let ioc = cx.rqs[rq].ioc;
            self.core.procs.at(ioc.idx()).own.last_end_j = cx.jiffies();
        }
        let x = self.queue(q);
        if x.softrt_update && x.dispatched == 0 && x.sort.is_empty() {
            self.queue_mut(q).soft_rt_next_start_j = self.softrt_next(cx, q);
        }
        if self.core.serving == Some(q) {
            if self.queue(q).own.budget_new {
                self.start_clock(cx, q);
            }
            if self.must_idle(q) {
                // The original returns here and does not ask for a run of the device's queue.
                self.arm(cx, q);
            } else if self.may_expire(cx, q) {
                self.expire(cx, q, false, Reason::Timeout);
            } else if self.core.empty(q)
                && (self.queue(q).dispatched == 0 || !self.must_not_expire(q))
            {
                self.expire(cx, q, false, Reason::NoMore);
            }
        }
        if self.core.in_driver == 0 {
            self.schedule(cx);
        }
    }
    /// `bfq_set_budget_timeout`: starts the time of a slot, at the first completion of the slot.
    fn start_clock(&mut self, cx: &Cx, q: QId) {
        let e = self.core.ent(q);
        let factor = if self.queue(q).wr_max_j == self.set.wr_rt_max_time_j {
            1
        } else {
            e.weight / e.orig_weight.max(1)
        };
        self.slot_start = cx.now();
        let t = self.set.timeout_j[usize::from(self.queue(q).sync)];
        let x = self.queue_mut(q);
        x.own.budget_new = false;
        x.budget_timeout_j = cx.jiffies() + t * factor;
    }
    /// `bfq_arm_slice_timer`: starts to idle for the queue in service, which is empty.
    fn arm(&mut self, cx: &mut Cx, q: QId) {
        match self.slot_user {
            SlotUser::Process(ioc) if cx.alive(ioc) => {}
            _ => return,
        }
        self.queue_mut(q).waiting = true;
        let raised = self.core.raised(q);
        let symmetric = !self.core.wf.weights.varied();
        let x = &self.queue(q).own;
        let hurry = enough(x.seek_samples)
            && ((self.seeky(q) && self.core.ent(q).service > self.core.max_budget() / 8)
                || x.constantly_seeky)
            && !raised
            && symmetric;
        let mut wait_j = self.set.slice_idle_j;
        if hurry {
            wait_j = wait_j.min(cx.ms_to_jiffies(SEEKY_IDLE_MS));
        } else if raised {
            wait_j *= 3;
        }
        self.idling_since = cx.now();
        let hz = cx.hz();
        cx.why(rules::IDLE_ARMED, || {
            self.core.about(q).says(format!(
                "idles for {{who}}, at most {} ms",
                wait_j * 1000 / hz
            ))
        });
        cx.arm_jiffy_for(IDLE_TIMER, cx.jiffies() + wait_j, || self.core.about(q));
    }
    /// `bfq_idle_slice_timer`: ends the idle wait, because the timer fired.
    pub(super) fn idle_over(&mut self, cx: &mut Cx) {
        if let Some(q) = self.core.serving {
            if self.budget_timeout(cx, q) {
                self.expire(cx, q, true, Reason::Timeout);
            } else if self.core.empty(q) {
                self.expire(cx, q, true, Reason::TooIdle);
            }
        }
        self.schedule(cx);
    }

    /// `bfq_update_hw_tag`: detects whether the device queues commands.
    fn learn_depth(&mut self) {
        let c = &mut self.core;
        c.max_in_driver = c.max_in_driver.max(c.in_driver);
        if c.hw_tag == 1 || c.in_driver + c.queued < HW_TAG_LOAD {
            return;
        }
        c.hw_tag_samples += 1;
        if c.hw_tag_samples > HW_TAG_SAMPLES {
            c.hw_tag = i8::from(c.max_in_driver > HW_TAG_LOAD);
            c.max_in_driver = 0;
            c.hw_tag_samples = 0;
        }
    }

    /// `bfq_update_peak_rate`: computes the rate of the slot and updates the estimated rate of the
    /// device. Returns true if the queue counts as slow. `idled`: the slot ended when the device
    /// began to idle.
    fn judge(&mut self, cx: &Cx, q: QId, idled: bool, reason: Reason) -> bool {
        if !self.queue(q).sync || self.queue(q).own.budget_new {
            return false;
        }
        let end = if idled { self.idling_since } else { cx.now() };
        let us = end.since(self.slot_start).as_us();
        if us < SHORTEST_SLOT_US {
            return false;
        }
        let mut bw = (self.core.ent(q).service << RATE_SHIFT) / us;
        let timeout_ms = cx.clock().to_ms(self.set.timeout_j[1]);
        if us > RATE_SLOT_US {
            let mut update = false;
            if bw > self.peak_rate || (!self.seeky(q) && reason == Reason::Timeout) {
                bw /= 8;
                if bw == 0 {
                    return false;
                }
                self.peak_rate = self.peak_rate * 7 / 8 + bw;
                update = true;
            }
            update |= self.peak_samples == PEAK_SAMPLES - 1;
            self.peak_samples = (self.peak_samples + 1).min(PEAK_SAMPLES);
            if self.peak_samples == PEAK_SAMPLES && update {
                self.tune(cx, timeout_ms);
            }
        }
        let b = self.core.ent(q).budget;
        if b <= self.core.max_budget() / 8 {
            return false;
        }
        sectors_in(bw, timeout_ms) > 4 * b / 3
    }
    fn tune(&mut self, cx: &Cx, timeout_ms: u64) {
        if self.core.user_budget == 0 {
            self.core.tuned_budget = sectors_in(self.peak_rate, timeout_ms);
        }
        let threshold = (self.device.rate[0] + self.device.rate[1]) / 2;
        if !self.slow_device && self.peak_rate < threshold {
            self.set_speed(cx, true);
        } else if self.slow_device && self.peak_rate > threshold {
            self.set_speed(cx, false);
        }
    }
    /// `bfq_calc_max_budget`: returns the maximum budget that follows from the estimated rate, in
    /// sectors. Used when a tunable is written.
    pub(super) fn estimated_budget(&self, cx: &Cx) -> u64 {
        if self.peak_samples < PEAK_SAMPLES {
            return crate::bfq::core::DEFAULT_MAX_BUDGET;
        }
        sectors_in(self.peak_rate, cx.clock().to_ms(self.set.timeout_j[1]))
    }

    /// `bfq_bfqq_expire`: ends a slot: decides whether the queue was slow, charges it, and computes
    /// the budget of its next slot.
    pub(super) fn expire(&mut self, cx: &mut Cx, q: QId, idled: bool, reason: Reason) {
        let slow = self.judge(cx, q, idled, reason);
        let e = self.core.ent(q);
        let (ent, left) = (self.queue(q).ent, e.left());
        if slow || (reason == Reason::Timeout && left >= e.budget / 3) {
            self.core.wf.serve(ent, left);
        }
        let s = self.core.ent(q).service;
        cx.why(rules::EXPIRED, || {
            let word = if slow { ", slow" } else { "" };
            self.core.about(q).says(format!(
                "{{who}} expires: {}{word}, charged {s}",
                reason.name()
            ))
        });
        self.queue_mut(q).service_from_backlogged += s;
        if self.seeky(q) && reason == Reason::Timeout {
            self.seeky_for_good(q);
        }
        if reason == Reason::TooIdle && s <= 2 * self.core.ent(q).budget / 10 {
            self.queue_mut(q).io_bound = false;
        }
        let raised = self.core.raised(q);
        if self.core.low_latency && !raised {
            self.queue_mut(q).last_wr_j = cx.jiffies();
        }
        if self.core.low_latency && self.set.softrt_rate > 0 && self.core.empty(q) {
            if self.queue(q).dispatched == 0 {
                self.queue_mut(q).soft_rt_next_start_j = self.softrt_next(cx, q);
            } else {
                let x = self.queue_mut(q);
                x.soft_rt_next_start_j = NEVER_J;
                x.softrt_update = true;
            }
        }
        self.next_budget(cx, q, reason);
        self.leave(cx, q);
    }
    /// `bfq_bfqq_softrt_next_start`: returns a jiffy. A request that arrives after it makes the
    /// queue soft real-time again.
    fn softrt_next(&self, cx: &Cx, q: QId) -> u64 {
        let x = self.queue(q);
        let by_rate = x.last_idle_backlogged_j
            + cx.hz() * x.service_from_backlogged / self.set.softrt_rate.max(1);
        by_rate.max(cx.jiffies() + self.set.slice_idle_j + 4)
    }
    /// `__bfq_bfqq_recalc_budget`: computes the budget of the next slot from the reason why this
    /// slot ended.
    fn next_budget(&mut self, cx: &Cx, q: QId, reason: Reason) {
        let (b, m, top) = (
            self.queue(q).max_budget,
            self.core.min_budget(),
            self.core.tuned_budget,
        );
        let mut budget = if !self.queue(q).sync {
            top
        } else {
            match reason {
                Reason::TooIdle if self.queue(q).dispatched > 0 => (2 * b).min(top),
                Reason::TooIdle if b > 5 * m => b - 4 * m,
                Reason::TooIdle => m,
                Reason::Timeout => (2 * b).min(top),
                Reason::Exhausted => (4 * b).min(top),
                Reason::NoMore | Reason::Preempted => return,
            }
        };
        if self.core.budgets_assigned >= crate::bfq::core::MIN_ASSIGNED
            && self.core.user_budget == 0
        {
            budget = budget.min(top);
        }
        self.queue_mut(q).max_budget = budget;
        let need = self.queue(q).next.map_or(0, |n| self.core.charge(cx, q, n));
        self.core.ent_mut(q).budget = budget.max(need);
    }
    /// `__bfq_bfqq_expire`: takes a queue out of service. The queue waits again, or becomes idle if
    /// it is empty.
    pub(super) fn leave(&mut self, cx: &mut Cx, q: QId) {
        let j = cx.jiffies();
        self.slot_user = SlotUser::Nobody;
        self.core.serving = None;
        cx.disarm(IDLE_TIMER);
        let seeky = self.seeky(q);
        let x = self.queue_mut(q);
        x.waiting = false;
        x.split |= x.shared && seeky;
        if x.sort.is_empty() {
            x.budget_timeout_j = j;
            self.core.del_busy(q, true, j);
        } else {
            self.core.requeue(q, true, j);
            self.core.pos_place(cx, q);
        }
        debug_assert!(!gt(self.core.ent(q).start, self.core.ent(q).finish));
    }
}
