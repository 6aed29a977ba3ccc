//! Groups of 3.4 and 4.0: service trees inside a group, the tree of groups by virtual disk time,
//! weights, and what a slice is charged.

use super::numbers::ThinkTime;
use super::queue::Kind;
use super::{Cfq, Version};
use crate::cx::Cx;
use seekwell_core::{CgroupId, Class, Tree};

/// Index of the root group, which always exists.
pub(super) const ROOT: u32 = 0;

/// Classes as the service trees are laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rank {
    /// Best effort.
    Be = 0,
    /// Real time.
    Rt = 1,
    /// Idle: one tree, whatever the type.
    Idle = 2,
}

impl Rank {
    /// Of a scheduling class.
    pub fn of(class: Class) -> Self {
        match class {
            Class::Rt => Rank::Rt,
            Class::Idle => Rank::Idle,
            Class::Be | Class::None => Rank::Be,
        }
    }
}

/// A service tree inside a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TreeId(u8);

impl TreeId {
    /// Trees of a group.
    pub const COUNT: usize = 7;
    /// The tree of a class and type.
    pub fn new(rank: Rank, kind: Kind) -> Self {
        match rank {
            Rank::Idle => TreeId(6),
            _ => TreeId(rank as u8 * 3 + kind as u8),
        }
    }
    /// As an index.
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

/// Busy queues of one class and type, by key.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceTree {
    /// Queues by key.
    pub tree: Tree,
    /// Think time of all its queues together.
    pub think: ThinkTime,
}

/// What a group was doing when it was left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    /// Jiffies left of the workload slice; 0: nothing saved.
    pub rest: u64,
    /// Class it served.
    pub rank: Rank,
    /// Type it served.
    pub kind: Kind,
}

impl Saved {
    const NOTHING: Saved = Saved {
        rest: 0,
        rank: Rank::Be,
        kind: Kind::Async,
    };
}

/// A cgroup on this queue.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Which.
    pub cgroup: CgroupId,
    /// The group above it (4.0).
    pub parent: Option<u32>,
    /// Service trees.
    pub trees: [ServiceTree; TreeId::COUNT],
    /// Busy queues.
    pub busy: u32,
    /// Virtual disk time.
    pub vdisktime: u64,
    /// Moving averages of busy queues: BE, RT.
    pub busy_avg: [u64; 2],
    /// Workload it was left in.
    pub saved: Saved,
    /// Requests of it between leaving a queue and completion.
    pub dispatched: u32,
    /// Think time of the whole group.
    pub think: ThinkTime,
    /// Against its siblings (3.4: against all groups).
    pub weight: u64,
    /// Its own tasks against its children (4.0).
    pub leaf_weight: u64,
    new_weight: Option<u64>,
    new_leaf_weight: Option<u64>,
    /// Weights of its active children, and its own leaf weight if it is on the tree.
    pub children_weight: u64,
    /// Active children, and itself if it is on the tree.
    pub active: u32,
    /// Share of the disk, of 4096.
    pub vfraction: u64,
    /// Queues and child groups that refer to it.
    pub refs: u32,
    /// Its cgroup was removed: nobody finds it any more.
    pub gone: bool,
}

impl Group {
    fn new(cgroup: CgroupId, parent: Option<u32>, now: u64) -> Self {
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
    /// A service tree.
    #[inline]
    pub fn tree(&self, id: TreeId) -> &ServiceTree {
        &self.trees[id.idx()]
    }
    /// Queues on a service tree.
    #[inline]
    pub fn count(&self, id: TreeId) -> u64 {
        self.tree(id).tree.len() as u64
    }
    /// Busy queues of a class, all types.
    pub fn busy_of(&self, rank: Rank) -> u64 {
        match rank {
            Rank::Idle => self.count(TreeId::new(rank, Kind::Async)),
            _ => [Kind::Async, Kind::NoIdle, Kind::Sync]
                .iter()
                .map(|k| self.count(TreeId::new(rank, *k)))
                .sum(),
        }
    }
    /// Busy async queues of RT and BE.
    pub fn busy_async(&self) -> u64 {
        self.count(TreeId::new(Rank::Rt, Kind::Async))
            + self.count(TreeId::new(Rank::Be, Kind::Async))
    }
}

/// Fixed point of virtual disk time and shares: 12 bits.
const SERVICE_SHIFT: u32 = 12;
const WEIGHT_DEFAULT: u64 = 500;
const WEIGHT_ROOT: u64 = 1000;

impl Cfq {
    #[inline]
    pub(super) fn g(&self, i: u32) -> &Group {
        &self.groups[i as usize]
    }
    #[inline]
    pub(super) fn gm(&mut self, i: u32) -> &mut Group {
        &mut self.groups[i as usize]
    }

