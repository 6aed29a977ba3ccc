//! Insertion of a request: statistics of the queue, activation, weight raising.

use super::{BURST_LARGE, BfqSq, IDLE_TIMER, IN_TIME_ENOUGH};
use crate::bfq::core::{QId, Reason};
use crate::bfq::rules;
use crate::cx::Cx;
use seekwell_core::{IocId, RqId};

/// Returns true if a decaying mean has enough samples to be used (from the third sample on).
pub(super) fn enough(samples: u64) -> bool {
    samples > 80
}

impl BfqSq {
    /// `bfq_insert_request`: adds a request to its queue and updates the statistics.
    pub(super) fn insert_request(&mut self, cx: &mut Cx, rq: RqId) {
        let ioc = cx.rqs[rq].ioc;
        let q = self.place(cx, rq, ioc);
        self.add(cx, q, rq, ioc);
        if let Some(owner) = self.queue(q).owner {
            self.core.procs[owner].own.wr_left_j = 0;
        }
        let sync = cx.rqs[rq].sync;
        let at = cx.jiffies() + self.set.fifo_expire_j[usize::from(sync)];
        self.core.add_fifo(q, rq, at);
        self.enqueued(cx, q, rq, ioc);
    }

    /// `bfq_add_request`: sorts the request in, activates its queue and decides about raising.
    fn add(&mut self, cx: &mut Cx, q: QId, rq: RqId, ioc: IocId) {
        let j = cx.jiffies();
        let was_raised = self.core.raised(q);
        let new_next = self.core.add_sorted(cx, q, rq);
        if new_next {
            self.core.pos_place(cx, q);
        }
        let mut interactive = false;
        if !self.queue(q).busy {
            interactive = self.awake(cx, q, rq, ioc, was_raised);
        } else {
            let apart = self.queue(q).last_wr_j + self.set.wr_min_inter_arr_async_j;
            if self.core.low_latency && !was_raised && !cx.rqs[rq].sync && j > apart {
                cx.why(rules::ASYNC_RAISED, || {
                    "an async queue is raised".to_owned()
                });
                self.core.set_coeff(q, self.set.wr_coeff);
                let d = self.wr_duration_j();
                self.queue_mut(q).wr_max_j = d;
                self.core.wr_busy += 1;
            }
            if new_next {
                self.core.fit_budget(cx, q);
            }
        }
        if self.core.low_latency && (!was_raised || !self.core.raised(q) || interactive) {
            self.queue_mut(q).last_wr_j = j;
        }
    }

    /// `bfq_add_request`: changes the queue from idle to busy. Returns true if the queue counts as
    /// interactive.
    fn awake(&mut self, cx: &mut Cx, q: QId, rq: RqId, ioc: IocId, was_raised: bool) -> bool {
        let j = cx.jiffies();
        let long_idle = j > self.queue(q).budget_timeout_j + self.set.wr_min_idle_j;
        if self.queue(q).sync && !self.r5 {
            let member = self.core.in_burst_list(q) || self.queue(q).in_large_burst;
            self.handle_burst(cx, q, long_idle);
            if !member {
                self.core.last_in_burst_j = j;
            }
        }
        let excluded = self.excluded(q);
        let soft_rt =
            self.set.softrt_rate > 0 && !excluded && j > self.queue(q).soft_rt_next_start_j;
        let interactive = !excluded && long_idle;
        let next = self.queue(q).next.unwrap_or(rq);
        let b = self.queue(q).max_budget.max(self.core.charge(cx, q, next));
        self.core.ent_mut(q).budget = b;
        self.regain_io_bound(q, j, ioc);
        if self.core.low_latency {
            if !self.queue(q).own.just_split {
                self.raise(cx, q, was_raised, interactive, soft_rt, excluded);
            }
            if was_raised != self.core.raised(q) {
                self.core.ent_mut(q).changed = true;
            }
        }
        let x = self.queue_mut(q);
        x.last_idle_backlogged_j = j;
        x.service_from_backlogged = 0;
        x.softrt_update = false;
        self.core.add_busy(q, false, j);
        interactive
    }

    fn regain_io_bound(&mut self, q: QId, j: u64, ioc: IocId) {
        let in_time = j < self.core.procs[ioc].own.last_end_j + self.set.slice_idle_j;
        let x = self.queue_mut(q);
        if x.io_bound {
            return;
        }
        x.own.in_time = if in_time { x.own.in_time + 1 } else { 0 };
        if x.own.in_time >= IN_TIME_ENOUGH {
            x.io_bound = true;
        }
    }

