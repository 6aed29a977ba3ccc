//! CFQ 3.4 and later: handles completions, idles, handles the idle timer, and tests whether the
//! device queues commands.

use super::rules;
use super::{Cfq, IDLE_TIMER};
use crate::cx::Cx;
use seekwell_core::RqId;

/// Number of requests for the test whether the device queues commands. A completion counts as a
/// sample only if more requests than this are queued, or are in the driver. The device queues
/// commands if at least this number of requests was in the driver at the same time.
const HW_QUEUE_MIN: u32 = 5;
/// The test whether the device queues commands decides after more than this number of samples.
const HW_SAMPLES: u32 = 50;

impl Cfq {
    /// `cfq_schedule_dispatch`: requests that the block layer runs the device queue later, if any
    /// CFQ queue has requests.
    #[inline]
    pub(super) fn kick(&self, cx: &mut Cx) {
        if self.busy > 0 {
            cx.kick();
        }
    }

    /// `cfq_update_hw_tag`: detects whether the device works on several requests at once.
    fn detect_queueing(&mut self) {
        self.est_depth = self.est_depth.max(self.in_driver);
        if self.hw_tag == 1 {
            return;
        }
        if self.rq_queued <= HW_QUEUE_MIN && self.in_driver <= HW_QUEUE_MIN {
            return;
        }
        if let Some(a) = self.active {
            let x = self.queue(a);
            if x.idle_window
                && x.dispatched + x.held.len() < HW_QUEUE_MIN
                && self.in_driver < HW_QUEUE_MIN
            {
                return;
            }
        }
        self.samples += 1;
        if self.samples > HW_SAMPLES {
            self.hw_tag = i8::from(self.est_depth >= HW_QUEUE_MIN);
        }
    }

    /// `cfq_completed_request`: updates the state after request `rq` completed.
    pub(super) fn request_completed(&mut self, cx: &mut Cx, rq: RqId) {
        let now = cx.jiffies();
        let q = self.queue_of(rq);
        self.detect_queueing();
        self.in_driver -= 1;
        let x = self.queue_mut(q);
        x.dispatched -= 1;
        let (group, by_queue) = (x.group, x.sync as usize);
        self.group_mut(group).dispatched -= 1;
        self.in_flight[by_queue] -= 1;
        let sync = cx.rqs[rq].sync;
        if sync {
            let (ioc, start) = (cx.rqs[rq].ioc, cx.clock().jiffies(cx.rqs[rq].start));
            self.ctx.at(ioc).think.last_end = now;
            let on = self.queue(q).tree.filter(|_| self.queue(q).busy);
            let id = on.unwrap_or_else(|| self.tree_for(q));
            self.group_mut(group).trees[id.idx()].think.last_end = now;
            if now >= start + self.set.fifo_expire_j[1] {
                self.last_delayed_sync = now;
            }
        }
        self.group_mut(group).think.last_end = now;
        if self.active == Some(q) {
            self.active_completed(cx, q, sync);
        }
        if self.in_driver == 0 {
            self.kick(cx);
        }
    }

    /// `cfq_completed_request`: handles a completion of the active queue. The slice of the queue
    /// starts (`cfq_set_prio_slice`) or ends, or the device starts to idle for the queue.
    fn active_completed(&mut self, cx: &mut Cx, q: u32, sync: bool) {
        let now = cx.jiffies();
        if self.queue(q).slice_new {
            let slice = self.scaled_slice(q);
            let x = self.queue_mut(q);
            x.slice_start = now;
            x.allocated_slice = slice;
            x.slice_end = now + slice;
            x.slice_new = false;
            cx.why(rules::SLICE_STARTS, || {
                self.about(q)
                    .says(format!("the slice of {{who}} starts: {slice} jiffies"))
            });
        }
        if self.should_wait_busy(cx, q) {
            let extra = match self.set.slice_idle_j {
                0 => self.set.group_idle_j,
                idle => idle,
            };
            let x = self.queue_mut(q);
            x.slice_end = now + extra;
            x.wait_busy = true;
            cx.why(rules::WAIT_BUSY, || {
                self.about(q)
                    .says("the last queue of its group gets time for one more request")
            });
        }
        let x = self.queue(q);
        if x.slice_used(now) || x.is_idle() {
            self.expire(cx, q, true);
        } else if sync && x.held.is_empty() && self.cooperator(cx, q).is_none() {
            self.arm(cx, q);
        }
    }

    /// `cfq_should_wait_busy`: returns true if `q` is the only busy queue of its group, and the
    /// slice of `q` has ended or will end before the next request of the process arrives.
    fn should_wait_busy(&self, cx: &Cx, q: u32) -> bool {
        let now = cx.jiffies();
        let x = self.queue(q);
        let g = self.group(x.group);
        if !x.held.is_empty() || g.busy > 1 || g.think.big(self.set.group_idle_j) {
            return false;
        }
        let left = x.slice_end.wrapping_sub(now);
        x.slice_used(now) || self.thinks_longer_than(left) || left == 1
    }
    /// Returns true if the mean think time of the active io context is longer than `left` jiffies.
    fn thinks_longer_than(&self, left: u64) -> bool {
        let mean = self.ctx.active().and_then(|c| c.think.mean());
        mean.is_some_and(|mean| left < mean)
    }

    /// `cfq_arm_slice_timer`: starts to idle for the active queue, which is empty.
    fn arm(&mut self, cx: &mut Cx, q: u32) {
        let now = cx.jiffies();
        if !cx.queue.rotational && self.hw_tag != 0 {
            return;
        }
        let for_group = !self.should_idle(cx, q);
        if for_group && self.set.group_idle_j == 0 {
            return;
        }
        let x = self.queue(q);
        if x.dispatched > 0 || !self.ctx.active_alive(cx) {
            return;
        }
        if self.thinks_longer_than(x.slice_end.wrapping_sub(now)) {
            cx.why(rules::THINKS_TOO_LONG, || {
                self.about(q)
                    .says("{who} thinks longer than its slice lasts")
            });
            return;
        }
        if for_group && self.group(x.group).busy > 1 {
            return;
        }
        let wait = match for_group {
            true => self.set.group_idle_j,
            false => self.set.slice_idle_j,
        };
        self.queue_mut(q).wait_request = true;
        cx.arm_jiffy_for(IDLE_TIMER, now + wait, || self.about(q));
        let hz = cx.hz();
        cx.why(rules::IDLE_ARMED, || {
            let wait_ms = wait * 1000 / hz;
            self.about(q)
                .says(format!("idles for {{who}}, at most {wait_ms} ms"))
        });
    }

    /// `cfq_idle_slice_timer`: ends the idle wait, because the idle timer fired.
    pub(super) fn idle_timer(&mut self, cx: &mut Cx) {
        if let Some(a) = self.active {
            let x = self.queue(a);
            if !x.must_dispatch {
                if !x.slice_used(cx.jiffies()) {
                    if self.busy == 0 {
                        return;
                    }
                    if !x.held.is_empty() {
                        return self.kick(cx);
                    }
                    self.queue_mut(a).deep = false;
                }
                cx.why(rules::IDLE_IN_VAIN, || {
                    self.about(a)
                        .says("no request of {who} arrived during the idle wait")
                });
                self.expire(cx, a, false);
            }
        }
        self.kick(cx);
    }
}
