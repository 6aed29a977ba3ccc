//! Order of the requests inside a queue. Both variants share this order; only the unit of the FIFO
//! time differs.

#[cfg(test)]
mod tests;

use super::core::{Core, QId, Variant};
use crate::cx::Cx;
use seekwell_core::{Flags, RqId, Sector};

/// Position of a request relative to the head.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// In front of the head, or close enough behind it. Contains the weighted distance.
    Near(u64),
    /// Too far behind the head.
    Wrapped,
}

impl<X: Variant> Core<X> {
    fn reach(&self, at: Sector, last: Sector) -> Reach {
        let (s, l) = (at.0, last.0);
        if s >= l {
            Reach::Near(s - l)
        } else if s + 2 * self.back_seek_max >= l {
            Reach::Near((l - s) * self.back_seek_penalty)
        } else {
            Reach::Wrapped
        }
    }
    /// `bfq_choose_req`: returns the better of two requests for a head at `last`. A sync request
    /// wins over an async request, then metadata wins, then the smaller distance. A request too far
    /// behind the head loses. If both are too far behind, the lower start sector wins.
    pub fn better(&self, cx: &Cx, a: Option<RqId>, b: Option<RqId>, last: Sector) -> Option<RqId> {
        let (Some(x), Some(y)) = (a, b) else {
            return a.or(b);
        };
        if x == y {
            return a;
        }
        let (rx, ry) = (&cx.rqs[x], &cx.rqs[y]);
        if rx.sync != ry.sync {
            return if rx.sync { a } else { b };
        }
        let meta = |r: &seekwell_core::Request| r.flags.contains(Flags::META);
        if meta(rx) != meta(ry) {
            return if meta(rx) { a } else { b };
        }
        match (self.reach(rx.sector, last), self.reach(ry.sector, last)) {
            (Reach::Wrapped, Reach::Wrapped) => {
                if rx.sector <= ry.sector {
                    a
                } else {
                    b
                }
            }
            (p, q) if p < q => a,
            (p, q) if q < p => b,
            _ if rx.sector >= ry.sector => a,
            _ => b,
        }
    }

    /// Sets the next request of queue `q`. The position tree compares with the start of this
    /// request, although the queue keeps its place in the tree.
    pub(super) fn set_next(&mut self, cx: &Cx, q: QId, next: Option<RqId>) {
        self.queue_mut(q).next = next;
        self.touch_pos(cx, q);
    }
    pub(super) fn touch_pos(&mut self, cx: &Cx, q: QId) {
        if self.pos.linked(q)
            && let Some(n) = self.queue(q).next
        {
            self.pos.set_key(q, cx.rqs[n].sector);
        }
    }

    /// `bfq_add_request`: adds a request to its queue. Returns true if the queue's next request
    /// changed.
    pub(super) fn add_sorted(&mut self, cx: &Cx, q: QId, rq: RqId) -> bool {
        let r = &cx.rqs[rq];
        let x = &mut self.queues[q as usize];
        x.queued[usize::from(r.sync)] += 1;
        self.queued += 1;
        self.sort.insert(&mut x.sort, rq.0, r.sector);
        let before = x.next;
        let next = self.better(cx, before, Some(rq), self.last_position);
        self.set_next(cx, q, next);
        next != before
    }
    /// Appends the request to the FIFO. `at` is the time at which the request expires.
    pub(super) fn add_fifo(&mut self, q: QId, rq: RqId, at: u64) {
        self.info.at(rq.idx()).fifo_at = at;
        let x = &mut self.queues[q as usize];
        self.fifo.push_back(&mut x.fifo, rq.0);
    }
    /// Returns the oldest request and the time at which it expires.
    pub fn oldest(&self, q: QId) -> Option<(RqId, u64)> {
        let rq = RqId(self.queue(q).fifo.first()?);
        Some((rq, self.info[rq].fifo_at))
    }
    /// `bfq_check_fifo`: returns the oldest request if it has expired. Each slot makes this check
    /// once. `now` is in the variant's unit (jiffies or nanoseconds).
    pub(super) fn check_fifo(&mut self, q: QId, except: Option<RqId>, now: u64) -> Option<RqId> {
        if std::mem::replace(&mut self.queue_mut(q).fifo_checked, true) {
            return None;
        }
        let (rq, at) = self.oldest(q)?;
        (now >= at && Some(rq) != except).then_some(rq)
    }
    /// `bfq_find_next_rq`: returns the better of the two neighbours of `rq`, for a head at the
    /// start of `rq`. The caller is about to remove `rq`.
    pub(super) fn neighbour(&self, cx: &Cx, q: QId, rq: RqId) -> Option<RqId> {
        let prev = self.sort.prev(rq.0).map(RqId);
        let next = match self.sort.next(rq.0) {
            Some(n) => Some(RqId(n)),
            None => self.queue(q).sort.first().map(RqId).filter(|f| *f != rq),
        };
        self.better(cx, next, prev, cx.rqs[rq].sector)
    }
    /// `bfq_remove_request`: removes a request from its queue. Updates the queue's next request and
    /// the queue's place in the position tree.
    pub(super) fn remove(&mut self, cx: &Cx, rq: RqId) {
        let Some(q) = self.queue_of(rq) else { return };
        if self.queue(q).next == Some(rq) {
            let late = if X::MQ {
                self.check_fifo(q, Some(rq), cx.now().0)
            } else {
                None
            };
            let next = late.or_else(|| self.neighbour(cx, q, rq));
            self.set_next(cx, q, next);
            self.fit_budget(cx, q);
        }
        let x = &mut self.queues[q as usize];
        if self.fifo.linked(rq.0) {
            self.fifo.remove(&mut x.fifo, rq.0);
        }
        x.queued[usize::from(cx.rqs[rq].sync)] -= 1;
        self.queued -= 1;
        self.sort.remove(&mut x.sort, rq.0);
        if x.sort.is_empty() {
            x.next = None;
            if x.busy && self.serving != Some(q) {
                self.del_busy(q, false, cx.jiffies());
                if X::MQ {
                    let e = self.ent_mut(q);
                    (e.budget, e.service) = (0, 0);
                }
            }
            self.pos_remove(q);
        } else if X::MQ && self.use_pos {
            self.pos_place(cx, q);
        }
    }

