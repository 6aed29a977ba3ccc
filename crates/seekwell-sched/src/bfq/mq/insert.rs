//! Insertion of a request: statistics, the change of its queue from idle to busy, preemption,
//! bursts.

use super::{BURST_LARGE, Bfq, IDLE_TIMER, LARGE, SEEK_FAR, WR_COEFF, WR_WEIGHT};
use crate::bfq::core::{QId, Reason, SOFTRT_RATE};
use crate::bfq::rules;
use crate::cx::Cx;
use seekwell_core::{IocId, NSEC_PER_MSEC, RqId, Sector};

/// A decaying mean is used if its sample count is above this, that is from the third sample on.
const ENOUGH: u64 = 80;
/// The test for I/O-bound queues looks back at most this far, ns.
const IO_WINDOW: u64 = 200 * NSEC_PER_MSEC;

impl Bfq {
    /// `__bfq_insert_request`: adds a request to its queue and updates the statistics.
    pub(super) fn insert_request(&mut self, cx: &mut Cx, q: QId, rq: RqId) {
        let ioc = cx.rqs[rq].ioc;
        let q = self.place(cx, q, rq, ioc);
        self.think_time(cx, q);
        self.short_think(cx, q, ioc);
        self.seek_history(cx, q, rq);
        self.add(cx, q, rq, ioc);
        let sync = cx.rqs[rq].sync;
        let at = cx.now() + self.set.fifo_expire[usize::from(sync)];
        self.core.add_fifo(q, rq, at.0);
        self.enqueued(cx, q, rq);
    }

    /// `bfq_update_io_thinktime`: updates the mean time from a completion to the next request.
    fn think_time(&mut self, cx: &Cx, q: QId) {
        let limit = 2 * self.set.slice_idle.0;
        let x = self.queue_mut(q);
        if x.dispatched > 0 || x.busy {
            return;
        }
        let t = &mut x.own.think;
        // Unsigned arithmetic: for a queue created at this instant, `last_end` is one nanosecond in
        // the future.
        let e = cx.now().0.wrapping_sub(t.last_end).min(limit);
        t.samples = (7 * t.samples + 256) / 8;
        t.total = (7 * t.total + 256 * e) / 8;
        t.mean = (t.total + 128) / t.samples;
    }
    /// `bfq_update_has_short_ttime`: decides whether the think time of the process is short.
    fn short_think(&mut self, cx: &Cx, q: QId, ioc: IocId) {
        let j = cx.jiffies();
        let x = self.queue(q);
        if !x.sync || self.idle_class(q) || self.set.slice_idle.0 == 0 {
            return;
        }
        if x.own.split_j + self.spans.min_idle >= j {
            return;
        }
        let t = &x.own.think;
        let long = t.samples > ENOUGH && t.mean > self.set.slice_idle.0 / 2;
        let short = cx.alive(ioc) && !long;
        let changed = short != x.short_think;
        let due = x.own.decrease_j + self.spans.inject_flip <= j || !short;
        let unmeasured = x.own.last_serv == 0;
        self.queue_mut(q).short_think = short;
        if changed && unmeasured && due {
            self.reset_inject_limit(cx, q);
        }
    }
    /// Returns true if a request is far enough from `last` to be a seek.
    pub(super) fn is_seek(&self, cx: &Cx, last: Sector, rq: RqId) -> bool {
        let r = &cx.rqs[rq];
        last.0 != 0
            && r.sector.0.abs_diff(last.0) > SEEK_FAR
            && (!self.flash || r.sectors.0 < LARGE)
    }
    /// `bfq_update_io_seektime`: records one bit per request: 1 for a seek. A soft real-time queue
    /// whose last 32 requests are all seeks loses its raised weight.
    fn seek_history(&mut self, cx: &mut Cx, q: QId, rq: RqId) {
        let seek = self.is_seek(cx, self.queue(q).last_request_pos, rq);
        let x = self.queue_mut(q);
        x.own.history = (x.own.history << 1) | u32::from(seek);
        let softrt = self.core.raised(q) && self.queue(q).wr_max_j == self.spans.wr_rt;
        if softrt && self.totally_seeky(q) {
            if self.queue(q).wr_switch_j + self.wr_duration_j() < cx.jiffies() {
                cx.why(rules::SEEKY_LOWERED, || {
                    self.core.about(q).says(
                        "all requests of {who} are seeks: its weight is not raised any longer",
                    )
                });
                self.end_wr(cx, q);
            } else {
                self.back_to_interactive(q);
                self.core.ent_mut(q).changed = true;
            }
        }
    }
    /// `bfq_update_io_intensity`: decides whether the queue is I/O-bound, that is idle for at most
    /// a fifth of the time.
    fn io_intensity(&mut self, now: u64, q: QId) {
        let x = self.queue_mut(q);
        let quiet = x.sort.is_empty() && x.dispatched == 0;
        let m = &mut x.own;
        if quiet {
            m.tot_idle = m.tot_idle.wrapping_add(now.wrapping_sub(m.think.last_end));
        }
        if m.just_created {
            return;
        }
        let elapsed = now.wrapping_sub(m.io_start);
        let bound = m.tot_idle.wrapping_mul(5) <= elapsed;
        if elapsed > IO_WINDOW {
            m.io_start = now - (elapsed >> 1);
            m.tot_idle >>= 1;
        }
        x.io_bound = bound;
    }

