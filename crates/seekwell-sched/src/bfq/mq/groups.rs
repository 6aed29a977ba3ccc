//! Cgroups, and the limits on the tags that a queue or a group may use.

use super::{Bfq, is_6_1};
use crate::bfq::core::{Group, QId, Reason};
use crate::bfq::entity::BE;
use crate::bfq::rules;
use crate::contract::CgroupEvent;
use crate::cx::Cx;
use crate::shallow::{opened_by_word_limit, word_shift};
use seekwell_core::{Bio, CgroupId, IocId, Op};

/// Weight of a group whose cgroup has no configured weight.
const WEIGHT_DEFAULT: u32 = 100;
/// Largest weight of a group.
const WEIGHT_MAX: u32 = 1000;
/// Number of priority levels of a class. The tag limits also use it as the factor between the
/// weights of neighbouring classes.
const LEVELS: u64 = 8;

impl Bfq {
    fn group_weight(cx: &Cx, cgroup: CgroupId) -> u64 {
        let w = cx.cgroups.get(&cgroup).and_then(|c| c.weight);
        u64::from(w.unwrap_or(WEIGHT_DEFAULT).clamp(1, WEIGHT_MAX))
    }
    /// `bfq_bio_bfqg`: returns the group of a cgroup. At first use it creates the group and its
    /// ancestors.
    pub(super) fn group_of(&mut self, cx: &Cx, cgroup: CgroupId) -> u32 {
        let known = cx.cgroups.get(&cgroup).filter(|c| c.online);
        let (Some(c), false) = (known, cgroup == CgroupId::ROOT) else {
            return 0;
        };
        let mut groups = self.core.groups.iter();
        if let Some(i) = groups.position(|g| g.cgroup == cgroup) {
            return i as u32;
        }
        let parent = self.group_of(cx, c.parent);
        let node = self.core.groups[parent as usize].node;
        let ent = (self.core.wf).add_entity(node, BE, Self::group_weight(cx, cgroup));
        let inside = self.core.wf.add_node(Some(ent), cx.jiffies());
        self.core.wf.entity_mut(ent).inside = Some(inside);
        self.core.groups.push(Group::new(cgroup, Some(ent), inside));
        (self.core.groups.len() - 1) as u32
    }
    pub(super) fn group_event(&mut self, cx: &mut Cx, cgroup: CgroupId, what: CgroupEvent) {
        let mut groups = self.core.groups.iter();
        let Some(g) = groups.position(|g| g.cgroup == cgroup && g.ent.is_some()) else {
            return;
        };
        match what {
            CgroupEvent::Online | CgroupEvent::Weight => {
                if let Some(e) = self.core.groups[g].ent {
                    let e = self.core.wf.entity_mut(e);
                    e.new_weight = Self::group_weight(cx, cgroup);
                    e.changed = true;
                }
            }
            CgroupEvent::Offline => {
                for q in 0..self.core.queues.len() as QId {
                    if self.queue(q).live && self.queue(q).group as usize == g {
                        self.move_queue(cx, q, 0);
                    }
                }
            }
        }
    }

    /// `bfq_bic_update_cgroup`: moves the sync queue of a process whose cgroup changed.
    pub(super) fn follow_cgroup(&mut self, cx: &mut Cx, ioc: IocId, cgroup: CgroupId) {
        if self.core.groups.len() == 1 && cx.cgroups.is_empty() {
            return;
        }
        let g = self.group_of(cx, cgroup);
        let [shared, own] = self.core.procs.at(ioc.idx()).queues;
        if let Some(a) = shared
            && self.queue(a).group != g
        {
            self.core.procs[ioc].queues[0] = None;
            self.release(cx, a);
        }
        let Some(q) = own else { return };
        if self.queue(q).redirect.is_none() && !self.queue(q).shared {
            if self.queue(q).group != g {
                self.move_queue(cx, q, g);
            }
            return;
        }
        let mut at = Some(q);
        while let Some(t) = at {
            if self.queue(t).group != g {
                self.core.abandon(q);
                self.core.procs[ioc].queues[1] = None;
                self.release(cx, q);
                return;
            }
            at = self.queue(t).redirect;
        }
    }
    /// `bfq_bfqq_move`: moves queue `q` to group `to`.
    fn move_queue(&mut self, cx: &mut Cx, q: QId, to: u32) {
        let j = cx.jiffies();
        if self.core.serving == Some(q) {
            self.expire(cx, q, false, Reason::Preempted);
        }
        if !self.queue(q).live {
            return;
        }
        cx.why(rules::GROUP_CHANGED, || {
            self.core.about(q).says("{who} moves to another group")
        });
        let e = self.queue(q).ent;
        let engaged = self.queue(q).busy || self.queue(q).dispatched > 0;
        if self.queue(q).busy {
            self.core.wf.deactivate(e, false, false, j);
        } else {
            self.core.wf.drop_idle(e);
        }
        self.core.pos_remove(q);
        self.reassign_created(q, None);
        self.core.change_group(q, to, engaged);
        if self.queue(q).busy {
            if self.core.use_pos {
                self.core.pos_place(cx, q);
            }
            self.core.wf.activate(e, false, false, false, j);
        }
        if self.core.serving.is_none() && self.core.in_driver == 0 {
            self.schedule(cx);
        }
    }

