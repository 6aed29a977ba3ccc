//! Choice of the next request: first requests inserted at the head, then classes that have aged,
//! then the classes in order. Inside a class: the batch, its direction and its start.

use super::rules;
use super::{BE, CLASS_NAMES, IDLE, MqDeadline, READ, WRITE};
use crate::cx::{Cx, Emit};
use seekwell_core::RqId;

impl MqDeadline {
    pub(super) fn head_expired(&self, cx: &Cx, c: usize, d: usize) -> bool {
        self.class[c].fifo[d]
            .first()
            .is_some_and(|i| self.info.get(i as usize).fifo_time_j <= cx.jiffies())
    }

    /// Returns true if the request was inserted after jiffy `latest_j`, which can be negative
    /// (before boot).
    pub(super) fn started_after(&self, cx: &Cx, rq: RqId, latest_j: i64) -> bool {
        let d = cx.rqs[rq].dir();
        self.info[rq].fifo_time_j as i64 - self.expire_j[d] as i64 > latest_j
    }

    /// `__dd_dispatch_request`: returns the direction of a new batch; `None` if no request of class
    /// `c` waits.
    pub(super) fn choose_direction(&mut self, cx: &mut Cx, c: usize) -> Option<usize> {
        let d = match (self.class[c].waits(READ), self.class[c].waits(WRITE)) {
            (false, false) => return None,
            (false, true) => WRITE,
            (true, false) => READ,
            (true, true) => {
                // The comparison is unsigned, so that a negative writes_starved is never reached.
                let passed_over = self.starved;
                self.starved = self.starved.wrapping_add(1);
                if passed_over >= self.writes_starved as u32 {
                    cx.why(rules::WRITES_STARVED, || {
                        format!("writes were passed over {passed_over} times")
                    });
                    WRITE
                } else {
                    READ
                }
            }
        };
        if d == WRITE {
            self.starved = 0;
        }
        Some(d)
    }

    /// `__dd_dispatch_request`: returns the request with which the current batch continues, if any.
    pub(super) fn in_batch(&self, c: usize) -> Option<RqId> {
        if self.batching >= self.fifo_batch as u32 {
            return None;
        }
        if self.generation.one_sweep {
            return self.class[c].next[WRITE].or(self.class[c].next[READ]);
        }
        self.class[c].next[self.last_dir]
    }

    /// `__dd_dispatch_request`: dispatches a request of class `c` that was inserted at jiffy
    /// `latest_j` or earlier. Returns false if there is none.
    pub(super) fn try_class(&mut self, cx: &mut Cx, c: usize, latest_j: i64) -> bool {
        if let Some(i) = self.class[c].head.first() {
            let rq = RqId(i);
            if self.started_after(cx, rq, latest_j) {
                return false;
            }
            self.take_head(cx, c);
            return true;
        }
        let rq = if let Some(rq) = self.in_batch(c) {
            let (n, of) = (self.batching + 1, self.fifo_batch);
            cx.why_rq(rules::BATCH_CONTINUES, rq, || format!("{n} of {of}"));
            rq
        } else {
            let Some(d) = self.choose_direction(cx, c) else {
                return false;
            };
            let next = self.class[c].next[d];
            let expired = self.head_expired(cx, c, d);
            let rq = match next {
                Some(rq) if !expired => rq,
                _ => RqId(
                    self.class[c].fifo[d]
                        .first()
                        .expect("a direction with requests"),
                ),
            };
            let rule = match (expired, next.is_some()) {
                (true, _) => rules::HEAD_EXPIRED,
                (_, true) => rules::SWEEP_CONTINUES,
                _ => rules::FIFO_HEAD,
            };
            cx.why_rq(rule, rq, || {
                format!("a new batch of {}", ["reads", "writes"][d])
            });
            self.last_dir = d;
            self.batching = 0;
            rq
        };
        if self.started_after(cx, rq, latest_j) {
            cx.why_rq(rules::NOT_AGED, rq, || {
                format!(
                    "the {} request is not old enough to go first",
                    CLASS_NAMES[c]
                )
            });
            return false;
        }
        self.batching = self.batching.saturating_add(1);
        self.take(cx, c, rq);
        true
    }

    /// `deadline_move_request`: dispatches `rq` and moves the sweep to the position after it.
    pub(super) fn take(&mut self, cx: &mut Cx, c: usize, rq: RqId) {
        let d = cx.rqs[rq].dir();
        let follower = self.nodes.next(rq.0).map(RqId);
        let class = &mut self.class[c];
        let in_sweep = class.next[d] == Some(rq);
        self.links.remove(&mut class.fifo[d], rq.0);
        self.nodes.remove(&mut class.sorted[d], rq.0);
        if self.generation.one_sweep {
            class.next = [None; 2];
        }
        class.next[d] = follower;
        class.latest_pos[d] = cx.rqs[rq].sector;
        class.dispatched += 1;
        // If `rq` was not the next request of the sweep, other requests can have the same position
        // and come before `rq` in the sector order.
        if !in_sweep && !self.generation.pointers {
            self.find_place(c, d);
        }
        cx.emit(rq, Emit::Tail);
    }

    /// Finds the request at which the sweep of a direction continues, after the position changed.
    fn find_place(&mut self, c: usize, d: usize) {
        self.class[c].next[d] = self.at_position(&self.class[c], d);
    }

    /// Dispatches the first request of a list of requests inserted at the head.
    pub(super) fn take_head(&mut self, cx: &mut Cx, list: usize) {
        let Some(i) = self.links.pop_front(&mut self.class[list].head) else {
            return;
        };
        let rq = RqId(i);
        let d = cx.rqs[rq].dir();
        let info = self.info.at(rq.idx());
        info.at_head = false;
        let c = info.class as usize;
        self.class[c].latest_pos[d] = cx.rqs[rq].sector;
        self.class[c].dispatched += 1;
        if !self.generation.pointers {
            self.find_place(c, d);
        }
        cx.why_rq(rules::AT_HEAD, rq, || "inserted at the head".to_owned());
        cx.emit(rq, Emit::Tail);
    }

    /// `dd_dispatch_prio_aged_requests`: dispatches a request of a lower class that has waited
    /// longer than prio_aging_expire. Returns false if there is none.
    pub(super) fn try_aged(&mut self, cx: &mut Cx) -> bool {
        let busy = self.class.iter().filter(|c| c.queued() > 0).count();
        if busy < 2 {
            return false;
        }
        let latest_j = cx.jiffies() as i64 - self.prio_aging_j as i64;
        for c in [BE, IDLE] {
            if self.class[c].queued() > 0 && self.try_class(cx, c, latest_j) {
                cx.why(rules::CLASS_AGED, || {
                    format!(
                        "the {} request goes first: it waited long enough",
                        CLASS_NAMES[c]
                    )
                });
                return true;
            }
        }
        false
    }
}
