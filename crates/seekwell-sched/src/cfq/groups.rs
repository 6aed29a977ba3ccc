//! Groups of 3.4 and later: the service trees of a group, the tree of groups sorted by virtual disk
//! time, the length of slices, and the charge for a slice.

use super::numbers::ThinkTime;
use super::queue::Kind;
use super::rules;
use super::weights::{SERVICE_SHIFT, WEIGHT_DEFAULT};
use super::{Cfq, Version};
use crate::cx::Cx;
use seekwell_core::{CgroupId, Class, Tree};

/// Index of the root group, which always exists.
pub(super) const ROOT: u32 = 0;

/// The classes, in the order of the service trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rank {
    /// Best effort.
    Be = 0,
    /// Real time.
    Rt = 1,
    /// Idle. All types share a single tree.
    Idle = 2,
}

impl Rank {
    /// Returns the rank of a scheduling class.
    pub fn from_class(class: Class) -> Self {
        match class {
            Class::Rt => Rank::Rt,
            Class::Idle => Rank::Idle,
            Class::Be | Class::None => Rank::Be,
        }
    }
}

/// Index of a service tree inside a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TreeId(u8);

impl TreeId {
    /// Number of service trees in a group.
    pub const COUNT: usize = 7;
    /// Returns the tree of a class and a workload type.
    pub fn new(rank: Rank, kind: Kind) -> Self {
        match rank {
            Rank::Idle => TreeId(6),
            _ => TreeId(rank as u8 * 3 + kind as u8),
        }
    }
    /// Returns the index of the tree in [`Group::trees`].
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

/// A service tree: the busy queues of one class and one workload type.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceTree {
    /// Queues sorted by key.
    pub tree: Tree,
    /// Think time, measured over all queues of the tree.
    pub think: ThinkTime,
}

/// The workload that a group served when its service stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    /// Jiffies left of the workload slice; 0 if nothing is saved.
    pub rest: u64,
    /// The class in service.
    pub rank: Rank,
    /// The workload type in service.
    pub kind: Kind,
}

impl Saved {
    const NOTHING: Saved = Saved {
        rest: 0,
        rank: Rank::Be,
        kind: Kind::Async,
    };
}

/// A group: CFQ's data for a cgroup on this device.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Id of the cgroup.
    pub cgroup: CgroupId,
    /// Index of the parent group (4.0 only).
    pub parent: Option<u32>,
    /// The service trees of the group.
    pub trees: [ServiceTree; TreeId::COUNT],
    /// Number of busy queues in the group.
    pub busy: u32,
    /// Virtual disk time; it advances when the group is charged.
    pub vdisktime: u64,
    /// Moving averages of the number of busy queues: `[BE, RT]`.
    pub busy_avg: [u64; 2],
    /// The workload at which the next service of the group continues.
    pub saved: Saved,
    /// Number of requests of the group that left a queue and have not completed.
    pub dispatched: u32,
    /// Think time, measured over the whole group.
    pub think: ThinkTime,
    /// Weight of the group against its siblings (3.4: against all groups).
    pub weight: u64,
    /// Weight of the group's own tasks against its child groups (4.0 only).
    pub leaf_weight: u64,
    /// A new weight that takes effect at the next activation.
    pub new_weight: Option<u64>,
    /// A new leaf weight that takes effect when the group next enters the tree.
    pub new_leaf_weight: Option<u64>,
    /// Sum of the weights of the active child groups, plus the leaf weight if the group is on the
    /// tree.
    pub children_weight: u64,
    /// Number of active child groups, plus one if the group itself is on the tree.
    pub active: u32,
    /// The group's fraction of the disk, times 4096.
    pub vfraction: u64,
    /// Number of queues and child groups that refer to the group.
    pub refs: u32,
    /// True if the cgroup was removed. Lookups do not find such a group.
    pub gone: bool,
}

