//! Merges of queues whose requests are close together, or that were created together.

use super::{Bfq, Saved, WR_COEFF};
use crate::bfq::core::{CLOSE, QId};
use crate::bfq::rules;
use crate::cx::Cx;
use seekwell_core::{Bio, IocId, RqId, Sector};

impl Bfq {
    /// `bfq_allow_bio_merge`: returns true if a bio may be merged into `rq`. The request must be in
    /// the queue of the bio's process, after a possible queue merge. A sync bio is never merged
    /// into an async request.
    pub(super) fn may_merge(&mut self, cx: &mut Cx, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
        let sync = bio.is_sync(cx.queue.era);
        if sync && !cx.rqs[rq].sync {
            return false;
        }
        let Some(mut q) = self.core.procs.at(ioc.idx()).queues[usize::from(sync)] else {
            return false;
        };
        if let Some(to) = self.partner(cx, q, bio.sector, ioc) {
            self.follow(cx, ioc, q, to);
            q = to;
        }
        self.core.queue_of(rq) == Some(q)
    }
    /// Returns the queue that a request goes to: the queue of its process, or a queue that was
    /// merged with it.
    pub(super) fn place(&mut self, cx: &mut Cx, q: QId, rq: RqId, ioc: IocId) -> QId {
        let at = cx.rqs[rq].sector;
        let Some(to) = self.partner(cx, q, at, ioc) else {
            return q;
        };
        self.core.bind(rq, to);
        if self.core.procs[ioc].queues[1] == Some(q) {
            self.follow(cx, ioc, q, to);
        }
        self.queue_mut(q).own.just_created = false;
        self.core.unbind_from(q);
        self.bury();
        to
    }
    fn follow(&mut self, cx: &mut Cx, ioc: IocId, q: QId, to: QId) {
        let mut at = q;
        while at != to {
            at = self.merge_queues(cx, ioc, at);
        }
    }

    /// `bfq_too_late_for_merging`: returns true if the queue has been active for too long to be
    /// merged.
    fn too_late(&self, cx: &Cx, q: QId) -> bool {
        let x = self.queue(q);
        x.service_from_backlogged > 0 && x.own.first_io_j + self.spans.merge_limit < cx.jiffies()
    }
    /// `bfq_may_be_close_cooperator`: returns true if queue `q` may be merged with queue `with`.
    fn compatible(&self, cx: &Cx, q: QId, with: QId) -> bool {
        !self.too_late(cx, with)
            && !self.idle_class(q)
            && self.core.class(q) == self.core.class(with)
            && !self.seeky(q)
            && !self.seeky(with)
            && self.queue(q).sync
            && self.queue(with).sync
    }
    /// `bfq_setup_cooperator`: plans a merge of `q` with a queue that works near `at`. Returns that
    /// queue.
    fn partner(&mut self, cx: &mut Cx, q: QId, at: Sector, ioc: IocId) -> Option<QId> {
        if let Some(mut to) = self.queue(q).redirect {
            while let Some(further) = self.queue(to).redirect {
                to = further;
            }
            return Some(to);
        }
        if self.flash_queueing {
            return None;
        }
        let x = self.queue(q);
        let j = cx.jiffies();
        // The delayed stable merge is not made for a queue that was merged after its creation.
        if x.sync
            && x.owner.is_some()
            && !x.own.just_created
            && self.core.procs[ioc].own.stable_with.is_some()
            && x.own.split_j + self.spans.stable < j
            && x.own.created_j + self.spans.stable < j
        {
            return self.late_stable_merge(q, ioc);
        }
        if self.too_late(cx, q) || self.core.busy_total() == 1 {
            return None;
        }
        if let Some(p) = self.core.serving
            && p != q
            && at.0.abs_diff(self.serving_last_pos.0) <= CLOSE
            && self.queue(p).group == self.queue(q).group
            && self.compatible(cx, q, p)
            && let Some(to) = self.core.arrange(q, p)
        {
            return Some(to);
        }
        let other = self.core.nearest(q, at)?;
        if other == q || !self.compatible(cx, q, other) {
            return None;
        }
        self.core.arrange(q, other)
    }