    /// `bfq_add_request`: decides whether the weight of the queue is raised, and for how long.
    fn raise(
        &mut self,
        cx: &mut Cx,
        q: QId,
        was_raised: bool,
        interactive: bool,
        soft_rt: bool,
        excluded: bool,
    ) {
        let (j, rt) = (cx.jiffies(), self.set.wr_rt_max_time_j);
        if !was_raised {
            let own = !self.queue(q).sync || self.queue(q).owner.is_some();
            if own && (interactive || soft_rt) {
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
                self.core.set_coeff(q, self.set.wr_coeff);
                self.queue_mut(q).wr_max_j = if interactive {
                    self.wr_duration_j()
                } else {
                    rt
                };
            }
        } else if interactive {
            self.queue_mut(q).wr_max_j = self.wr_duration_j();
        } else if excluded || (self.queue(q).wr_max_j == rt && !soft_rt) {
            cx.why(rules::RAISING_REVOKED, || {
                self.core
                    .about(q)
                    .says("the weight of {who} is not raised any longer")
            });
            self.core.set_coeff(q, 1);
        } else if self.queue(q).last_wr_j + self.queue(q).wr_max_j < j + rt && soft_rt {
            let x = self.queue_mut(q);
            x.last_wr_j = j;
            x.wr_max_j = rt;
        }
    }

    /// `bfq_handle_burst`: detects queues that were activated shortly after one another.
    fn handle_burst(&mut self, cx: &mut Cx, q: QId, long_idle: bool) {
        if long_idle {
            self.core.burst_remove(q);
            self.queue_mut(q).in_large_burst = false;
        }
        if self.core.in_burst_list(q) || self.queue(q).in_large_burst {
            return;
        }
        if cx.jiffies() > self.core.last_in_burst_j + self.burst_interval_j {
            self.core.burst_restart(q, true);
        } else if self.core.large_burst {
            self.queue_mut(q).in_large_burst = true;
        } else {
            self.core.burst_grow(cx, q, BURST_LARGE);
        }
    }

    /// `bfq_rq_enqueued`: updates the statistics, and ends an idle wait if the request is worth it.
    fn enqueued(&mut self, cx: &mut Cx, q: QId, rq: RqId, ioc: IocId) {
        self.think_time(cx, ioc);
        self.seek_distance(cx, q, rq);
        if !self.seeky(q) {
            self.seeky_no_more(q);
        }
        if self.core.ent(q).service > self.core.max_budget() / 8 || !self.seeky(q) {
            self.idle_window(cx, q, ioc);
        }
        let end = cx.rqs[rq].end();
        let x = self.queue_mut(q);
        x.own.just_split = false;
        x.last_request_pos = end;
        if self.core.serving != Some(q) || !self.queue(q).waiting {
            return;
        }
        let r = &cx.rqs[rq];
        let small = self.queue(q).queued[usize::from(r.sync)] == 1 && r.sectors.0 < 32;
        let late = self.budget_timeout(cx, q);
        if small && !late {
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
        cx.run_queue();
    }

    /// `bfq_update_io_thinktime`: updates the mean time from a completion to the next request.
    fn think_time(&mut self, cx: &Cx, ioc: IocId) {
        let limit = 2 * self.set.slice_idle_j;
        let p = &mut self.core.procs.at(ioc.idx()).own;
        let e = (cx.jiffies() - p.last_end_j).min(limit);
        p.think_samples = (7 * p.think_samples + 256) / 8;
        p.think_total = (7 * p.think_total + 256 * e) / 8;
        p.think_mean = (p.think_total + 128) / p.think_samples;
    }

    /// `bfq_update_io_seektime`: updates the mean distance between requests, in sectors.
    fn seek_distance(&mut self, cx: &Cx, q: QId, rq: RqId) {
        let at = cx.rqs[rq].sector.0;
        let x = self.queue_mut(q);
        let d = at.abs_diff(x.last_request_pos.0);
        let s = &mut x.own;
        let d = match s.seek_samples {
            0 => 0,
            1..=60 => d.min(s.seek_mean * 4 + 2 * 1024 * 1024),
            _ => d.min(s.seek_mean * 4 + 2 * 1024 * 64),
        };
        s.seek_samples = (7 * s.seek_samples + 256) / 8;
        s.seek_total = (7 * s.seek_total + 256 * d) / 8;
        s.seek_mean = (s.seek_total + s.seek_samples / 2) / s.seek_samples;
    }

    fn seeky_no_more(&mut self, q: QId) {
        let x = self.queue_mut(q);
        if std::mem::take(&mut x.own.constantly_seeky) && (x.busy || x.dispatched > 0) {
            self.core.engaged[1] -= 1;
        }
    }
    pub(super) fn seeky_for_good(&mut self, q: QId) {
        let x = self.queue_mut(q);
        if !std::mem::replace(&mut x.own.constantly_seeky, true) && (x.busy || x.dispatched > 0) {
            self.core.engaged[1] += 1;
        }
    }

    /// `bfq_update_idle_window`: decides whether the device should idle for the queue.
    fn idle_window(&mut self, cx: &Cx, q: QId, ioc: IocId) {
        if !self.queue(q).sync || self.idle_class(q) || self.queue(q).own.just_split {
            return;
        }
        let raised = self.core.raised(q);
        let p = &self.core.procs[ioc].own;
        let on = if !cx.alive(ioc)
            || self.set.slice_idle_j == 0
            || (self.core.hw_tag != 0 && self.seeky(q) && !raised)
        {
            false
        } else if enough(p.think_samples) {
            raised || p.think_mean <= self.set.slice_idle_j
        } else {
            return;
        };
        self.queue_mut(q).short_think = on;
    }
}