    /// `bfq_update_depths`: computes the tag limits for async requests and sync writes. There are
    /// separate limits for the time in which raised queues are busy.
    pub(super) fn update_depths(&mut self, cx: &Cx) {
        let nr = cx.queue.nr_requests;
        let of = |n: u32| {
            let part = |num: u32, den: u32| {
                let v = u64::from(n) * u64::from(num) / u64::from(den);
                (v as u32).max(1)
            };
            [[part(1, 2), part(3, 4)], [part(3, 16), part(6, 16)]]
        };
        self.depths = if is_6_1(cx.queue.era) {
            let word = 1u32 << word_shift(nr);
            of(word).map(|row| row.map(|d| opened_by_word_limit(nr, d)))
        } else {
            of(nr)
        };
    }
    /// `bfq_limit_depth`: returns the number of tags that a bio may use; `None` if there is no
    /// limit.
    pub(super) fn depth_for(&mut self, cx: &Cx, bio: &Bio, ioc: IocId) -> Option<u32> {
        let nr = cx.queue.nr_requests;
        let sync = bio.is_sync(cx.queue.era);
        let limit = if bio.op == Op::Read && sync {
            nr
        } else {
            let raised = usize::from(self.core.wr_busy > 0);
            self.depths[raised][usize::from(sync)]
        };
        let q = self.core.procs.at(ioc.idx()).queues[usize::from(sync)];
        let over = q.is_some_and(|q| self.over_limit(q, limit));
        let limit = if over { 1 } else { limit };
        (limit < nr).then_some(limit)
    }
    /// `bfqq_request_over_limit`: returns true if the queue, or a group above it, already holds all
    /// the tags that its weight gives it.
    fn over_limit(&self, q: QId, limit: u32) -> bool {
        let wf = &self.core.wf;
        let leaf = self.queue(q).ent;
        let mut path = std::iter::successors(Some(leaf), |e| wf.parent(*e));
        if path.any(|e| !wf.entity(e).on_tree) {
            return false;
        }
        self.tags_left(leaf, leaf, u64::from(limit)).is_none()
    }
    /// Returns the number of tags that entity `e` may hold out of `limit`. `e` is `leaf` or an
    /// ancestor of `leaf`. The number is computed from the root down, by weight. Returns `None` if
    /// `e` or an ancestor already holds that many requests.
    fn tags_left(&self, e: u32, leaf: u32, limit: u64) -> Option<u64> {
        let wf = &self.core.wf;
        let limit = match wf.parent(e) {
            Some(above) => self.tags_left(above, leaf, limit)?,
            None => limit,
        };
        let x = wf.entity(e);
        let wsum = if e == leaf {
            let trees = &wf.nodes[x.node as usize].trees;
            let upto = &trees[..=usize::from(x.class)];
            upto.iter().fold(0, |w, t| w * LEVELS + t.wsum)
        } else {
            wf.st(e).wsum
        };
        if wsum == 0 {
            return Some(limit);
        }
        let limit = (limit * x.weight + wsum / 2) / wsum;
        (u64::from(x.allocated) < limit).then_some(limit)
    }
}
