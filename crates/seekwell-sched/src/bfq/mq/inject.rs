//! Injection: while the device waits for the queue in service, requests of another queue (the
//! donor) are served. This file chooses the donor, limits the number of injected requests, and
//! detects which queue wakes another.

use super::{Bfq, LARGE};
use crate::bfq::core::QId;
use crate::bfq::rules;
use crate::cx::Cx;
use seekwell_core::NSEC_PER_MSEC;

/// A queue can be the waker of a request that arrives within this time after its completion, ns.
const WAKE_GAP: u64 = 4 * NSEC_PER_MSEC;
/// A queue is a waker after this many wake-ups in sequence.
const WAKE_TIMES: u32 = 3;
/// The wake-ups must happen within this many times `slice_idle`.
const WAKE_WINDOW: u64 = 128;

impl Bfq {
    fn fits(&self, cx: &Cx, d: QId) -> bool {
        let x = self.queue(d);
        x.busy
            && x.next
                .is_some_and(|n| self.core.charge(cx, d, n) <= self.core.ent(d).left())
    }
    /// `bfq_select_queue` (the part about injection): returns the donor, that is the queue to serve
    /// instead of the empty queue `q`.
    pub(super) fn donor(&mut self, cx: &mut Cx, q: QId) -> Option<QId> {
        let x = self.queue(q);
        if let Some(owner) = x.owner
            && let Some(a) = self.core.procs[owner].queues[0]
            && let Some(next) = self.queue(a).next
            && cx.rqs[next].ioc == owner
            && self.fits(cx, a)
        {
            return Some(a);
        }
        if let Some(w) = x.own.waker
            && self.fits(cx, w)
        {
            return Some(w);
        }
        if let Some(w) = x.own.woken.first()
            && self.fits(cx, w)
        {
            return Some(w);
        }
        let may =
            !self.boosts(q) && (!self.core.raised(q) || self.core.wr_busy > 1 || !x.short_think);
        if may { self.injector(cx, q) } else { None }
    }
    /// `bfq_choose_bfqq_for_injection`: returns any active queue, as long as fewer requests are in
    /// the driver than the injection limit of `q` allows.
    fn injector(&mut self, cx: &Cx, q: QId) -> Option<QId> {
        let x = self.queue(q);
        if self.core.in_driver >= x.own.inject_limit {
            return None;
        }
        let free = !self.core.raised(q) || !x.short_think;
        let found = self.core.wf.active_queues().find(|&d| {
            let Some(next) = self.queue(d).next else {
                return false;
            };
            let large = self.flash && cx.rqs[next].sectors.0 >= LARGE && self.core.in_driver >= 1;
            (free || self.core.raised(d))
                && self.core.charge(cx, d, next) <= self.core.ent(d).left()
                && !large
        })?;
        self.injected = true;
        Some(found)
    }

    /// `bfq_add_request` (a part): handles a request that is the only request of its process. Such
    /// a request can measure how much injection delays the process.
    pub(super) fn first_of_process(&mut self, cx: &mut Cx, q: QId) {
        let (j, now) = (cx.jiffies(), cx.now().0);
        self.look_for_waker(cx, q);
        if self.queue(q).own.decrease_j + self.spans.inject_reset <= j {
            self.reset_inject_limit(cx, q);
        }
        let x = &self.queue(q).own;
        let idle = self.core.in_driver == 0;
        let occasion = idle || (x.last_serv > 0 && self.injected);
        if self.core.serving == Some(q) && occasion && x.decrease_j + self.spans.inject <= j {
            self.measured_since = now;
            self.wait_dispatch = true;
            if idle {
                self.injected = false;
            }
        }
    }
    /// `bfq_reset_inject_limit`: discards the measured effect of injection and resets the limit.
    pub(super) fn reset_inject_limit(&mut self, cx: &Cx, q: QId) {
        let j = cx.jiffies();
        self.waited = None;
        let x = self.queue_mut(q);
        x.own.last_serv = 0;
        x.own.inject_limit = u32::from(!x.short_think);
        x.own.decrease_j = j;
    }
    /// `bfq_update_inject_limit`: adapts the limit of `q`, after the measured request completed.
    pub(super) fn update_inject_limit(&mut self, cx: &mut Cx, q: QId) {
        let t = cx.now().0 - self.measured_since;
        let (alone, injected) = (self.core.in_driver == 1, self.injected);
        let (most, j) = (self.core.max_in_driver, cx.jiffies());
        let x = &mut self.queue_mut(q).own;
        let old = x.inject_limit;
        if x.last_serv > 0 && injected {
            if t >= (3 * x.last_serv) >> 1 {
                if old > 0 {
                    x.inject_limit -= 1;
                    x.decrease_j = j;
                }
            } else if old <= most {
                x.inject_limit += 1;
            }
        }
        if (x.last_serv == 0 && alone) || t < x.last_serv {
            if x.last_serv == 0 {
                x.inject_limit = old.max(1);
            }
            x.last_serv = t;
        } else if !injected && alone {
            x.last_serv = t;
        }
        let limit = x.inject_limit;
        cx.why(rules::INJECT_LIMIT, || {
            self.core.about(q).says(format!(
                "served in {} us: {{who}} allows {limit} injected requests",
                t / 1000
            ))
        });
        self.waited = None;
        self.injected = false;
    }

    /// `bfq_check_waker`: checks whether the queue whose request completed last wakes `q`.
    fn look_for_waker(&mut self, cx: &mut Cx, q: QId) {
        let now = cx.now().0;
        let Some(last) = self.last_completed else {
            return;
        };
        if last == q || self.queue(q).short_think || now - self.last_completion >= WAKE_GAP {
            return;
        }
        let window = WAKE_WINDOW * self.set.slice_idle.0;
        let x = &mut self.queue_mut(q).own;
        if x.tentative != Some(last) || now > x.detecting_since.saturating_add(window) {
            x.tentative = Some(last);
            x.detections = 1;
            x.detecting_since = now;
        } else {
            x.detections += 1;
        }
        if x.detections == WAKE_TIMES {
            x.tentative = None;
            cx.why(rules::WAKER_FOUND, || {
                self.core
                    .about(last)
                    .and(self.core.about(q).task)
                    .says("{who} wakes {other}")
            });
            self.set_waker(q, Some(last));
        }
    }
    /// Sets the waker of `q` and moves `q` to the list of queues that this waker wakes.
    pub(super) fn set_waker(&mut self, q: QId, waker: Option<QId>) {
        let old = std::mem::replace(&mut self.queue_mut(q).own.waker, waker);
        if let Some(o) = old
            && self.woken_links.linked(q)
        {
            let list = &mut self.core.queues[o as usize].own.woken;
            self.woken_links.remove(list, q);
        }
        if let Some(w) = waker {
            let list = &mut self.core.queues[w as usize].own.woken;
            self.woken_links.push_front(list, q);
        }
    }
    pub(super) fn move_to_front_of_woken(&mut self, q: QId) {
        if let Some(w) = self.queue(q).own.waker {
            let list = &mut self.core.queues[w as usize].own.woken;
            if list.first() != Some(q) {
                self.woken_links.remove(list, q);
                self.woken_links.push_front(list, q);
            }
        }
    }
}
