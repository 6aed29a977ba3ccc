//! Decides whether the device idles for a queue. Also checks the invariants of multi-queue BFQ.

use super::{Bfq, IDLE_TIMER, MqQueue, is_6_1};
use crate::bfq::core::{Core, QId};
use crate::cx::Cx;
use seekwell_core::Era;

/// `bfq_asymmetric_scenario`: returns true if the busy queues differ in class, belong to several
/// groups, or have different weights. Different weights do not count if `q` has the smallest
/// weight.
pub(super) fn asymmetric(core: &Core<MqQueue>, era: Era, q: Option<QId>) -> bool {
    let w = &core.wf.weights;
    let smallest = q.is_some_and(|q| {
        let counted = core.ent(q).counted;
        counted != 0 && w.smallest() == Some(counted)
    });
    let groups = if is_6_1(era) {
        core.groups_pending > u32::from(core.groups[0].pending > 0)
    } else {
        core.groups_pending > 1
    };
    let classes = core.busy.iter().filter(|n| **n > 0).count();
    (!smallest && w.varied()) || classes > 1 || groups
}

impl Bfq {
    pub(super) fn asymmetric(&self, cx: &Cx, q: QId) -> bool {
        asymmetric(&self.core, cx.queue.era, Some(q))
    }
    /// `idling_boosts_thr_without_issues`: returns true if idling for `q` raises the throughput and
    /// does not delay a raised queue.
    pub(super) fn boosts(&self, q: QId) -> bool {
        let x = self.queue(q);
        if x.procs == 0 || self.core.wr_busy > 0 {
            return false;
        }
        let queueing = self.core.hw_tag != 0;
        let steady = !self.seeky(q) && x.io_bound && x.short_think;
        (!self.flash && !queueing) || ((!self.flash || !queueing) && steady)
    }
    /// `idling_needed_for_service_guarantees`: returns true if idling for `q` is needed so that
    /// each queue gets its fraction of the service.
    pub(super) fn needed(&self, cx: &Cx, q: QId) -> bool {
        let x = self.queue(q);
        if x.procs == 0 {
            return false;
        }
        let busy = self.core.busy_total();
        let pressed = self.core.raised(q)
            && (self.core.wr_busy < i64::from(busy) || self.core.in_driver >= x.dispatched + 4);
        pressed || busy == 1 || self.asymmetric(cx, q)
    }
    /// `bfq_better_to_idle`: returns true if the device should idle for `q` while `q` is empty.
    pub(super) fn better_to_idle(&self, cx: &Cx, q: QId) -> bool {
        let x = self.queue(q);
        if x.procs == 0 {
            return false;
        }
        if self.set.strict {
            return true;
        }
        if self.set.slice_idle.0 == 0 || !x.sync || self.idle_class(q) {
            return false;
        }
        self.boosts(q) || self.needed(cx, q)
    }
    /// `bfq_bfqq_must_idle`: returns true if `q` is empty and the device should idle for it.
    pub(super) fn must_idle(&self, cx: &Cx, q: QId) -> bool {
        self.core.empty(q) && self.better_to_idle(cx, q)
    }
    /// `bfq_bfqq_budget_timeout`: returns true if the time of the slot is used up.
    pub(super) fn budget_timeout(&self, cx: &Cx, q: QId) -> bool {
        cx.jiffies() >= self.queue(q).budget_timeout_j
    }
    /// `bfq_may_expire_for_budg_timeout`: returns true if the queue may expire because of its time.
    /// While the device idles for the queue, it may expire only if a third of its budget is left.
    pub(super) fn may_expire(&self, cx: &Cx, q: QId) -> bool {
        let e = self.core.ent(q);
        (!self.queue(q).waiting || e.left() >= e.budget / 3) && self.budget_timeout(cx, q)
    }

    pub(super) fn check_all(&self, cx: &Cx) {
        self.core.check(cx);
        let live = || self.core.queues.iter().filter(|q| q.live);
        let flying: u32 = live().map(|q| q.dispatched).sum();
        assert_eq!(flying, self.core.in_driver, "P7");
        let raised = live().filter(|q| q.busy && self.core.wf.entity(q.ent).raised());
        assert_eq!(raised.count() as i64, self.core.wr_busy, "P11: wr_busy");
        if cx.armed(IDLE_TIMER) {
            let q = self.core.serving.map(|q| self.queue(q));
            let waits = q.is_some_and(|q| q.waiting && q.queued[0] + q.queued[1] <= 1);
            assert!(waits, "P9: the timer runs for an empty queue in service");
        }
        let counted = live().filter(|q| self.core.wf.entity(q.ent).counted != 0);
        assert_eq!(
            counted.count() as u32,
            self.core.wf.weights.total(),
            "counted weights"
        );
    }
}
