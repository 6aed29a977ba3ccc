//! Order of requests and batches: the choice between requests of a class, and between the classes.

use super::rules;
use super::wait::Wait;
use super::{ASYNC, Anticipatory, CLASS, Place, SYNC};
use crate::cx::{Cx, Emit};
use seekwell_core::{About, RqId};

/// A request further behind the head than this many sectors (512 MiB) loses against all others.
const BACK_MAX: u64 = 1 << 20;

impl Anticipatory {
    /// `as_choose_req`: returns the cheaper of two requests of class `c`, for the head position of
    /// that class.
    pub(super) fn choose(
        &self,
        cx: &Cx,
        c: usize,
        a: Option<RqId>,
        b: Option<RqId>,
    ) -> Option<RqId> {
        let (Some(ra), Some(rb)) = (a, b) else {
            return a.or(b);
        };
        let last = self.head[c].0;
        let cost = |s: u64| {
            if s >= last {
                Some(s - last)
            } else if s + BACK_MAX >= last {
                Some(2 * (last - s))
            } else {
                None
            }
        };
        let (sa, sb) = (cx.rqs[ra].sector.0, cx.rqs[rb].sector.0);
        let first = match (cost(sa), cost(sb)) {
            (Some(ca), Some(cb)) if ca == cb => sa >= sb,
            (Some(ca), Some(cb)) => ca < cb,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => sa <= sb,
        };
        if first { a } else { b }
    }
    /// `as_find_next_rq`: returns the best neighbour of `rq`, as the next request.
    pub(super) fn find_next(&self, cx: &Cx, c: usize, rq: RqId) -> Option<RqId> {
        let lowest = self.sorted[c].first().filter(|f| *f != rq.0);
        let behind = self.nodes.next(rq.0).or(lowest).map(RqId);
        let before = self.nodes.prev(rq.0).map(RqId);
        self.choose(cx, c, behind, before)
    }

    /// `as_add_rq_rb`: sorts a request in. If a queued request has the same start sector, that
    /// request is dispatched at once.
    pub(super) fn sort(&mut self, cx: &mut Cx, rq: RqId) {
        let (c, key) = (Self::class(cx, rq), cx.rqs[rq].sector);
        while let Some(i) = self.nodes.find(&self.sorted[c], key) {
            cx.why_rq(rules::ALIAS_EVICTED, RqId(i), || {
                "another request with its start sector dispatches it".to_owned()
            });
            self.take(cx, RqId(i));
            self.stop(cx);
        }
        self.nodes.insert(&mut self.sorted[c], rq.0, key);
    }

    /// `as_move_to_dispatch`: moves `rq` to the dispatch list.
    pub(super) fn take(&mut self, cx: &mut Cx, rq: RqId) {
        let c = Self::class(cx, rq);
        self.stop(cx);
        self.wait = Wait::Off;
        self.head[c] = cx.rqs[rq].end();
        let ctx = self.ctx_of(rq);
        if c == SYNC {
            self.set_antic_ctx(ctx);
            self.antic_task = Some(cx.iocs.get(cx.rqs[rq].ioc).task);
        } else {
            self.set_antic_ctx(None);
            if self.wleft != 0 {
                self.wleft -= 1;
            }
        }
        self.ctx_done = false;
        self.next[c] = self.find_next(cx, c, rq);
        self.nodes.remove(&mut self.sorted[c], rq.0);
        self.links.remove(&mut self.fifo[c], rq.0);
        self.rq[rq].place = Place::Dispatched;
        if let Some(x) = ctx {
            self.ctxs[x].queued -= 1;
            self.ctxs[x].dispatched += 1;
        }
        self.inflight += 1;
        cx.emit(rq, Emit::Sorted);
    }

    /// `as_fifo_expired`: returns true if the oldest request of class `c` has expired. Checks at
    /// most once per expiry time of the class.
    pub(super) fn fifo_expired(&mut self, cx: &Cx, c: usize) -> bool {
        let now = cx.jiffies();
        if now.abs_diff(self.last_look_j[c]) < self.expire_j[c] {
            return false;
        }
        self.last_look_j[c] = now;
        self.fifo_head(c)
            .is_some_and(|r| now > self.rq[r].deadline_j)
    }
    pub(super) fn batch_expired(&self, cx: &Cx) -> bool {
        if self.changing || self.new_batch {
            return false;
        }
        cx.jiffies() > self.batch_end_j || (self.batch == ASYNC && self.wleft == 0)
    }