    /// `bfq_add_request`: sorts the request in, activates its queue and decides about raising.
    fn add(&mut self, cx: &mut Cx, q: QId, rq: RqId, ioc: IocId) {
        let (j, now) = (cx.jiffies(), cx.now().0);
        let was = self.core.ent(q).coeff;
        if self.queue(q).sync {
            if self.core.procs[ioc].own.requests <= 1 {
                self.first_of_process(cx, q);
            }
            self.io_intensity(now, q);
        }
        let new_next = self.core.add_sorted(cx, q, rq);
        if new_next && self.core.use_pos {
            self.core.pos_place(cx, q);
        }
        let mut interactive = false;
        if !self.queue(q).busy {
            interactive = self.awake(cx, q, rq, ioc, was);
        } else {
            let apart = self.queue(q).last_wr_j + self.spans.inter_arr_async;
            if self.core.low_latency && was == 1 && !cx.rqs[rq].sync && j > apart {
                cx.why(rules::ASYNC_RAISED, || {
                    "an async queue is raised".to_owned()
                });
                self.core.set_coeff(q, WR_COEFF);
                self.queue_mut(q).wr_max_j = self.wr_duration_j();
                self.core.wr_busy += 1;
            }
            if new_next {
                self.core.fit_budget(cx, q);
            }
        }
        if self.core.low_latency && (was == 1 || !self.core.raised(q) || interactive) {
            self.queue_mut(q).last_wr_j = j;
        }
    }