impl Group {
    /// Returns an idle group. The caller sets the weights.
    pub fn new(cgroup: CgroupId, parent: Option<u32>, now: u64) -> Self {
        let tree = ServiceTree {
            tree: Tree::new(),
            think: ThinkTime::starting(now),
        };
        Group {
            cgroup,
            parent,
            trees: [tree; TreeId::COUNT],
            busy: 0,
            vdisktime: 0,
            busy_avg: [0; 2],
            saved: Saved::NOTHING,
            dispatched: 0,
            think: ThinkTime::starting(now),
            weight: 0,
            leaf_weight: 0,
            new_weight: None,
            new_leaf_weight: None,
            children_weight: 0,
            active: 0,
            vfraction: 0,
            refs: 0,
            gone: false,
        }
    }
    /// Returns the service tree with this id.
    #[inline]
    pub fn tree(&self, id: TreeId) -> &ServiceTree {
        &self.trees[id.idx()]
    }
    /// Returns the number of queues on a service tree.
    #[inline]
    pub fn count(&self, id: TreeId) -> u64 {
        self.tree(id).tree.len() as u64
    }
    /// Returns the number of busy queues of a class, of all types.
    pub fn busy_of(&self, rank: Rank) -> u64 {
        match rank {
            Rank::Idle => self.count(TreeId::new(rank, Kind::Async)),
            _ => [Kind::Async, Kind::NoIdle, Kind::Sync]
                .iter()
                .map(|k| self.count(TreeId::new(rank, *k)))
                .sum(),
        }
    }
    /// Returns the number of busy async queues of the classes RT and BE.
    pub fn busy_async(&self) -> u64 {
        self.count(TreeId::new(Rank::Rt, Kind::Async))
            + self.count(TreeId::new(Rank::Be, Kind::Async))
    }
}

/// Returns `a * b / c` computed with 128 bits, because extreme tunables give a larger product than
/// 64 bits.
fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    let c = c.max(1);
    match a.checked_mul(b) {
        Some(v) => v / c,
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX),
    }
}

impl Cfq {
    #[inline]
    pub(super) fn group(&self, i: u32) -> &Group {
        &self.groups[i as usize]
    }

    #[inline]
    pub(super) fn group_mut(&mut self, i: u32) -> &mut Group {
        &mut self.groups[i as usize]
    }

    /// Returns the service tree that `q` belongs to in its current state.
    #[inline]
    pub(super) fn tree_for(&self, q: u32) -> TreeId {
        let x = self.queue(q);
        TreeId::new(Rank::from_class(x.class), x.kind())
    }

    /// Returns the first queue of a service tree.
    #[inline]
    pub(super) fn first_of(&self, group: u32, id: TreeId) -> Option<u32> {
        self.group(group).tree(id).tree.first()
    }

    fn leave_tree(&mut self, q: u32) {
        if let Some(id) = self.queue_mut(q).tree.take() {
            let group = self.queue(q).group;
            let tree = &mut self.groups[group as usize].trees[id.idx()].tree;
            self.service.remove(tree, q);
        }
    }

    /// `cfq_service_tree_add`: inserts a busy queue at its key. With `front`, inserts it before all
    /// other queues of the tree.
    pub(super) fn resort(&mut self, cx: &mut Cx, q: u32, front: bool) {
        let now = cx.jiffies() as i64;
        let hz = cx.hz() as i64;
        let id = self.tree_for(q);
        let x = self.queue(q);
        let group = x.group;
        let tree = self.group(group).tree(id).tree;
        let key = if x.is_idle() {
            let last = self.service.last(&tree).filter(|l| *l != q);
            hz / 5 + last.map_or(now, |l| self.service.key(l))
        } else if front {
            tree.first().map_or(now, |f| self.service.key(f)) - hz
        } else {
            let others = i64::from(self.group(group).busy) - 1;
            let longest = self.set.prio_slice_j(true, 0) as i64;
            let own = self.set.prio_slice_j(x.sync, x.level) as i64;
            let resid = std::mem::take(&mut self.queue_mut(q).slice_resid);
            now + others * (longest - own) - resid
        };
        let was = self.queue(q).tree;
        if was == Some(id) && self.service.key(q) == key {
            return;
        }
        self.leave_tree(q);
        let tree = &mut self.groups[group as usize].trees[id.idx()].tree;
        self.service.insert(tree, q, key);
        self.queue_mut(q).tree = Some(id);
        if was.is_none() && !front {
            self.group_gains(cx, group);
        }
    }