    /// `bfq_find_rq_fmerge`: returns a request of queue `q` that starts at sector `at`. A bio that
    /// ends at this sector can be merged at the front of that request.
    pub(super) fn find_start(&self, q: QId, at: Sector) -> Option<RqId> {
        self.sort.find(&self.queue(q).sort, at).map(RqId)
    }
    /// `bfq_request_merged`: sorts a request again after a bio was merged at its front. The queue's
    /// next request can change.
    pub(super) fn front_grew(&mut self, cx: &Cx, rq: RqId) {
        let Some(q) = self.queue_of(rq) else { return };
        let at = cx.rqs[rq].sector;
        let passes = self.sort.prev(rq.0).is_some_and(|p| at < self.sort.key(p));
        if !passes {
            self.sort.set_key(rq.0, at);
            self.touch_pos(cx, q);
            return;
        }
        let x = &mut self.queues[q as usize];
        self.sort.remove(&mut x.sort, rq.0);
        self.sort.insert(&mut x.sort, rq.0, at);
        let before = x.next;
        let next = self.better(cx, before, Some(rq), self.last_position);
        self.set_next(cx, q, next);
        if next != before {
            self.fit_budget(cx, q);
            if self.use_pos {
                self.pos_place(cx, q);
            }
        }
    }
    /// `bfq_requests_merged`: removes request `gone`, whose bios `kept` took over. If both are in
    /// the same queue, `kept` gets the earlier place of the two in the FIFO.
    pub(super) fn swallow(&mut self, cx: &Cx, kept: RqId, gone: RqId) {
        let (Some(q), Some(other)) = (self.queue_of(kept), self.queue_of(gone)) else {
            return;
        };
        let (k, g) = (self.info[kept].fifo_at, self.info[gone].fifo_at);
        if q == other && self.fifo.linked(kept.0) && self.fifo.linked(gone.0) && g < k {
            let fifo = &mut self.queues[q as usize].fifo;
            self.fifo.remove(fifo, kept.0);
            self.fifo.insert_after(fifo, gone.0, kept.0);
            self.info[kept].fifo_at = g;
        }
        if self.queue(q).next == Some(gone) {
            self.set_next(cx, q, Some(kept));
        }
        self.remove(cx, gone);
    }
    pub(super) fn former_of(&self, rq: RqId) -> Option<RqId> {
        if self.sort.linked(rq.0) {
            self.sort.prev(rq.0).map(RqId)
        } else {
            None
        }
    }
    pub(super) fn latter_of(&self, rq: RqId) -> Option<RqId> {
        if self.sort.linked(rq.0) {
            self.sort.next(rq.0).map(RqId)
        } else {
            None
        }
    }
}
