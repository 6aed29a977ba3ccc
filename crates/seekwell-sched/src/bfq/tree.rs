//! B-WF2Q+: service trees with virtual time, nested for groups. The algorithm is Bennett and
//! Zhang's WF2Q+ with budgets, by Valente and Avanzini.
//!
//! A node has one service tree per class. A service tree contains the waiting entities (sorted by
//! virtual finish time), the entities that recently became idle, a virtual time and a sum of
//! weights. [`Wf2q::first_eligible`] chooses the next entity with the kernel's search. That search
//! does not always find the eligible entity with the smallest finish time.
//!
//! Both variants use this file, but they choose at different times. v7 chooses when it needs a
//! queue. mq caches the next entity of each node and updates the cached entity with as little
//! searching as possible.

mod choice;

use super::entity::{CLASSES, ClassIdx, EntId, Entity, NodeId, Set, Weights, delta, gt};
use seekwell_core::rbtree::Augment;
use seekwell_core::{Links, List, Nodes, Tree};
use std::cmp::Ordering;

/// Sort key of an entity in a set. Only the finish time determines the order. The start time is
/// stored for the augmentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Key {
    finish: u64,
    start: u64,
}

impl PartialEq for Key {
    fn eq(&self, o: &Key) -> bool {
        self.finish == o.finish
    }
}
impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, o: &Key) -> Option<Ordering> {
        Some((self.finish.wrapping_sub(o.finish) as i64).cmp(&0))
    }
}

/// The smallest start time in a subtree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MinStart(u64);

impl Augment<Key> for MinStart {
    const ON: bool = true;
    #[inline]
    fn combine(key: Key, left: Option<Self>, right: Option<Self>) -> Self {
        let mut min = key.start;
        for child in [left, right].into_iter().flatten() {
            if gt(min, child.0) {
                min = child.0;
            }
        }
        MinStart(min)
    }
}

/// The service tree of one class in a node.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceTree {
    active: Tree,
    idle: Tree,
    /// Virtual time of the tree.
    pub vtime: u64,
    /// Sum of the weights of the entities that wait, are idle or are in service.
    pub wsum: u64,
}

/// A node: the root, or the inside of a group.
#[derive(Clone, Debug)]
pub struct Node {
    /// Service trees, by class.
    pub trees: [ServiceTree; CLASSES],
    /// The entity in service.
    pub in_service: Option<EntId>,
    /// The entity to serve next (mq, and groups of v7).
    pub next: Option<EntId>,
    /// Entity of the group that contains this node; `None` for the root.
    pub owner: Option<EntId>,
    /// The jiffy at which the IDLE class was last checked ahead of the other classes.
    pub idle_check_j: u64,
}

/// All nodes and entities of a scheduler.
#[derive(Debug)]
pub struct Wf2q {
    mq: bool,
    /// All entities, by [`EntId`].
    pub ents: Vec<Entity>,
    free: Vec<EntId>,
    /// All nodes, by [`NodeId`]; 0 is the root.
    pub nodes: Vec<Node>,
    sets: Nodes<Key, MinStart>,
    links: Links,
    active_queues: List,
    /// Weights of the queues that are not raised and have requests, queued or in the driver.
    pub weights: Weights,
    /// Entities of the queues that left all service trees since the last call of `reap`.
    pub forgotten: Vec<EntId>,
    /// If the IDLE class was not checked for this time (200 ms), it is checked ahead of the others.
    idle_limit_j: u64,
}

/// Id of the root node.
pub const ROOT: NodeId = 0;

