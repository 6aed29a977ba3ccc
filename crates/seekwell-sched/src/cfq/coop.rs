//! Queues of 3.4 and later that work together. Position trees find queues with a request close to
//! the head. Queues that work in the same area are merged, and split later.

use super::Cfq;
use super::rules;
use super::sorted::NONE;
use crate::cx::Cx;
use seekwell_core::{Descent, IocId, RqId};

/// A request is close if its distance to the head is at most this many sectors.
const CLOSE: u64 = 8192;

impl Cfq {
    /// `cfq_rq_close`: returns true if `rq` is close to the head.
    #[inline]
    pub(super) fn close(&self, cx: &Cx, rq: RqId) -> bool {
        cx.rqs[rq].sector.distance(self.last_position) <= CLOSE
    }

    /// Removes `q` from its position tree.
    #[inline]
    pub(super) fn leave_position(&mut self, q: u32) {
        if let Some(level) = self.queue_mut(q).position.take() {
            self.position.remove(&mut self.positions[level as usize], q);
        }
    }
    /// `cfq_prio_tree_add`: sorts `q` by the start of its next request. A queue is left out if the
    /// tree already has a queue at the same sector.
    pub(super) fn enter_position(&mut self, cx: &Cx, q: u32) {
        self.leave_position(q);
        let x = self.queue(q);
        let (level, Some(next), false) = (x.org_level, x.held.next, x.is_idle()) else {
            return;
        };
        let sector = cx.rqs[next].sector;
        let tree = &mut self.positions[level as usize];
        if self.position.find(tree, sector).is_none() {
            self.position.insert(tree, q, sector);
            self.queue_mut(q).position = Some(level);
        }
    }
    /// Updates the key of `q` after its next request changed, or after the start of that request
    /// moved. The queue keeps its place in the tree, but searches compare with the new start, as in
    /// the kernel.
    #[inline]
    pub(super) fn position_moves(&mut self, cx: &Cx, q: u32) {
        let x = self.queue(q);
        if let (Some(_), Some(next)) = (x.position, x.held.next) {
            self.position.set_key(q, cx.rqs[next].sector);
        }
    }

    /// `cfq_close_cooperator`: returns a queue whose next request is close to the head, so that it
    /// would be a waste of time to idle for `q`.
    pub(super) fn cooperator(&self, cx: &Cx, q: u32) -> Option<u32> {
        let x = self.queue(q);
        if x.is_idle() || !x.sync || x.seeky() || self.group(x.group).busy == 1 {
            return None;
        }
        let found = self.queue_near_head(cx, x.org_level)?;
        let y = self.queue(found);
        let fits = y.group == x.group && y.sync && !y.seeky() && y.is_rt() == x.is_rt();
        fits.then_some(found)
    }
    /// `cfqq_close`: returns the queue whose next request is at the head, or a neighbour close to
    /// the head.
    fn queue_near_head(&self, cx: &Cx, level: u8) -> Option<u32> {
        let head = self.last_position;
        let tree = &self.positions[level as usize];
        let last = match self.position.descend(tree, |_, at| head.cmp(&at)) {
            Descent::Nothing => return None,
            Descent::Hit(q) => return Some(q),
            Descent::Last(q) => q,
        };
        let is_close = |q: u32| self.queue(q).held.next.is_some_and(|r| self.close(cx, r));
        if is_close(last) {
            return Some(last);
        }
        let other = if self.position.key(last) < head {
            self.position.next(last)
        } else {
            self.position.prev(last)
        };
        other.filter(|q| is_close(*q))
    }

    /// `cfq_setup_merge`: plans that the contexts of `q` and `other` share one queue from their
    /// next requests on.
    pub(super) fn schedule_merge(&mut self, cx: &mut Cx, q: u32, other: u32) {
        let mut target = other;
        if self.queue(target).process_refs() == 0 {
            return;
        }
        while let Some(next) = self.queue(target).merge_to {
            if next == q {
                return;
            }
            target = next;
        }
        let (mine, theirs) = (
            self.queue(q).process_refs(),
            self.queue(target).process_refs(),
        );
        if mine == 0 || theirs == 0 {
            return;
        }
        // The queue with fewer users merges into the other, so that fewer contexts move.
        let (from, to, refs) = if theirs >= mine {
            (q, target, mine)
        } else {
            (target, q, theirs)
        };
        cx.why(rules::MERGE_PLANNED, || {
            self.about(from)
                .and(self.about(to).task)
                .says("{who} is to merge into {other}")
        });
        self.queue_mut(from).merge_to = Some(to);
        self.queue_mut(to).refs += refs;
    }

    /// `cfq_merge_cfqqs`: moves the context from `q` to the queue of the planned merge. Returns
    /// that queue.
    pub(super) fn follow_merge(&mut self, cx: &mut Cx, ioc: IocId, q: u32, to: u32) -> u32 {
        cx.why(rules::QUEUES_MERGED, || {
            self.about(q)
                .and(self.about(to).task)
                .says("{who} joins {other}")
        });
        self.ctx.at(ioc).queue[1] = to;
        self.queue_mut(to).coop = true;
        self.put(cx, q);
        to
    }

    /// `split_cfqq`: takes a context off a shared queue whose processes do not work in the same
    /// area any more. The last user keeps the queue. Otherwise returns `None`, and the context gets
    /// a new queue.
    pub(super) fn split(&mut self, cx: &mut Cx, ioc: IocId, q: u32) -> Option<u32> {
        let x = self.queue_mut(q);
        if x.process_refs() == 1 {
            x.coop = false;
            x.split_coop = false;
            return Some(q);
        }
        cx.why(rules::QUEUE_SPLIT, || {
            self.about(q)
                .says("a process leaves the queue it shares with {who}")
        });
        self.ctx.at(ioc).queue[1] = NONE;
        self.drop_merge_chain(cx, q);
        self.put(cx, q);
        None
    }

    /// `cfq_put_cooperator`: drops the references that the planned merge of `q` took for one of its
    /// contexts.
    pub(super) fn drop_merge_chain(&mut self, cx: &mut Cx, q: u32) {
        let mut at = self.queue(q).merge_to;
        while let Some(i) = at {
            if i == q {
                break;
            }
            at = self.queue(i).merge_to;
            self.put(cx, i);
        }
    }
}
