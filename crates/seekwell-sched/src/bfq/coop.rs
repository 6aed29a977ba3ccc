//! Queues that work together: the position tree, planned merges, and bursts of new queues.

use super::core::{CLOSE, Core, QId, Variant};
use super::entity::IDLE;
use super::rules;
use crate::cx::Cx;
use seekwell_core::rbtree::Descent;
use seekwell_core::{IocId, Sector};
use std::cmp::Ordering;

/// Returns the distance between two positions, in sectors.
fn apart(a: Sector, b: Sector) -> u64 {
    a.0.abs_diff(b.0)
}

impl<X: Variant> Core<X> {
    /// Returns the group whose position tree contains `q`. v7 has one position tree per device (the
    /// tree of the root), mq one per group.
    fn pos_group(&self, q: QId) -> usize {
        if X::MQ {
            self.queue(q).group as usize
        } else {
            0
        }
    }
    /// `bfq_pos_tree_add_move`: sorts queue `q` by the start of its next request. A queue is left
    /// out if another queue with the same position is in the tree.
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
    /// `bfqq_find_close`: returns the queue whose next request starts at `at`, if there is one.
    /// Otherwise it checks the last queue on the search path, and then the neighbour of that queue
    /// on the other side of `at`. It returns the first of these two that is close. The result
    /// depends on the shape of the tree, so it is not always the nearest queue.
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

    /// `bfq_setup_merge`: plans that the processes of `q` will use queue `into`. If the processes
    /// of `into` will move too, the target is the queue that they will move to. Returns the target
    /// queue. Returns `None` if `q` or the target has no processes, or if their groups differ.
    pub(super) fn arrange(&mut self, q: QId, into: QId) -> Option<QId> {
        // A process can own the queue that it remembered for a later stable merge.
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
    /// `bfq_put_cooperator`: removes one process from the counts of all queues that `q` is planned
    /// to merge into. The process exits or leaves `q`.
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
    /// Makes `q` the sync or async queue of a process.
    pub(super) fn adopt(&mut self, ioc: IocId, q: QId) {
        let i = usize::from(self.queue(q).sync);
        self.procs.at(ioc.idx()).queues[i] = Some(q);
    }

    /// Returns true if the queue is on the list of the current burst.
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
    /// `bfq_reset_burst_list`: starts a new burst. If `with` is true, the burst contains `q`.
    pub(super) fn burst_restart(&mut self, q: QId, with: bool) {
        self.large_burst = false;
        while self.burst_links.pop_front(&mut self.burst).is_some() {}
        self.burst_group = self.queue(q).group;
        self.burst_size = u32::from(with);
        if with {
            self.burst_add(q);
        }
    }
    /// `bfq_add_to_burst`: adds the creation of `q` to the current burst. The burst becomes large
    /// when it has `threshold` queues.
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
