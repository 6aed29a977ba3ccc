//! Groups of 3.4 and later: creation, removal and weights (flat in 3.4, hierarchical since 4.0).

use super::groups::{Group, ROOT};
use super::numbers::ThinkTime;
use super::{Cfq, Version};
use crate::cx::Cx;
use seekwell_core::CgroupId;

/// Number of fraction bits of a virtual disk time and of a fraction of the disk.
pub(super) const SERVICE_SHIFT: u32 = 12;
/// Weight of a group whose cgroup has no configured weight.
pub(super) const WEIGHT_DEFAULT: u64 = 500;
/// Weight of the root group.
const WEIGHT_ROOT: u64 = 1000;

impl Cfq {
    /// Returns the weight and leaf weight of a cgroup from the controller's files; 10 to 1000.
    pub(super) fn weights(cx: &Cx, cgroup: CgroupId) -> (u64, u64) {
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

    /// Creates the root group. Runs once.
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

    /// Returns the group of a cgroup. Creates the group if needed (since 4.0 also its ancestors).
    pub(super) fn group_for(&mut self, cx: &Cx, cgroup: CgroupId) -> u32 {
        if cgroup == CgroupId::ROOT {
            return ROOT;
        }
        if let Some(i) = self.find_group(cgroup) {
            return i;
        }
        let parent = match (self.version, cx.cgroups.get(&cgroup)) {
            (Version::V4_0 | Version::V4_4, Some(c)) if c.parent != cgroup => {
                self.group_for(cx, c.parent)
            }
            _ => ROOT,
        };
        self.group_mut(parent).refs += 1;
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

    pub(super) fn find_group(&self, cgroup: CgroupId) -> Option<u32> {
        let i = self
            .groups
            .iter()
            .position(|g| g.cgroup == cgroup && !g.gone)?;
        Some(i as u32)
    }

    /// Drops the reference of a freed queue or child to `group`. Frees the group if its cgroup was
    /// removed.
    pub(super) fn put_group(&mut self, group: u32) {
        let g = self.group_mut(group);
        g.refs -= 1;
        self.free_group(group);
    }

    pub(super) fn free_group(&mut self, group: u32) {
        let g = self.group(group);
        if !g.gone || g.refs > 0 {
            return;
        }
        let parent = g.parent;
        self.free_groups.push(group);
        if let Some(p) = parent {
            self.put_group(p);
        }
    }

    /// Stores a new weight of a cgroup. It takes effect when the group next enters the tree.
    pub(super) fn reweigh(&mut self, cx: &Cx, cgroup: CgroupId) {
        if let Some(i) = self.find_group(cgroup) {
            let (weight, leaf) = Self::weights(cx, cgroup);
            let g = self.group_mut(i);
            (g.new_weight, g.new_leaf_weight) = (Some(weight), Some(leaf));
        }
    }

    /// Marks the group of a removed cgroup, and frees the group if nothing refers to it.
    pub(super) fn offline(&mut self, cgroup: CgroupId) {
        if cgroup != CgroupId::ROOT
            && let Some(i) = self.find_group(cgroup)
        {
            self.group_mut(i).gone = true;
            self.free_group(i);
        }
    }

    /// `cfq_group_service_tree_add`: inserts a group into the tree of groups. Its pending weights
    /// take effect, and its fraction of the disk is computed.
    pub(super) fn enter(&mut self, group: u32) {
        let flat = self.version == Version::V3_4;
        let g = self.group_mut(group);
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
        let key = self.group(group).vdisktime;
        self.group_nodes.insert(&mut self.group_tree, group, key);
    }

    /// `cfq_group_service_tree_del`: removes a group from the tree of groups.
    pub(super) fn leave(&mut self, group: u32) {
        self.group_nodes.remove(&mut self.group_tree, group);
        if self.version == Version::V3_4 {
            self.total_weight -= self.group(group).weight;
        } else {
            self.deactivate_group(group);
        }
    }

    /// Activates the group and its ancestors, up to the first ancestor that is already active
    /// (4.0). The group's fraction of the disk is the product of the weight fractions on the path
    /// to the root.
    pub(super) fn activate_group(&mut self, group: u32) {
        let mut at = group;
        let g = self.group_mut(at);
        g.active += 1;
        let mut spread = g.active == 1;
        g.children_weight += g.leaf_weight;
        let mut share = (1 << SERVICE_SHIFT) * g.leaf_weight / g.children_weight;
        while let Some(parent) = self.group(at).parent {
            if spread {
                let g = self.group_mut(at);
                if let Some(w) = g.new_weight.take() {
                    g.weight = w;
                }
                let weight = g.weight;
                let p = self.group_mut(parent);
                p.active += 1;
                spread = p.active == 1;
                p.children_weight += weight;
            }
            share = share * self.group(at).weight / self.group(parent).children_weight;
            at = parent;
        }
        self.group_mut(group).vfraction = share.max(1);
    }

    pub(super) fn deactivate_group(&mut self, group: u32) {
        let mut at = group;
        let g = self.group_mut(at);
        g.active -= 1;
        g.children_weight -= g.leaf_weight;
        let mut spread = g.active == 0;
        while spread {
            self.group_mut(at).vfraction = 0;
            let Some(parent) = self.group(at).parent else {
                break;
            };
            let weight = self.group(at).weight;
            let p = self.group_mut(parent);
            p.active -= 1;
            p.children_weight -= weight;
            spread = p.active == 0;
            at = parent;
        }
    }

    /// `cfq_group_slice`: returns the part of one target latency that a group may use, in jiffies.
    pub(super) fn group_slice(&self, group: u32) -> u64 {
        let g = self.group(group);
        if self.version == Version::V3_4 {
            self.set.target_latency_j * g.weight / self.total_weight.max(1)
        } else {
            (self.set.target_latency_j * g.vfraction) >> SERVICE_SHIFT
        }
    }
}