    /// Weight and leaf weight as the controller's files say; 10 to 1000.
    fn weights(cx: &Cx, cgroup: CgroupId) -> (u64, u64) {
        let root = cgroup == CgroupId::ROOT;
        let default = if root { WEIGHT_ROOT } else { WEIGHT_DEFAULT };
        let c = cx.cgroups.get(&cgroup);
        let read = |w: Option<u32>| w.map_or(default, |w| u64::from(w).clamp(10, 1000));
        let weight = read(c.and_then(|c| c.weight));
        let leaf = match c.and_then(|c| c.leaf_weight) {
            None if root => weight,
            w => read(w),
        };
        (weight, leaf)
    }

    /// The root group; made once.
    pub(super) fn make_root(&mut self, cx: &Cx) {
        let now = cx.jiffies();
        let mut root = Group::new(CgroupId::ROOT, None, now);
        if self.version == Version::V3_4 {
            root.think = ThinkTime::starting(0);
        }
        (root.weight, root.leaf_weight) = Self::weights(cx, CgroupId::ROOT);
        root.refs = 1;
        self.groups.push(root);
    }

    /// The group of a cgroup, made (with its ancestors in 4.0) if need be.
    pub(super) fn group_for(&mut self, cx: &Cx, cgroup: CgroupId) -> u32 {
        if cgroup == CgroupId::ROOT {
            return ROOT;
        }
        if let Some(i) = self.find_group(cgroup) {
            return i;
        }
        let parent = match (self.version, cx.cgroups.get(&cgroup)) {
            (Version::V4_0, Some(c)) if c.parent != cgroup => self.group_for(cx, c.parent),
            _ => ROOT,
        };
        self.gm(parent).refs += 1;
        let mut group = Group::new(cgroup, Some(parent), cx.jiffies());
        (group.weight, group.leaf_weight) = Self::weights(cx, cgroup);
        match self.free_groups.pop() {
            Some(i) => {
                self.groups[i as usize] = group;
                i
            }
            None => {
                self.groups.push(group);
                (self.groups.len() - 1) as u32
            }
        }
    }
    fn find_group(&self, cgroup: CgroupId) -> Option<u32> {
        let i = self
            .groups
            .iter()
            .position(|g| g.cgroup == cgroup && !g.gone)?;
        Some(i as u32)
    }
    /// A queue of `group` is freed; so is the group, if its cgroup is gone.
    pub(super) fn put_group(&mut self, group: u32) {
        let g = self.gm(group);
        g.refs -= 1;
        self.free_group(group);
    }
    fn free_group(&mut self, group: u32) {
        let g = self.g(group);
        if !g.gone || g.refs > 0 {
            return;
        }
        let parent = g.parent;
        self.free_groups.push(group);
        if let Some(p) = parent {
            self.put_group(p);
        }
    }
    /// A cgroup's weight was written: it counts from the next entry into the tree on.
    pub(super) fn reweigh(&mut self, cx: &Cx, cgroup: CgroupId) {
        if let Some(i) = self.find_group(cgroup) {
            let (weight, leaf) = Self::weights(cx, cgroup);
            let g = self.gm(i);
            (g.new_weight, g.new_leaf_weight) = (Some(weight), Some(leaf));
        }
    }
    /// A cgroup was removed.
    pub(super) fn offline(&mut self, cgroup: CgroupId) {
        if cgroup != CgroupId::ROOT
            && let Some(i) = self.find_group(cgroup)
        {
            self.gm(i).gone = true;
            self.free_group(i);
        }
    }

