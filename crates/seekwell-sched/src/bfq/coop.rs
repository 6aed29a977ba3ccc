//! Cooperating queues: the position tree, planned merges, and bursts of new queues.

use super::core::{CLOSE, Core, QId, Variant};
use super::entity::IDLE;
use super::rules;
use crate::cx::Cx;
use seekwell_core::rbtree::Descent;
use seekwell_core::{IocId, Sector};
use std::cmp::Ordering;

/// The distance between two positions.
fn apart(a: Sector, b: Sector) -> u64 {
    a.0.abs_diff(b.0)
}

impl<X: Variant> Core<X> {
    /// v7 has one tree for the device, mq one per group.
    fn pos_group(&self, q: QId) -> usize {
        if X::MQ {
            self.queue(q).group as usize
        } else {
            0
        }
    }
    /// `bfq_pos_tree_add_move` keys a queue by its next request. Of queues with the same position,
    /// the later one is left out.
    pub(super) fn pos_place(&mut self, cx: &Cx, q: QId) {
        self.pos_remove(q);
        if self.class(q) == IDLE {
            return;
        }
        let Some(next) = self.queue(q).next else {
            return;
        };
        let (at, g) = (cx.rqs[next].sector, self.pos_group(q));
        if self.pos.find(&self.groups[g].pos, at).is_none() {
            self.pos.insert(&mut self.groups[g].pos, q, at);
        }
    }
    pub(super) fn pos_remove(&mut self, q: QId) {
        if self.pos.linked(q) {
            let g = self.pos_group(q);
            self.pos.remove(&mut self.groups[g].pos, q);
        }
    }
    /// `bfqq_find_close`: the queue whose next request starts at `at`. Otherwise, the last queue on
    /// the search path if it is close; otherwise its neighbour on the other side of `at` if that is
    /// close. The result is not always the nearest queue, because it depends on the shape of the
    /// tree.
    pub(super) fn nearest(&self, q: QId, at: Sector) -> Option<QId> {
        let tree = &self.groups[self.pos_group(q)].pos;
        let last = match self.pos.descend(tree, |_, k| at.cmp(&k)) {
            Descent::Nothing => return None,
            Descent::Hit(i) => return Some(i),
            Descent::Last(i) => i,
        };
        let key = self.pos.key(last);
        if apart(key, at) <= CLOSE {
            return Some(last);
        }
        let other = match key.cmp(&at) {
            Ordering::Less => self.pos.next(last)?,
            _ => self.pos.prev(last)?,
        };
        (apart(self.pos.key(other), at) <= CLOSE).then_some(other)
    }

    /// `bfq_setup_merge`: plans that the processes of `q` move to `into` (or to the queue that the
    /// processes of `into` move to). Returns the target queue; `None` if one side has no processes.
    pub(super) fn arrange(&mut self, q: QId, into: QId) -> Option<QId> {
        // A process remembers a queue for a later stable merge, and may own that queue by then.
        if into == q || self.queue(into).procs == 0 {
            return None;
        }
        let mut into = into;
        while let Some(further) = self.queue(into).redirect {
            if further == q {
                return None;
            }
            into = further;
        }
        let n = self.queue(q).procs;
        if n == 0 || self.queue(into).procs == 0 || self.queue(q).group != self.queue(into).group {
            return None;
        }
        self.queue_mut(q).redirect = Some(into);
        self.queue_mut(into).procs += n;
        Some(into)
    }
    /// `bfq_put_cooperator`: the process that exits or splits from `q` does not follow the planned
    /// merges.
    pub(super) fn abandon(&mut self, q: QId) {
        let mut at = self.queue(q).redirect;
        while let Some(t) = at {
            if t == q {
                break;
            }
            at = self.queue(t).redirect;
            self.queue_mut(t).procs -= 1;
            self.free_if_unused(t);
        }
    }
    /// Makes `q` the sync (or async) queue of a process.
    pub(super) fn adopt(&mut self, ioc: IocId, q: QId) {
        let i = usize::from(self.queue(q).sync);
        self.procs.at(ioc.idx()).queues[i] = Some(q);
    }

    /// Whether the queue is on the list of the current burst.
    #[inline]
    pub(super) fn in_burst_list(&self, q: QId) -> bool {
        self.burst_links.linked(q)
    }
    pub(super) fn burst_remove(&mut self, q: QId) {
        if self.burst_links.linked(q) {
            self.burst_links.remove(&mut self.burst, q);
        }
    }
    pub(super) fn burst_add(&mut self, q: QId) {
        if !self.burst_links.linked(q) {
            self.burst_links.push_front(&mut self.burst, q);
        }
    }
    /// `bfq_reset_burst_list`: starts a new burst; it contains `q` if `with` is set.
    pub(super) fn burst_restart(&mut self, q: QId, with: bool) {
        self.large_burst = false;
        while self.burst_links.pop_front(&mut self.burst).is_some() {}
        self.burst_group = self.queue(q).group;
        self.burst_size = u32::from(with);
        if with {
            self.burst_add(q);
        }
    }
    /// `bfq_add_to_burst`: adds a creation to the current burst; the `threshold`-th one makes the
    /// burst large.
    pub(super) fn burst_grow(&mut self, cx: &mut Cx, q: QId, threshold: u32) {
        self.burst_size += 1;
        if self.burst_size != threshold {
            self.burst_add(q);
            return;
        }
        cx.why(rules::LARGE_BURST, || {
            format!("{threshold} new queues: a large burst")
        });
        self.large_burst = true;
        while let Some(member) = self.burst_links.pop_front(&mut self.burst) {
            self.queue_mut(member).in_large_burst = true;
        }
        self.queue_mut(q).in_large_burst = true;
    }
}