impl Wf2q {
    /// Returns an empty root. `j` is the current jiffy, `hz` the number of jiffies per second.
    pub fn new(mq: bool, j: u64, hz: u64) -> Self {
        let mut w = Wf2q {
            mq,
            ents: Vec::new(),
            free: Vec::new(),
            nodes: Vec::new(),
            sets: Nodes::new(),
            links: Links::new(),
            active_queues: List::new(),
            weights: Weights::default(),
            forgotten: Vec::new(),
            idle_limit_j: hz / 5,
        };
        w.add_node(None, j);
        w
    }
    /// Adds a node inside `owner`. In mq the 200 ms of the IDLE class begin at jiffy `j`. In v7
    /// they begin at jiffy 0, so the first choice checks the IDLE class first.
    pub fn add_node(&mut self, owner: Option<EntId>, j: u64) -> NodeId {
        let j = if self.mq { j } else { 0 };
        self.nodes.push(Node {
            trees: [ServiceTree::default(); CLASSES],
            in_service: None,
            next: None,
            owner,
            idle_check_j: j,
        });
        (self.nodes.len() - 1) as NodeId
    }
    /// Adds an entity with a class and a weight to `node`. The entity is not in a service tree yet.
    pub fn add_entity(&mut self, node: NodeId, class: ClassIdx, weight: u64) -> EntId {
        let e = Entity {
            weight,
            orig_weight: weight,
            new_weight: weight,
            coeff: 1,
            class,
            new_class: class,
            node,
            ..Entity::default()
        };
        match self.free.pop() {
            Some(i) => {
                self.ents[i as usize] = e;
                i
            }
            None => {
                self.ents.push(e);
                (self.ents.len() - 1) as EntId
            }
        }
    }
    /// Frees an entity that is in no tree.
    pub fn free_entity(&mut self, e: EntId) {
        debug_assert!(!self.entity(e).on_tree && self.entity(e).counted == 0);
        self.ents[e as usize].queue = None;
        self.free.push(e);
    }
    /// Returns entity `e`.
    #[inline]
    pub fn entity(&self, e: EntId) -> &Entity {
        &self.ents[e as usize]
    }
    /// Returns entity `e`, mutable.
    #[inline]
    pub fn entity_mut(&mut self, e: EntId) -> &mut Entity {
        &mut self.ents[e as usize]
    }
    #[inline]
    fn tree_of(&self, e: EntId) -> (usize, usize) {
        let x = self.entity(e);
        (x.node as usize, usize::from(x.class))
    }
    /// Returns the service tree that entity `e` belongs to.
    #[inline]
    pub fn st(&self, e: EntId) -> &ServiceTree {
        let (n, c) = self.tree_of(e);
        &self.nodes[n].trees[c]
    }
    #[inline]
    fn st_mut(&mut self, e: EntId) -> &mut ServiceTree {
        let (n, c) = self.tree_of(e);
        &mut self.nodes[n].trees[c]
    }
    /// Returns the entity of the group that contains `e`; `None` at the root.
    #[inline]
    pub fn parent(&self, e: EntId) -> Option<EntId> {
        self.nodes[self.entity(e).node as usize].owner
    }
    /// Returns true if entity `e` is in service in its node.
    #[inline]
    pub fn serving(&self, e: EntId) -> bool {
        self.nodes[self.entity(e).node as usize].in_service == Some(e)
    }
    /// Returns the waiting queues; the queue inserted last comes first.
    pub fn active_queues(&self) -> impl Iterator<Item = u32> + '_ {
        self.links
            .iter(&self.active_queues)
            .filter_map(|e| self.entity(e).queue)
    }
    fn active_in(&self, n: NodeId) -> usize {
        let trees = &self.nodes[n as usize].trees;
        trees.iter().map(|t| t.active.len()).sum()
    }

    /// `bfq_active_insert`: adds `e` to the active set or (`bfq_idle_insert`) to the idle set.
    fn insert(&mut self, e: EntId, set: Set) {
        let (n, c) = self.tree_of(e);
        let x = &mut self.ents[e as usize];
        x.set = set;
        let key = Key {
            finish: x.finish,
            start: x.start,
        };
        let is_queue = x.queue.is_some();
        let st = &mut self.nodes[n].trees[c];
        if set == Set::Active {
            self.sets.insert(&mut st.active, e, key);
            if is_queue {
                self.links.push_front(&mut self.active_queues, e);
            }
        } else {
            self.sets.insert(&mut st.idle, e, key);
        }
    }
    /// `bfq_active_extract`: removes `e` from the active set or (`bfq_idle_extract`) the idle set.
    fn extract(&mut self, e: EntId) {
        let (n, c) = self.tree_of(e);
        let x = &mut self.ents[e as usize];
        let set = std::mem::take(&mut x.set);
        let is_queue = x.queue.is_some();
        let st = &mut self.nodes[n].trees[c];
        match set {
            Set::Active => {
                self.sets.remove(&mut st.active, e);
                if is_queue {
                    self.links.remove(&mut self.active_queues, e);
                }
            }
            Set::Idle => self.sets.remove(&mut st.idle, e),
            Set::None => {}
        }
    }

    /// `bfq_forget_entity`: removes entity `e` from its service tree and its weight from the sum.
    fn forget(&mut self, e: EntId) {
        let w = self.entity(e).weight;
        self.st_mut(e).wsum -= w;
        self.entity_mut(e).on_tree = false;
        if self.entity(e).queue.is_some() {
            self.forgotten.push(e);
        }
    }
    /// Removes entity `e` from its service tree if it is idle.
    pub fn drop_idle(&mut self, e: EntId) {
        if self.entity(e).on_tree && self.entity(e).set == Set::Idle {
            self.extract(e);
            self.forget(e);
        }
    }

    /// `bfq_forget_idle`: removes the first idle entity if its finish time has passed. Runs after
    /// each change of a virtual time.
    fn cleanup(&mut self, n: usize, c: usize) {
        let st = &self.nodes[n].trees[c];
        let (first, last) = (st.idle.first(), self.sets.last(&st.idle));
        if st.active.is_empty()
            && let Some(l) = last
            && !gt(self.entity(l).finish, st.vtime)
        {
            self.nodes[n].trees[c].vtime = self.entity(l).finish;
        }
        if let Some(f) = first
            && !gt(self.entity(f).finish, self.nodes[n].trees[c].vtime)
        {
            self.extract(f);
            self.forget(f);
        }
    }
    /// Runs `cleanup` for the service tree of `e`, during a forced drain.
    pub fn cleanup_of(&mut self, e: EntId) {
        let (n, c) = self.tree_of(e);
        self.cleanup(n, c);
    }

    /// `bfq_bfqq_served`: charges `sectors` to entity `e` and to its ancestors.
    pub fn serve(&mut self, e: EntId, sectors: u64) {
        let mut at = Some(e);
        while let Some(e) = at {
            self.entity_mut(e).service += sectors;
            let (n, c) = self.tree_of(e);
            let st = &mut self.nodes[n].trees[c];
            st.vtime = st.vtime.wrapping_add(delta(sectors, st.wsum));
            self.cleanup(n, c);
            at = self.nodes[n].owner;
        }
    }

    /// `__bfq_entity_update_weight_prio`: applies pending changes of weight and raising.
    /// `class_too`: also applies a pending change of class; false while the entity is in a set of
    /// its class.
    pub fn apply_change(&mut self, e: EntId, class_too: bool) {
        if !self.entity(e).changed {
            return;
        }
        let old = self.tree_of(e);
        let x = &mut self.ents[e as usize];
        let before = x.weight;
        self.nodes[old.0].trees[old.1].wsum -= before;
        x.orig_weight = x.new_weight;
        if class_too {
            x.class = x.new_class;
        }
        x.changed = x.class != x.new_class;
        let after = x.orig_weight * x.coeff.max(1);
        x.weight = after;
        let counts = x.queue.is_some() && x.coeff <= 1;
        if before != after {
            self.uncount(e);
            if counts {
                self.count(e);
            }
        }
        let new = self.tree_of(e);
        let st = &mut self.nodes[new.0].trees[new.1];
        st.wsum += after;
        if new != old {
            let v = st.vtime;
            self.entity_mut(e).start = v;
        }
    }
    /// Counts the weight of a queue in [`Weights`], unless it is counted already.
    pub fn count(&mut self, e: EntId) {
        let x = &mut self.ents[e as usize];
        if x.counted == 0 {
            x.counted = x.weight;
            self.weights.add(x.weight);
        }
    }
    /// Removes the weight of a queue from [`Weights`].
    pub fn uncount(&mut self, e: EntId) {
        let w = std::mem::take(&mut self.entity_mut(e).counted);
        if w != 0 {
            self.weights.remove(w);
        }
    }

    /// `__bfq_activate_entity`: inserts `e` into the active set. The entity can come from service,
    /// from the active set (with a new budget), from the idle set, or from no set.
    fn enqueue(&mut self, e: EntId, backshift: bool) {
        let mut shifted = false;
        let serving = self.serving(e);
        if serving || self.entity(e).set == Set::Active {
            if self.entity(e).set == Set::Active {
                self.extract(e);
            }
            if serving {
                let n = self.entity(e).node as usize;
                if !self.mq {
                    self.nodes[n].in_service = None;
                }
                let x = self.entity_mut(e);
                x.set_finish(x.service);
                x.start = x.finish;
            }
        } else {
            let v = self.st(e).vtime;
            let finish = self.entity(e).finish;
            shifted = self.mq && backshift && gt(v, finish);
            let base = if shifted { finish } else { v };
            if self.entity(e).set == Set::Idle {
                self.extract(e);
                self.entity_mut(e).start = if gt(base, finish) { base } else { finish };
            } else {
                let w = self.entity(e).weight;
                self.st_mut(e).wsum += w;
                let x = self.entity_mut(e);
                x.start = base;
                x.on_tree = true;
            }
        }
        self.apply_change(e, true);
        let v = self.st(e).vtime;
        let x = self.entity_mut(e);
        x.set_finish(x.budget);
        if shifted && gt(v, x.finish) {
            let by = v.wrapping_sub(x.finish) / x.coeff.max(1);
            x.start = x.start.wrapping_add(by);
            x.finish = x.finish.wrapping_add(by);
        }
        self.insert(e, Set::Active);
    }

    /// `bfq_activate_requeue_entity`: inserts `e` and its ancestors into their active sets. Stops
    /// at the first ancestor whose choice does not change. `requeue`: the queue leaves service, so
    /// all ancestors are inserted. `expiring`: the slot has ended.
    pub fn activate(&mut self, e: EntId, backshift: bool, requeue: bool, expiring: bool, j: u64) {
        let mut at = Some(e);
        while let Some(e) = at {
            self.enqueue(e, backshift);
            let n = self.entity(e).node;
            if !self.renew_next(n, Some(e), expiring, j) && !requeue {
                break;
            }
            at = self.nodes[n as usize].owner;
        }
    }

    /// `bfq_deactivate_entity`: removes `e` from the active set, and each ancestor that has no
    /// other entity left. `keep`: moves the entity to the idle set if its finish time has not
    /// passed.
    pub fn deactivate(&mut self, e: EntId, keep: bool, expiring: bool, j: u64) {
        let (mut e, mut keep) = (e, keep);
        loop {
            if !self.entity(e).on_tree {
                return;
            }
            let n = self.entity(e).node;
            let serving = self.serving(e);
            if self.mq || serving {
                let x = self.entity_mut(e);
                x.set_finish(x.service);
            }
            if serving {
                self.nodes[n as usize].in_service = None;
            } else if self.mq {
                self.entity_mut(e).service = 0;
            }
            self.extract(e);
            if keep && gt(self.entity(e).finish, self.st(e).vtime) {
                self.insert(e, Set::Idle);
            } else {
                self.forget(e);
            }
            let was_next = self.nodes[n as usize].next == Some(e);
            if was_next || (!self.mq && serving) {
                self.renew_next(n, None, expiring, j);
            }
            let node = &self.nodes[n as usize];
            let Some(owner) = node.owner else { return };
            e = owner;
            if node.next.is_some() || node.in_service.is_some() {
                break;
            }
            keep = true;
        }
        // The groups further up still have entities. Insert these groups again with the budget of
        // their next entity.
        let mut at = Some(e);
        while let Some(e) = at {
            if !self.mq && self.serving(e) {
                break;
            }
            self.enqueue(e, false);
            let n = self.entity(e).node;
            if !self.renew_next(n, Some(e), expiring, j) && !expiring {
                break;
            }
            at = self.nodes[n as usize].owner;
        }
    }

    /// `__bfq_bfqd_reset_in_service`: takes `e` and the groups above it out of service. Runs after
    /// `e` was requeued or deactivated.
    pub fn leave_service(&mut self, e: EntId) {
        let mut at = Some(e);
        while let Some(e) = at {
            let n = self.entity(e).node as usize;
            self.nodes[n].in_service = None;
            at = self.nodes[n].owner;
        }
    }
    /// Starts a new slot for the groups above `e`, after the slot of `e` expired.
    pub fn reset_parents(&mut self, e: EntId) {
        let mut at = self.parent(e);
        while let Some(e) = at {
            self.entity_mut(e).service = 0;
            at = self.parent(e);
        }
    }
    /// Returns true if the cached next entity of the root is not the entity in service.
    pub fn next_differs(&self) -> bool {
        let root = &self.nodes[ROOT as usize];
        root.next != root.in_service
    }

    /// Checks the invariants. No finish time is before the start time. Sums of weights, sets and
    /// flags agree.
    pub fn check(&self) {
        let mut sums = vec![[0u64; CLASSES]; self.nodes.len()];
        for (i, x) in self.ents.iter().enumerate() {
            if !x.on_tree {
                assert_eq!(x.set, Set::None, "entity {i} is forgotten, yet in a set");
                continue;
            }
            sums[x.node as usize][usize::from(x.class)] += x.weight;
            // v7 changes the class of the entity in service, and with it only the start time.
            let changed = !self.mq && self.serving(i as u32);
            let ordered = changed || !gt(x.start, x.finish);
            assert!(ordered, "entity {i}: finish before start");
            let linked = self.sets.linked(i as u32);
            assert_eq!(x.set != Set::None, linked, "entity {i}: set and tree");
            assert!(x.set != Set::None || self.serving(i as u32), "P4: {i} lost");
        }
        for (n, node) in self.nodes.iter().enumerate() {
            for (c, st) in node.trees.iter().enumerate() {
                assert_eq!(st.wsum, sums[n][c], "P4: weights of node {n} class {c}");
            }
            if let Some(next) = node.next {
                assert_eq!(self.entity(next).node as usize, n, "next is of this node");
            }
        }
    }
}
