//! Weight raising: decides which queues are raised, for how long, and when it ends.

use super::{Bfq, WR_COEFF, WR_SOFTRT};
use crate::bfq::core::{QId, SOFTRT_RATE};
use crate::bfq::rules;
use crate::cx::Cx;

/// An interactive queue is raised for at most this many sectors of service.
const WR_SERVICE: u64 = 120_000;

impl Bfq {
    /// `bfq_wr_duration`: returns how long an interactive queue is raised, in jiffies.
    pub(super) fn wr_duration_j(&self) -> u64 {
        let d = self.wr_prod / self.peak_rate.max(1);
        d.clamp(self.spans.wr_shortest, self.spans.wr_longest)
    }
    /// `bfq_update_bfqq_wr_on_rq_arrival`: decides whether the weight of a queue that becomes busy
    /// is raised, and for how long.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn raise(
        &mut self,
        cx: &mut Cx,
        q: QId,
        was: u64,
        deserves: bool,
        interactive: bool,
        in_burst: bool,
        soft_rt: bool,
    ) {
        let (duration, rt) = (self.wr_duration_j(), self.spans.wr_rt);
        if was == 1 {
            if !deserves {
                return;
            }
            let kind = if interactive {
                "interactive"
            } else {
                "soft real-time"
            };
            cx.why(rules::QUEUE_RAISED, || {
                self.core
                    .about(q)
                    .says(format!("{{who}} is raised: {kind}"))
            });
            let x = self.core.queue_mut(q);
            if interactive {
                x.own.service_from_wr = 0;
                x.wr_max_j = duration;
                self.core.set_coeff(q, WR_COEFF);
            } else {
                x.wr_switch_j = 0;
                x.wr_max_j = rt;
                self.core.set_coeff(q, WR_SOFTRT);
            }
            let small = 2 * self.core.min_budget();
            let e = self.core.ent_mut(q);
            e.budget = e.budget.min(small);
        } else if interactive {
            self.core.set_coeff(q, WR_COEFF);
            self.queue_mut(q).wr_max_j = duration;
        } else if in_burst {
            cx.why(rules::RAISING_REVOKED, || {
                self.core
                    .about(q)
                    .says("{who} is part of a burst: its weight is not raised any longer")
            });
            self.core.set_coeff(q, 1);
        } else if soft_rt {
            if self.queue(q).wr_max_j != rt {
                let x = self.core.queue_mut(q);
                x.wr_switch_j = x.last_wr_j;
                x.wr_max_j = rt;
                self.core.set_coeff(q, WR_SOFTRT);
            }
            self.queue_mut(q).last_wr_j = cx.jiffies();
        }
    }
    /// `bfq_bfqq_end_wr`: ends the raising of a queue.
    pub(super) fn end_wr(&mut self, cx: &Cx, q: QId) {
        let (j, rt) = (cx.jiffies(), self.spans.wr_rt);
        let x = self.core.queue_mut(q);
        if x.wr_max_j != rt {
            x.soft_rt_next_start_j = j;
        }
        x.wr_max_j = 0;
        x.last_wr_j = j;
        if x.busy {
            self.core.wr_busy -= 1;
        }
        self.core.set_coeff(q, 1);
    }
    /// `switch_back_to_interactive_wr`: returns a queue to its interactive period. Its soft
    /// real-time period has ended, but the interactive period has not.
    pub(super) fn back_to_interactive(&mut self, q: QId) {
        let d = self.wr_duration_j();
        let x = self.core.queue_mut(q);
        x.wr_max_j = d;
        x.last_wr_j = x.wr_switch_j;
        self.core.ent_mut(q).coeff = WR_COEFF;
    }
    /// `bfq_update_wr_data`: ends the raising if it is due, and applies a change of weight. Runs
    /// after each dispatch.
    pub(super) fn update_raising(&mut self, cx: &mut Cx, q: QId) {
        let (j, rt) = (cx.jiffies(), self.spans.wr_rt);
        if self.core.raised(q) {
            let x = self.queue(q);
            let in_burst = x.in_large_burst;
            let over = j > x.last_wr_j + x.wr_max_j;
            let still_interactive = x.wr_max_j == rt && j <= x.wr_switch_j + self.wr_duration_j();
            if in_burst || (over && !still_interactive) {
                cx.why(rules::RAISING_ENDS, || {
                    self.core.about(q).says("raising of {who} ends")
                });
                self.end_wr(cx, q);
            } else if over {
                cx.why(rules::INTERACTIVE_AGAIN, || {
                    self.core.about(q).says("{who} is interactive again")
                });
                self.back_to_interactive(q);
                self.core.ent_mut(q).changed = true;
            }
            let x = self.queue(q);
            if self.core.raised(q) && x.wr_max_j != rt && x.own.service_from_wr > WR_SERVICE {
                cx.why(rules::ENOUGH_SERVICE, || {
                    self.core
                        .about(q)
                        .says("{who} has had its sectors at the raised weight")
                });
                self.end_wr(cx, q);
            }
        }
        let e = self.core.ent(q);
        if (e.weight > e.orig_weight) != e.raised() {
            let e = self.queue(q).ent;
            self.core.wf.apply_change(e, false);
        }
    }
    /// `bfq_bfqq_softrt_next_start`: returns a jiffy. A request that arrives after it makes the
    /// queue soft real-time again.
    pub(super) fn softrt_next(&self, cx: &Cx, q: QId) -> u64 {
        let x = self.queue(q);
        let by_rate = x.last_idle_backlogged_j + cx.hz() * x.service_from_backlogged / SOFTRT_RATE;
        by_rate
            .max(x.soft_rt_next_start_j)
            .max(cx.jiffies() + self.slice_idle_j(cx) + 4)
    }
}
