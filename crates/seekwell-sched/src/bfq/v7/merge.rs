//! Early queue merge: processes whose requests are close together share a queue until that queue
//! becomes seeky.

use super::{BfqSq, COOP_FORGIVE, COOP_LIMIT, SlotUser};
use crate::bfq::core::{CLOSE, QId};
use crate::bfq::rules;
use crate::cx::Cx;
use seekwell_core::{Bio, IocId, RqId, Sector};

impl BfqSq {
    /// `bfq_allow_merge`: returns true if a bio may be merged into `rq`. The request must be in the
    /// queue of the bio's process, after a possible queue merge. A sync bio is never merged into an
    /// async request.
    pub(super) fn may_merge(&mut self, cx: &mut Cx, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
        let sync = bio.is_sync(cx.queue.era);
        if sync && !cx.rqs[rq].sync {
            return false;
        }
        let Some(mut q) = self.core.procs.at(ioc.idx()).queues[usize::from(sync)] else {
            return false;
        };
        match self.partner(cx, q, bio.sector) {
            Some(with) => {
                self.merge_queues(cx, ioc, q, with);
                q = with;
            }
            None => self.count_failure(q),
        }
        self.core.queue_of(rq) == Some(q)
    }

    /// Returns the queue that a request goes to: the queue of its process, or a queue that was
    /// merged with it.
    pub(super) fn place(&mut self, cx: &mut Cx, rq: RqId, ioc: IocId) -> QId {
        let q = self.core.queue_of(rq).unwrap_or_else(|| {
            let r = &cx.rqs[rq];
            let (sync, prio) = (r.sync, r.ioprio);
            let q = self.queue_for(cx, ioc, sync, prio);
            self.core.bind(rq, q);
            q
        });
        let at = cx.rqs[rq].sector;
        let Some(with) = self.partner(cx, q, at) else {
            self.count_failure(q);
            return q;
        };
        let current = self.core.procs[ioc].queues[1];
        let to = match current {
            Some(c) if c != q => c,
            _ => with,
        };
        if current == Some(q) {
            self.merge_queues(cx, ioc, q, to);
        }
        self.core.bind(rq, to);
        self.core.unbind_from(q);
        to
    }

    fn count_failure(&mut self, q: QId) {
        let Some(owner) = self.queue(q).owner else {
            return;
        };
        let p = &mut self.core.procs[owner].own;
        if p.cooperations >= COOP_LIMIT {
            p.failed += 1;
            if p.failed >= COOP_FORGIVE {
                p.cooperations = 0;
            }
        }
    }

    /// `bfq_setup_cooperator`: plans to merge `q` with a queue whose requests are near sector `at`.
    /// Returns that queue.
    fn partner(&mut self, cx: &Cx, q: QId, at: Sector) -> Option<QId> {
        if let Some(to) = self.queue(q).redirect {
            return Some(to);
        }
        if let Some(p) = self.core.serving
            && p != q
            && self.slot_user != SlotUser::Nobody
            && !self.idle_class(p)
            && !self.idle_class(q)
            && (self.class(p) == 0) == (self.class(q) == 0)
            && at.0.abs_diff(self.core.last_position.0) <= CLOSE
            && self.queue(p).sync
            && self.queue(q).sync
            && let Some(to) = self.core.arrange(q, p)
        {
            return Some(to);
        }
        let other = self.close_by(cx, q, at)?;
        self.core.arrange(q, other)
    }
    /// `bfq_close_cooperator`: returns a queue whose next request is near sector `at`.
    fn close_by(&self, _: &Cx, q: QId, at: Sector) -> Option<QId> {
        if self.idle_class(q) || !self.queue(q).sync || self.seeky(q) || self.core.busy_total() == 1
        {
            return None;
        }
        let other = self.core.nearest(q, at)?;
        let fits = other != q
            && self.queue(other).group == self.queue(q).group
            && self.queue(other).sync
            && !self.seeky(other)
            && (self.class(other) == 0) == (self.class(q) == 0);
        fits.then_some(other)
    }