    /// `bfq_bfqq_handle_idle_busy_switch`: changes the queue from idle to busy. Returns true if the
    /// queue counts as interactive.
    fn awake(&mut self, cx: &mut Cx, q: QId, rq: RqId, ioc: IocId, was: u64) -> bool {
        let j = cx.jiffies();
        let x = self.queue(q);
        let rests = x.dispatched == 0;
        let long_idle = rests && j > x.budget_timeout_j + self.spans.min_idle;
        let in_time = cx.now().0 <= x.own.think.last_end + 3 * self.set.slice_idle.0;
        let in_burst = x.in_large_burst;
        let common = self.core.ent(q).new_weight == WR_WEIGHT;
        let soft_rt = SOFTRT_RATE > 0
            && !self.totally_seeky(q)
            && !in_burst
            && j > x.soft_rt_next_start_j
            && rests
            && common;
        let interactive = !in_burst && long_idle && common;
        let own = x.owner.is_some() || self.core.procs[ioc].own.stably_merged;
        let deserves =
            self.core.low_latency && (was > 1 || (x.sync && own && (interactive || soft_rt)));
        let wants = self.activation_budget(cx, q, rq, in_time);
        let x = self.queue(q);
        if !x.own.just_created && long_idle && j > x.budget_timeout_j + self.spans.burst_leave {
            self.core.burst_remove(q);
            self.queue_mut(q).in_large_burst = false;
        }
        self.queue_mut(q).own.just_created = false;
        let split_j = self.queue(q).own.split_j;
        if self.core.low_latency && j > split_j + self.spans.min_idle {
            self.raise(cx, q, was, deserves, interactive, in_burst, soft_rt);
            if was != self.core.ent(q).coeff {
                self.core.ent_mut(q).changed = true;
            }
        }
        let x = self.queue_mut(q);
        x.last_idle_backlogged_j = j;
        x.service_from_backlogged = 0;
        x.softrt_update = false;
        let backshift = std::mem::take(&mut x.own.non_blocking);
        self.core.add_busy(q, backshift, j);
        self.move_to_front_of_woken(q);
        self.preempt(cx, q, wants);
        interactive
    }
    /// `bfq_bfqq_update_budg_for_activation`: sets the budget of the new slot. Returns true if the
    /// queue continues with the rest of its last budget.
    fn activation_budget(&mut self, cx: &Cx, q: QId, rq: RqId, in_time: bool) -> bool {
        let e = self.core.ent(q);
        let left = e.left();
        if self.queue(q).own.non_blocking && in_time && left > 0 {
            let b = left.min(self.queue(q).max_budget);
            let e = self.core.ent_mut(q);
            (e.budget, e.service) = (b, 0);
            return true;
        }
        let next = self.queue(q).next.unwrap_or(rq);
        let b = self.queue(q).max_budget.max(self.core.charge(cx, q, next));
        let e = self.core.ent_mut(q);
        (e.budget, e.service) = (b, 0);
        self.queue_mut(q).own.non_blocking = false;
        false
    }
    /// `bfq_bfqq_handle_idle_busy_switch` (its last part): lets `q` preempt the queue in service if
    /// one of the conditions holds. `wants` is true if `q` continues with the rest of its budget.
    fn preempt(&mut self, cx: &mut Cx, q: QId, wants: bool) {
        let Some(p) = self.core.serving else { return };
        let more = (wants && self.core.ent(q).coeff >= self.core.ent(p).coeff)
            || self.higher(q, p)
            || !self.better_to_idle(cx, p);
        if more && self.core.wf.next_differs() {
            cx.why(rules::PREEMPTION, || {
                self.core
                    .about(q)
                    .and(self.core.about(p).task)
                    .says("{who} preempts {other}")
            });
            self.expire(cx, p, false, Reason::Preempted);
        }
    }
    /// `bfq_bfqq_higher_class_or_weight`: returns true if `q` has a higher class or a larger weight
    /// than `p`. If their groups differ, the weights of the groups are compared.
    fn higher(&self, q: QId, p: QId) -> bool {
        let (a, b) = (self.core.ent(q), self.core.ent(p));
        if a.class < b.class {
            return true;
        }
        if a.node == b.node {
            return a.weight > b.weight;
        }
        let wf = &self.core.wf;
        let weight = |e: u32| {
            wf.parent(e)
                .map_or(wf.entity(e).weight, |g| wf.entity(g).weight)
        };
        weight(self.queue(q).ent) > weight(self.queue(p).ent)
    }

    /// `bfq_handle_burst`: decides whether a new queue is alone, in a burst, or in a large burst.
    pub(super) fn handle_burst(&mut self, cx: &mut Cx, q: QId) {
        let j = cx.jiffies();
        let x = self.queue(q);
        let split_lately = x.own.split_j + self.spans.split_burst >= j;
        if self.core.in_burst_list(q) || x.in_large_burst || split_lately {
            return;
        }
        if j > self.core.last_in_burst_j + self.spans.burst || x.group != self.core.burst_group {
            let alone = self.core.busy_total() == 0;
            self.core.burst_restart(q, alone);
        } else if self.core.large_burst {
            self.queue_mut(q).in_large_burst = true;
        } else {
            self.core.burst_grow(cx, q, BURST_LARGE);
        }
        self.core.last_in_burst_j = j;
    }

    /// `bfq_rq_enqueued`: ends an idle wait if the new request is worth it.
    fn enqueued(&mut self, cx: &mut Cx, q: QId, rq: RqId) {
        let r = &cx.rqs[rq];
        let (sync, sectors, end) = (r.sync, r.sectors.0, r.end());
        self.queue_mut(q).last_request_pos = end;
        if self.core.serving != Some(q) || !self.queue(q).waiting {
            return;
        }
        let small = self.queue(q).queued[usize::from(sync)] == 1 && sectors < 32;
        let late = self.budget_timeout(cx, q);
        if small && self.boosts(q) && !late {
            cx.why(rules::AWAITED_IS_SMALL, || {
                "one small request does not end the wait".to_owned()
            });
            return;
        }
        self.queue_mut(q).waiting = false;
        cx.disarm(IDLE_TIMER);
        if late {
            self.expire(cx, q, false, Reason::Timeout);
        }
    }
}