    /// The service tree `q` would be put on now.
    #[inline]
    pub(super) fn tree_for(&self, q: u32) -> TreeId {
        let x = self.q(q);
        TreeId::new(Rank::of(x.class), x.kind())
    }
    /// First queue of a service tree.
    #[inline]
    pub(super) fn first_of(&self, group: u32, id: TreeId) -> Option<u32> {
        self.g(group).tree(id).tree.first()
    }
    fn leave_tree(&mut self, q: u32) {
        if let Some(id) = self.qm(q).tree.take() {
            let group = self.q(q).group;
            let tree = &mut self.groups[group as usize].trees[id.idx()].tree;
            self.service.remove(tree, q);
        }
    }

    /// 4.4: puts a busy queue where its key says; `front`: before all others of its tree.
    pub(super) fn resort(&mut self, cx: &mut Cx, q: u32, front: bool) {
        let now = cx.jiffies() as i64;
        let hz = cx.hz() as i64;
        let id = self.tree_for(q);
        let x = self.q(q);
        let group = x.group;
        let tree = self.g(group).tree(id).tree;
        let key = if x.is_idle() {
            let last = self.service.last(&tree).filter(|l| *l != q);
            hz / 5 + last.map_or(now, |l| self.service.key(l))
        } else if front {
            tree.first().map_or(now, |f| self.service.key(f)) - hz
        } else {
            let others = i64::from(self.g(group).busy) - 1;
            let longest = self.set.prio_slice_j(true, 0) as i64;
            let own = self.set.prio_slice_j(x.sync, x.level) as i64;
            let resid = std::mem::take(&mut self.qm(q).slice_resid);
            now + others * (longest - own) - resid
        };
        let was = self.q(q).tree;
        if was == Some(id) && self.service.key(q) == key {
            return;
        }
        self.leave_tree(q);
        let tree = &mut self.groups[group as usize].trees[id.idx()].tree;
        self.service.insert(tree, q, key);
        self.qm(q).tree = Some(id);
        if was.is_none() && !front {
            self.group_gains(cx, group);
        }
    }

    /// One more busy queue in `group`.
    fn group_gains(&mut self, cx: &Cx, group: u32) {
        self.gm(group).busy += 1;
        if self.group_nodes.linked(group) {
            return;
        }
        self.gm(group).vdisktime = match self.group_nodes.last(&self.group_tree) {
            Some(last) => self.g(last).vdisktime.wrapping_add(cx.hz() / 5),
            None => self.min_vdisktime,
        };
        self.enter(group);
    }

    /// `q` stops being busy.
    pub(super) fn rest(&mut self, q: u32) {
        debug_assert!(self.q(q).busy);
        self.leave_tree(q);
        self.leave_position(q);
        self.qm(q).busy = false;
        self.busy -= 1;
        if self.q(q).sync {
            self.busy_sync -= 1;
        }
        let group = self.q(q).group;
        self.gm(group).busy -= 1;
        if self.g(group).busy == 0 {
            self.leave(group);
            self.gm(group).saved.rest = 0;
        }
    }