    /// `update_write_batch`: adapts the number of writes in a batch. Runs at the first sync
    /// completion after a write batch, which shows how long the writes took.
    pub(super) fn adapt_wcount(&mut self, cx: &Cx) {
        let b = self.batch_expire_j[ASYNC];
        let t = (cx.jiffies() + b).saturating_sub(self.batch_end_j);
        if t > b && !self.w_idled {
            if t > 3 * b {
                self.wcount /= 2;
            } else {
                self.wcount = self.wcount.wrapping_sub(1);
            }
        } else if t < b && self.wleft == 0 {
            if b > 3 * t {
                self.wcount = self.wcount.wrapping_mul(2);
            } else {
                self.wcount = self.wcount.wrapping_add(1);
            }
        }
        self.wcount = self.wcount.max(1);
    }

    /// `as_dispatch_request` (last part): dispatches `rq`, or the oldest request if it has expired.
    /// After a change of batch, waits for the requests of the old batch. `looked`: the FIFO was
    /// checked already. Returns the number dispatched.
    pub(super) fn serve(&mut self, cx: &mut Cx, mut rq: RqId, looked: bool) -> u32 {
        let c = self.batch;
        if !looked
            && self.fifo_expired(cx, c)
            && let Some(head) = self.fifo_head(c)
        {
            cx.why_rq(rules::HEAD_EXPIRED, head, || {
                format!("the oldest {} request has expired", CLASS[c])
            });
            rq = head;
        }
        if self.changing {
            if self.inflight > 0 {
                let n = self.inflight;
                cx.why_rq(rules::DRAIN_FIRST, rq, || {
                    format!("{n} requests of the old batch are in flight")
                });
                return 0;
            }
            self.changing = false;
            if c == ASYNC {
                self.batch_end_j = cx.jiffies() + self.batch_expire_j[ASYNC];
            } else {
                self.new_batch = true;
            }
        }
        self.take(cx, rq);
        1
    }

    /// `as_dispatch_request` (middle part): begins a batch of the class that is next. Returns the
    /// number of requests dispatched.
    pub(super) fn begin_batch(&mut self, cx: &mut Cx, reads: bool, writes: bool) -> u32 {
        let rq = if reads && !(writes && self.batch == SYNC) {
            let head = self.fifo_head(SYNC);
            let about = move || head.map_or(About::default(), About::rq);
            cx.why(rules::SYNC_BATCH, || {
                about().says("sync requests, from the oldest")
            });
            self.changing |= self.batch == ASYNC;
            self.batch = SYNC;
            self.last_look_j[SYNC] = cx.jiffies();
            head
        } else {
            let n = self.wcount;
            cx.why(rules::ASYNC_BATCH, || format!("async requests, up to {n}"));
            if self.batch == SYNC {
                self.changing = true;
                self.new_batch = false;
            }
            self.batch = ASYNC;
            self.wleft = self.wcount;
            self.w_idled = false;
            if self.old {
                self.next[ASYNC].or(self.fifo_head(ASYNC))
            } else {
                self.last_look_j[ASYNC] = cx.jiffies();
                self.fifo_head(ASYNC)
            }
        };
        rq.map_or(0, |rq| self.serve(cx, rq, false))
    }

    pub(super) fn drain(&mut self, cx: &mut Cx) -> u32 {
        let mut n = 0;
        self.changing = false;
        self.new_batch = false;
        self.batch = SYNC;
        for c in [SYNC, ASYNC] {
            // After `next`, also take the requests in sector order. `next` can be `None` although
            // requests are queued, after a front merge dispatched an alias.
            while let Some(rq) = self.next[c].or(self.sorted[c].first().map(RqId)) {
                self.take(cx, rq);
                n += 1;
            }
            self.last_look_j[c] = cx.jiffies();
        }
        n
    }
}