    /// `bfq_merge_bfqqs`: moves the process from queue `q` to queue `into`.
    fn merge_queues(&mut self, cx: &mut Cx, ioc: IocId, q: QId, into: QId) {
        cx.why(rules::QUEUES_MERGED, || {
            self.core
                .about(q)
                .and(self.core.about(into).task)
                .says("{who} joins {other}")
        });
        self.save(cx, q);
        self.save(cx, into);
        let bound = std::mem::take(&mut self.queue_mut(q).io_bound);
        let t = self.queue_mut(into);
        t.io_bound |= bound;
        t.shared = true;
        (t.owner, t.pid) = (None, None);
        self.core.adopt(ioc, into);
        let x = self.queue_mut(q);
        x.owner = None;
        x.procs -= 1;
        self.core.free_if_unused(q);
    }

    /// `bfq_bfqq_save_state`: copies the state of queue `q` to the data of the process that owns
    /// `q`, before `q` is merged with another queue. [`BfqSq::resume`] copies this state to the new
    /// queue that the process gets when it leaves the shared queue.
    fn save(&mut self, cx: &Cx, q: QId) {
        let Some(owner) = self.queue(q).owner else {
            return;
        };
        let x = self.queue(q);
        let (window, bound, large) = (x.short_think, x.io_bound, x.in_large_burst);
        let spent = cx.jiffies() - x.last_wr_j;
        let (period, listed) = (x.wr_max_j, self.core.in_burst_list(q));
        let raised = self.core.raised(q);
        let full = self.wr_duration_j();
        let p = &mut self.core.procs[owner].own;
        p.saved_idle_window = window;
        p.saved_io_bound = bound;
        p.saved_large_burst = large;
        p.saved_burst_list = listed;
        p.cooperations += 1;
        p.failed = 0;
        if p.wr_left_j > 0 {
            p.wr_left_j = full;
        } else if raised {
            p.wr_left_j = period.saturating_sub(spent);
            self.end_wr(q);
        }
    }

    /// `bfq_split_bfqq`: removes a process from the seeky shared queue `q`. If it is the last
    /// process, it keeps the queue and `q` is returned. Otherwise returns `None`, and the caller
    /// gives the process a new queue.
    pub(super) fn split(&mut self, cx: &mut Cx, ioc: IocId, q: QId) -> Option<QId> {
        cx.why(rules::QUEUE_SPLIT, || {
            self.core
                .about(q)
                .says("a process leaves the seeky queue of {who}")
        });
        let x = self.queue_mut(q);
        if x.procs == 1 {
            x.shared = false;
            x.split = false;
            return Some(q);
        }
        self.core.procs[ioc].queues[1] = None;
        self.core.abandon(q);
        self.queue_mut(q).procs -= 1;
        self.core.free_if_unused(q);
        None
    }

    /// `bfq_bfqq_resume_state`: copies the state that [`BfqSq::save`] saved to queue `q`, after the
    /// process left a shared queue. The weight stays raised only if raising time is left, the
    /// tunable `low_latency` is set, `q` is not part of a large burst, and the process has not
    /// merged too often.
    pub(super) fn resume(&mut self, cx: &Cx, ioc: IocId, q: QId) {
        let p = self.core.procs[ioc].own.clone();
        self.core.procs[ioc].own.wr_left_j = 0;
        let x = self.core.queue_mut(q);
        x.short_think = p.saved_idle_window;
        x.io_bound = p.saved_io_bound;
        let (large, busy) = (x.in_large_burst, x.busy);
        if p.wr_left_j == 0 || !self.core.low_latency || large || p.cooperations >= COOP_LIMIT {
            return;
        }
        if busy {
            self.core.wr_busy += 1;
        }
        self.core.set_coeff(q, self.set.wr_coeff);
        let x = self.core.queue_mut(q);
        x.wr_max_j = p.wr_left_j;
        x.last_wr_j = cx.jiffies();
    }
}