    /// `bfq_do_or_sched_stable_merge`: compares a new sync queue with the queue created last.
    /// Merges the two, plans a later merge, or does nothing. Returns the queue of the process.
    pub(super) fn adopt_or_merge(&mut self, cx: &mut Cx, ioc: IocId, q: QId) -> QId {
        let g = self.queue(q).group as usize;
        let born = self.queue(q).own.created_j;
        let last = self.core.groups[g].last_created.filter(|l| {
            let (a, b) = (self.core.ent(q), self.core.ent(*l));
            self.queue(*l).own.created_j + self.spans.stable >= born
                && self.queue(*l).group as usize == g
                && a.new_weight == b.new_weight
                && a.new_class == b.new_class
        });
        let Some(last) = last else {
            self.core.groups[g].last_created = Some(q);
            return q;
        };
        if self.queue(last).own.created_j + self.spans.burst < born {
            return q;
        }
        if !self.flash_queueing {
            self.queue_mut(last).stable_refs += 1;
            self.core.procs[ioc].own.stable_with = Some(last);
            return q;
        }
        let Some(into) = self.core.arrange(q, last) else {
            return q;
        };
        cx.why(rules::STABLE_MERGE, || {
            self.core
                .about(q)
                .and(self.core.about(into).task)
                .says("{who} joins {other} permanently")
        });
        self.mark_stable(ioc, into);
        self.queue_mut(q).owner = Some(ioc);
        self.merge_queues(cx, ioc, q)
    }
    fn mark_stable(&mut self, ioc: IocId, into: QId) {
        if let Some(owner) = self.queue(into).owner {
            self.core.procs[owner].own.stably_merged = true;
        }
        self.core.procs[ioc].own.stably_merged = true;
    }
    /// `bfq_setup_stable_merge`: makes the stable merge that was postponed when the queue was
    /// created. Returns the target queue.
    fn late_stable_merge(&mut self, q: QId, ioc: IocId) -> Option<QId> {
        let with = self.core.procs[ioc].own.stable_with.take()?;
        let nobody = self.queue(q).procs == 0 || self.queue(with).procs == 0;
        let into = if nobody || self.boosts(q) {
            None
        } else {
            self.core.arrange(q, with)
        };
        if let Some(into) = into {
            self.mark_stable(ioc, into);
        }
        self.queue_mut(with).stable_refs -= 1;
        self.core.free_if_unused(with);
        self.bury();
        into
    }

    /// `bfq_merge_bfqqs`: moves the process from `q` to the queue of the planned merge. Returns
    /// that queue.
    fn merge_queues(&mut self, cx: &mut Cx, ioc: IocId, q: QId) -> QId {
        let Some(into) = self.queue(q).redirect else {
            return q;
        };
        cx.why(rules::QUEUES_MERGED, || {
            self.core
                .about(q)
                .and(self.core.about(into).task)
                .says("{who} joins {other}")
        });
        self.save(cx, q);
        self.save(cx, into);
        let bound = std::mem::take(&mut self.queue_mut(q).io_bound);
        self.queue_mut(into).io_bound |= bound;
        let waker = self.queue(q).own.waker;
        if waker.is_some() && self.queue(into).own.waker.is_none() && waker != Some(into) {
            self.queue_mut(into).own.tentative = None;
            self.set_waker(into, waker);
        }
        self.hand_over_raising(q, into);
        self.core.adopt(ioc, into);
        let t = self.queue_mut(into);
        t.shared = true;
        (t.owner, t.pid) = (None, None);
        self.queue_mut(q).owner = None;
        self.reassign_created(q, Some(into));
        self.release(cx, q);
        into
    }
    fn hand_over_raising(&mut self, q: QId, into: QId) {
        let coeff = self.core.ent(q).coeff;
        if coeff == 1 {
            return;
        }
        if !self.core.raised(into) {
            let x = self.queue(q);
            let (max, last, switch) = (x.wr_max_j, x.last_wr_j, x.wr_switch_j);
            let t = self.queue_mut(into);
            (t.wr_max_j, t.last_wr_j, t.wr_switch_j) = (max, last, switch);
            let busy = t.busy;
            self.core.set_coeff(into, coeff);
            self.core.wr_busy += i64::from(busy);
        }
        self.core.wr_busy -= i64::from(self.queue(q).busy);
        self.core.set_coeff(q, 1);
    }
    /// If `q` is recorded as the queue created last, records `to` instead.
    pub(super) fn reassign_created(&mut self, q: QId, to: Option<QId>) {
        let g = self.queue(q).group as usize;
        let last = &mut self.core.groups[g].last_created;
        if *last == Some(q) {
            *last = to;
        }
    }

