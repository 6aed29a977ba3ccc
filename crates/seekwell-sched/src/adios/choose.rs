//! Chooses the next request: from the priority queues, from the pages (which are filled and emptied
//! here), or from the barrier queue.

use super::{Adios, OTHER, Place, TYPES, WEIGHT, WRITE, page, rules};
use crate::cx::Cx;
use seekwell_core::RqId;

impl Adios {
    /// `fill_batch_queues`: moves requests from the deadline trees to page `p`.
    fn fill(&mut self, cx: &mut Cx, p: usize) {
        let tpl = self.tpl_ns;
        let (mut added, mut taken) = (0u64, [0u32; TYPES]);
        let by_sector = self.by_sector;
        self.pages[p].by_sector = by_sector;
        loop {
            let side = usize::from(self.bias < 0);
            let first = self.tree.map(|t| t.first().map(RqId));
            let (rq, charge) = match (first[side], first[1 - side]) {
                (None, None) => break,
                (Some(a), Some(b)) => (a, self.rq[a].deadline > self.rq[b].deadline),
                (Some(a), None) => (a, true),
                (None, Some(b)) => (b, false),
            };
            let k = Self::kind(cx.rqs[rq].op);
            let pl = self.rq[rq].pl;
            let total: u32 = taken.iter().sum();
            if total > 0
                && (self.model[k].base == 0
                    || taken[k] >= self.batch_limit[k]
                    || tpl.saturating_add(added).saturating_add(pl) > self.window_ns)
            {
                break;
            }
            if charge {
                let sign = if side == 1 { 1 } else { -1 };
                let weight = WEIGHT[(self.prio[side] + 20) as usize];
                let cost = u128::from(pl) * u128::from(weight) / 1024;
                let cost = i64::try_from(cost).unwrap_or(i64::MAX);
                self.bias = match pl {
                    0 => sign,
                    _ => self.bias.saturating_add(sign * cost),
                };
            }
            let bias = self.bias;
            cx.why_rq(rules::PAGE_FILLED, rq, || {
                format!("takes one of type {k}, {added} + {pl} ns, bias {bias}")
            });
            self.unsort(rq);
            cx.merge.forget(rq);
            let slot = match (by_sector, k) {
                (false, _) | (true, OTHER) => k,
                _ if self.rq[rq].deadline == cx.rqs[rq].start.0 => page::SYNC,
                _ => page::SWEEP,
            };
            self.links.push_back(&mut self.pages[p].fifo[slot], rq.0);
            self.rq[rq].place = Place::Page(p as u8);
            self.count(rq);
            added = added.saturating_add(pl);
            taken[k] += 1;
        }
        if by_sector && taken[WRITE] > 1 {
            self.pages[p].sort(&mut self.links, &cx.rqs, &mut self.scratch);
        }
        let total = taken.iter().sum();
        self.largest_total = self.largest_total.max(total);
        for (l, t) in self.largest.iter_mut().zip(taken) {
            *l = t.max(*l);
        }
    }

    /// `dispatch_from_bq`: returns the next request of the pages. Fills or switches the pages first
    /// if needed.
    pub(super) fn next_of_pages(&mut self, cx: &mut Cx, force: bool) -> Option<RqId> {
        let (have, other) = (!self.pages[self.current].is_empty(), 1 - self.current);
        let low = |ratio: u64| u128::from(self.window_ns) * u128::from(ratio) / 100;
        let refill = !have && (force || self.version.refill_when_empty)
            || self.tpl_ns == 0
            || u128::from(self.tpl_ns) < low(self.refill_percent);
        if refill && self.pages[other].is_empty() && !self.trees_empty() {
            self.fill(cx, other);
        }
        if !have && !self.pages[other].is_empty() {
            self.current = other;
            self.pages[other].aim(&cx.rqs, self.head);
        }
        let highest = self.version.highest_first;
        let rq = self.pages[self.current].pop(&mut self.links, highest)?;
        let left = self.pages[self.current].len();
        cx.why_rq(rules::PAGE_CONTINUES, RqId(rq), || {
            format!("next request of the page, {left} are left")
        });
        Some(RqId(rq))
    }

    /// Returns the next request of the priority queues, and removes it from its queue.
    pub(super) fn next_of_priority(&mut self, cx: &mut Cx) -> Option<RqId> {
        let q = usize::from(!self.priority[1].is_empty());
        let rq = RqId(self.links.pop_front(&mut self.priority[q])?);
        cx.why_rq(rules::PRIORITY_QUEUE, rq, || {
            format!("from priority queue {q}")
        });
        if self.priority[q].is_empty() {
            self.pages[self.current].aim(&cx.rqs, self.head);
        }
        Some(rq)
    }

    /// Releases the barrier after all requests before it were dispatched. Returns true if there was
    /// a barrier.
    pub(super) fn lift_barrier(&mut self, cx: &mut Cx) -> bool {
        let Some(first) = self.links.pop_front(&mut self.barriers) else {
            return false;
        };
        cx.why_rq(rules::BARRIER_LIFTED, RqId(first), || {
            "all requests before the barrier are dispatched".to_owned()
        });
        self.prioritise(cx, RqId(first), 1);
        while let Some(i) = self.barriers.first() {
            if self.is_barrier(cx.rqs[RqId(i)].op) {
                break;
            }
            self.links.remove(&mut self.barriers, i);
            self.sort(cx, RqId(i));
        }
        self.barred = !self.barriers.is_empty();
        true
    }
}