    /// A group enters the tree of groups: pending weights apply, its share is reckoned.
    fn enter(&mut self, group: u32) {
        let flat = self.version == Version::V3_4;
        let g = self.gm(group);
        if flat {
            if let Some(w) = g.new_weight.take() {
                g.weight = w;
            }
            let weight = g.weight;
            self.total_weight += weight;
        } else {
            if let Some(w) = g.new_leaf_weight.take() {
                g.leaf_weight = w;
            }
            self.activate_group(group);
        }
        let key = self.g(group).vdisktime;
        self.group_nodes.insert(&mut self.group_tree, group, key);
    }
    fn leave(&mut self, group: u32) {
        self.group_nodes.remove(&mut self.group_tree, group);
        if self.version == Version::V3_4 {
            self.total_weight -= self.g(group).weight;
        } else {
            self.deactivate_group(group);
        }
    }
    /// 6.4 (4.0): activation spreads upward until an ancestor is active already; then the share
    /// is the product of the weights' fractions along the way.
    fn activate_group(&mut self, group: u32) {
        let mut at = group;
        let g = self.gm(at);
        g.active += 1;
        let mut spread = g.active == 1;
        g.children_weight += g.leaf_weight;
        let mut share = (1 << SERVICE_SHIFT) * g.leaf_weight / g.children_weight;
        while let Some(parent) = self.g(at).parent {
            if spread {
                let g = self.gm(at);
                if let Some(w) = g.new_weight.take() {
                    g.weight = w;
                }
                let weight = g.weight;
                let p = self.gm(parent);
                p.active += 1;
                spread = p.active == 1;
                p.children_weight += weight;
            }
            share = share * self.g(at).weight / self.g(parent).children_weight;
            at = parent;
        }
        self.gm(group).vfraction = share.max(1);
    }
    fn deactivate_group(&mut self, group: u32) {
        let mut at = group;
        let g = self.gm(at);
        g.active -= 1;
        g.children_weight -= g.leaf_weight;
        let mut spread = g.active == 0;
        while spread {
            self.gm(at).vfraction = 0;
            let Some(parent) = self.g(at).parent else {
                break;
            };
            let weight = self.g(at).weight;
            let p = self.gm(parent);
            p.active -= 1;
            p.children_weight -= weight;
            spread = p.active == 0;
            at = parent;
        }
    }

    /// 4.3: what a group may use of one target latency, jiffies.
    pub(super) fn group_slice(&self, group: u32) -> u64 {
        let g = self.g(group);
        if self.version == Version::V3_4 {
            self.set.target_latency_j * g.weight / self.total_weight.max(1)
        } else {
            (self.set.target_latency_j * g.vfraction) >> SERVICE_SHIFT
        }
    }

    /// 4.2: average of busy queues of a class; asking moves it.
    fn average_queues(&mut self, group: u32, rt: bool) -> u64 {
        let rank = if rt { Rank::Rt } else { Rank::Be };
        let g = self.gm(group);
        let (busy, avg) = (g.busy_of(rank), g.busy_avg[rank as usize]);
        let a = (3 * busy.max(avg) + busy.min(avg) + 2) / 4;
        g.busy_avg[rank as usize] = a;
        a
    }
    /// 4.2: slice of `q`, shrunk if a round of its class would not fit the group's share.
    pub(super) fn scaled_slice(&mut self, q: u32) -> u64 {
        let x = self.q(q);
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
        // Tunables at their extremes exceed 64 bits here.
        let scale = |by: u64, of: u64| u128::from(slice) * u128::from(by) / u128::from(of.max(1));
        let low = scale(2 * self.set.slice_idle_j, base).min(u128::from(slice));
        scale(share, expected).max(low) as u64
    }
    /// 4.8: accounting by requests instead of time.
    #[inline]
    pub(super) fn iops_mode(&self) -> bool {
        self.set.slice_idle_j == 0 && self.hw_tag != 0
    }

    /// 6.3: charges the slice of `q` to its group, and keeps what its workload has left.
    pub(super) fn charge(&mut self, cx: &mut Cx, q: u32) {
        let now = cx.jiffies();
        let x = self.q(q);
        let group = x.group;
        let g = self.g(group);
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
        self.gm(group).vdisktime = self.g(group).vdisktime.wrapping_add(scaled);
        self.enter(group);
        let serving = self.serving;
        self.gm(group).saved = Saved {
            rest: serving.expires.saturating_sub(now),
            rank: serving.rank,
            kind: serving.kind,
        };
        cx.why("6.3", || format!("group {group} is charged {charge}"));
    }

    /// First group of the tree; moves the least virtual time along.
    pub(super) fn first_group(&mut self) -> Option<u32> {
        let first = self.group_tree.first()?;
        self.min_vdisktime = self.min_vdisktime.max(self.g(first).vdisktime);
        Some(first)
    }
}