    /// `bfq_bfqq_save_state`: saves the state that the process gets back when it is split off.
    fn save(&mut self, cx: &Cx, q: QId) {
        let Some(owner) = self.queue(q).owner else {
            return;
        };
        let fresh = self.queue(q).own.just_created
            && !self.queue(q).in_large_burst
            && self.core.low_latency;
        let e = self.core.ent(q);
        let x = self.queue(q);
        let old = &self.core.procs[owner].own.saved;
        let mut s = Saved {
            short_think: x.short_think,
            io_bound: x.io_bound,
            in_large_burst: x.in_large_burst,
            in_burst_list: self.core.in_burst_list(q),
            weight: e.orig_weight,
            think: x.own.think,
            io_start: x.own.io_start,
            tot_idle: x.own.tot_idle,
            inject_limit: x.own.inject_limit,
            last_serv: x.own.last_serv,
            decrease_j: x.own.decrease_j,
            coeff: e.coeff,
            wr_max_j: x.wr_max_j,
            last_wr_j: x.last_wr_j,
            wr_switch_j: x.wr_switch_j,
            service_from_wr: x.own.service_from_wr,
        };
        if fresh {
            // Without the merge before its first request, the queue would be raised.
            s.coeff = WR_COEFF;
            s.wr_switch_j = 0;
            s.wr_max_j = self.wr_duration_j();
            s.last_wr_j = cx.jiffies();
            s.service_from_wr = old.service_from_wr;
        }
        self.core.procs[owner].own.saved = s;
    }
    /// `bfq_split_bfqq`: takes a process off a seeky shared queue. The last process keeps the
    /// queue. Otherwise returns `None`, and the process gets a new queue.
    pub(super) fn split(&mut self, cx: &mut Cx, ioc: IocId, q: QId) -> Option<QId> {
        cx.why(rules::QUEUE_SPLIT, || {
            self.core
                .about(q)
                .says("a process leaves the seeky queue of {who}")
        });
        if self.queue(q).in_large_burst {
            self.core.procs[ioc].own.saved.in_large_burst = true;
        }
        let x = self.queue_mut(q);
        if x.procs == 1 {
            x.shared = false;
            x.split = false;
            return Some(q);
        }
        self.core.procs[ioc].queues[1] = None;
        self.core.abandon(q);
        self.release(cx, q);
        None
    }
    /// `bfq_bfqq_resume_state`: restores the saved state after a split. Raising continues only if
    /// its time has not ended.
    pub(super) fn resume(&mut self, cx: &Cx, ioc: IocId, q: QId, existed: bool) {
        let s = self.core.procs[ioc].own.saved.clone();
        let busy = existed && self.queue(q).busy;
        let was = self.core.ent(q).coeff;
        let j = cx.jiffies();
        let x = self.core.queue_mut(q);
        x.short_think = s.short_think;
        x.io_bound = s.io_bound;
        x.own.think = s.think;
        x.own.io_start = s.io_start;
        x.own.tot_idle = s.tot_idle;
        x.own.inject_limit = s.inject_limit;
        x.own.last_serv = s.last_serv;
        x.own.decrease_j = s.decrease_j;
        x.own.service_from_wr = s.service_from_wr;
        x.wr_max_j = s.wr_max_j;
        x.last_wr_j = s.last_wr_j;
        x.wr_switch_j = s.wr_switch_j;
        let in_burst = x.in_large_burst;
        let e = self.core.ent_mut(q);
        if s.weight > 0 {
            e.new_weight = s.weight;
        }
        e.changed = true;
        if self.core.low_latency {
            self.core.ent_mut(q).coeff = s.coeff.max(1);
        }
        let over = j > s.last_wr_j + s.wr_max_j;
        if self.core.raised(q) && (in_burst || over) {
            let interactive_left = s.wr_max_j == self.spans.wr_rt
                && !in_burst
                && s.wr_switch_j + self.wr_duration_j() >= j;
            if interactive_left {
                self.back_to_interactive(q);
            } else {
                self.core.ent_mut(q).coeff = 1;
            }
        }
        if busy {
            let now = i64::from(self.core.raised(q));
            self.core.wr_busy += now - i64::from(was > 1);
        }
    }
}