    /// `cfq_group_notify_queue_add`: counts one more busy queue in `group`.
    fn group_gains(&mut self, cx: &Cx, group: u32) {
        self.group_mut(group).busy += 1;
        if self.group_nodes.linked(group) {
            return;
        }
        self.group_mut(group).vdisktime = match self.group_nodes.last(&self.group_tree) {
            Some(last) => self.group(last).vdisktime.wrapping_add(cx.hz() / 5),
            None => self.min_vdisktime,
        };
        self.enter(group);
    }

    /// `cfq_del_cfqq_rr`: removes `q` from the service tree, because `q` has no requests and its
    /// slice ended.
    pub(super) fn rest(&mut self, q: u32) {
        debug_assert!(self.queue(q).busy);
        self.leave_tree(q);
        self.leave_position(q);
        self.queue_mut(q).busy = false;
        self.busy -= 1;
        if self.queue(q).sync {
            self.busy_sync -= 1;
        }
        let group = self.queue(q).group;
        self.group_mut(group).busy -= 1;
        if self.group(group).busy == 0 {
            self.leave(group);
            self.group_mut(group).saved.rest = 0;
        }
    }

    /// `cfq_group_get_avg_queues`: updates and returns the average number of busy queues of a
    /// class.
    fn average_queues(&mut self, group: u32, rt: bool) -> u64 {
        let rank = if rt { Rank::Rt } else { Rank::Be };
        let g = self.group_mut(group);
        let (busy, avg) = (g.busy_of(rank), g.busy_avg[rank as usize]);
        let a = (3 * busy.max(avg) + busy.min(avg) + 2) / 4;
        g.busy_avg[rank as usize] = a;
        a
    }

    /// `cfq_scaled_cfqq_slice`: returns the length of the slice of `q`, in jiffies. The slice is
    /// shortened if one round of all queues of its class would take longer than the group's slice.
    pub(super) fn scaled_slice(&mut self, q: u32) -> u64 {
        let x = self.queue(q);
        let (group, rt) = (x.group, x.is_rt());
        let slice = self.set.prio_slice_j(x.sync, x.level);
        if !self.set.low_latency {
            return slice;
        }
        let queues = self.average_queues(group, rt);
        let base = self.set.slice_j[1];
        let (expected, share) = (base * queues, self.group_slice(group));
        if expected <= share {
            return slice;
        }
        let low = mul_div(slice, 2 * self.set.slice_idle_j, base).min(slice);
        mul_div(slice, share, expected).max(low)
    }
    /// `iops_mode`: returns true if service is counted in requests instead of time.
    #[inline]
    pub(super) fn iops_mode(&self) -> bool {
        self.set.slice_idle_j == 0 && self.hw_tag != 0
    }

    /// `cfq_group_served`: charges the slice of `q` to its group, and saves the rest of the
    /// workload's service.
    pub(super) fn charge(&mut self, cx: &mut Cx, q: u32) {
        let now = cx.jiffies();
        let x = self.queue(q);
        let group = x.group;
        let g = self.group(group);
        let used = if x.slice_start == 0 || x.slice_start == now {
            (now - x.dispatch_start).max(1)
        } else {
            (now - x.slice_start).min(x.allocated_slice)
        };
        let idle = g.count(TreeId::new(Rank::Idle, Kind::Async));
        let charge = if self.iops_mode() {
            x.slice_dispatch
        } else if !x.sync && u64::from(g.busy) == g.busy_async() + idle {
            x.allocated_slice
        } else {
            used
        };
        let scaled = if self.version == Version::V3_4 {
            ((charge << SERVICE_SHIFT) * WEIGHT_DEFAULT) / g.weight
        } else {
            (charge << (2 * SERVICE_SHIFT)) / g.vfraction.max(1)
        };
        self.leave(group);
        self.group_mut(group).vdisktime = self.group(group).vdisktime.wrapping_add(scaled);
        self.enter(group);
        let serving = self.serving;
        self.group_mut(group).saved = Saved {
            rest: serving.expires.saturating_sub(now),
            rank: serving.rank,
            kind: serving.kind,
        };
        cx.why(rules::GROUP_CHARGED, || {
            format!("group {group} is charged {charge}")
        });
    }

    /// `cfq_get_next_cfqg`: returns the first group of the tree. Also raises the minimum virtual
    /// time.
    pub(super) fn first_group(&mut self) -> Option<u32> {
        let first = self.group_tree.first()?;
        self.min_vdisktime = self.min_vdisktime.max(self.group(first).vdisktime);
        Some(first)
    }
}
