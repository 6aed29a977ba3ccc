//! The first posting of row (2012). It has one cycle over all queues, and a pointer to the queue in
//! service. It has no classes and no urgent requests. It ignores ioprio, so only the regular queues
//! are used.

use super::{HR, HS, IDLE_TIMER, LR, LS, NAMES, RR, RS, RW, Row, is_special, rules};
use crate::cx::{Cx, Emit};
use seekwell_core::RqId;

/// The queues, in the order of the cycle.
const ORDER: [usize; 7] = [HR, RR, HS, RS, RW, LR, LS];

/// Returns the name of the queue at a place in the cycle.
pub(super) fn name_at(place: usize) -> &'static str {
    NAMES[ORDER[place]]
}

impl Row {
    /// `row_dispatch_requests` (first posting): dispatches at most one request. Returns the number
    /// dispatched.
    pub(super) fn dispatch_in_one_cycle(&mut self, cx: &mut Cx, force: bool) -> u32 {
        // Serve an earlier queue of the cycle first, if it was empty when it was passed over and
        // has requests.
        let passed = |p: &usize| self.queues[ORDER[*p]].unserved && !self.empty(ORDER[*p]);
        if let Some(p) = (0..self.at).find(passed) {
            self.at = p;
            let queue = NAMES[ORDER[p]];
            cx.why(rules::UNSERVED_FIRST, || {
                format!("{queue} was empty when it was passed over")
            });
            return self.send_next(cx);
        }
        let queue = ORDER[self.at];
        if self.queues[queue].served >= self.quanta[queue] {
            self.queues[queue].served = 0;
            self.next_with_requests(cx);
        } else if self.empty(queue) {
            if self.idle_for.is_some() && !force {
                cx.why(rules::IDLING, || format!("idling for {}", NAMES[queue]));
                return 0;
            }
            if self.queues[queue].want_idle && is_special(queue) && !force {
                self.idle_jiffies(cx, queue);
                return 0;
            }
            self.queues[queue].unserved = true;
            self.next_with_requests(cx);
        }
        self.send_next(cx)
    }

    /// Moves forward in the cycle to the next queue with requests, at most one full cycle. A queue
    /// that is passed over while empty is served as soon as it has requests.
    fn next_with_requests(&mut self, cx: &mut Cx) {
        let from = self.at;
        loop {
            self.at = (self.at + 1) % ORDER.len();
            let queue = ORDER[self.at];
            if !self.empty(queue) {
                cx.why(rules::NEXT_QUEUE, || format!("on to {}", NAMES[queue]));
                return;
            }
            // A queue that used up its quantum counts as served, even if it is empty.
            if self.at == from {
                return;
            }
            self.queues[queue].unserved = true;
        }
    }

    fn send_next(&mut self, cx: &mut Cx) -> u32 {
        let queue = ORDER[self.at];
        let Some(head) = self.queues[queue].fifo.first() else {
            return 0;
        };
        let quantum = self.quanta[queue];
        let q = &mut self.queues[queue];
        self.links.remove(&mut q.fifo, head);
        q.served = q.served.saturating_add(1);
        q.unserved = false;
        let served = q.served;
        cx.why_rq(rules::QUANTUM, RqId(head), || {
            format!("{}: {served} of {quantum} in this cycle", NAMES[queue])
        });
        cx.emit(RqId(head), Emit::Sorted);
        1
    }

    /// `queue_delayed_work`: starts the idle wait for `queue`. This version counts the wait in
    /// jiffies.
    fn idle_jiffies(&mut self, cx: &mut Cx, queue: usize) {
        let until = cx.jiffies() + cx.ms_to_jiffies(self.idle_ms);
        cx.why(rules::IDLE_STARTS, || {
            format!("{} is empty: idle for it until jiffy {until}", NAMES[queue])
        });
        self.idle_for = Some(queue);
        cx.arm_jiffy(IDLE_TIMER, until);
    }

    /// Returns the queue of a request; only direction and sync flag decide.
    pub(super) fn regular_queue(write: bool, sync: bool) -> usize {
        match (write, sync) {
            (false, _) => RR,
            (true, true) => RS,
            (true, false) => RW,
        }
    }
}
