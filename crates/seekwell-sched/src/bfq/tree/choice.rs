//! The choice of the next entity of a node: the search, and the cached result of mq.

use super::{ROOT, Wf2q};
use crate::bfq::entity::{CLASSES, EntId, IDLE, NodeId, gt};

impl Wf2q {
    /// `bfq_update_next_in_service`: updates the cached next entity of node `n`, after entity `new`
    /// was inserted or another entity left. Returns true if the parent must update its cache too.
    pub(super) fn renew_next(
        &mut self,
        n: NodeId,
        new: Option<EntId>,
        expiring: bool,
        j: u64,
    ) -> bool {
        let node = &self.nodes[n as usize];
        if !self.mq {
            // v7 chooses at the root only when it needs a queue. Inside a group, the group gets the
            // budget of its next child.
            let (Some(owner), None) = (node.owner, node.in_service) else {
                return false;
            };
            let next = self.look(n, true, None);
            self.nodes[n as usize].next = next;
            if let Some(c) = next {
                self.entity_mut(owner).budget = self.entity(c).budget;
            }
            return true;
        }
        let had = node.next;
        let owner = node.owner;
        let next = match (new, had) {
            (Some(e), None) => Some(e),
            (Some(e), Some(old)) if e != old => {
                let (x, o) = (self.entity(e), self.entity(old));
                let wins = x.class == o.class
                    && !gt(x.start, self.st(old).vtime)
                    && gt(o.finish, x.finish);
                if wins {
                    Some(e)
                } else {
                    self.choose(n, expiring, j)
                }
            }
            _ => self.choose(n, expiring, j),
        };
        let mut parent_looks = false;
        if let Some(c) = next {
            parent_looks = had.is_none();
            if let Some(o) = owner {
                let b = self.entity(c).budget;
                parent_looks |= self.entity(o).budget > b;
                self.entity_mut(o).budget = b;
            }
        }
        self.nodes[n as usize].next = next;
        parent_looks
    }
    /// Searches all classes of a node for the cache of mq. While an entity is in service, the
    /// search uses an advanced virtual time but does not store that time.
    fn choose(&mut self, n: NodeId, expiring: bool, j: u64) -> Option<EntId> {
        let store = self.nodes[n as usize].in_service.is_none() || expiring;
        self.look(n, store, Some(j))
    }

    /// `bfq_lookup_next_entity`: returns the next entity of a node, from the highest class that has
    /// entities. If `j` is given and the IDLE class was not checked for 200 ms before jiffy `j`,
    /// the IDLE class comes first.
    fn look(&mut self, n: NodeId, store: bool, j: Option<u64>) -> Option<EntId> {
        let i = n as usize;
        if let Some(j) = j
            && j.saturating_sub(self.nodes[i].idle_check_j) > self.idle_limit_j
        {
            let any = !self.nodes[i].trees[usize::from(IDLE)].active.is_empty();
            if self.mq || any {
                self.nodes[i].idle_check_j = j;
            }
            if any {
                return self.look_in(i, usize::from(IDLE), store);
            }
        }
        (0..CLASSES).find_map(|c| self.look_in(i, c, store))
    }
    /// `__bfq_lookup_next_entity`: returns the next entity of one class. If no entity is eligible,
    /// the virtual time advances to the smallest start time.
    fn look_in(&mut self, n: usize, c: usize, store: bool) -> Option<EntId> {
        let st = &self.nodes[n].trees[c];
        let root = st.active.root()?;
        let mut v = st.vtime;
        let min = self.sets.aug(root).0;
        if gt(min, v) {
            v = min;
            if store {
                self.nodes[n].trees[c].vtime = v;
                self.cleanup(n, c);
            }
        }
        self.first_eligible(n, c, v)
    }
    /// `bfq_first_active_entity`: searches the active tree for an eligible entity, as the kernel
    /// does. The search starts at the root and remembers the last eligible entity that it visited.
    /// It descends to the left if the left subtree contains an eligible entity. Otherwise it stops
    /// if it remembers an entity, and descends to the right if it does not. So the search can miss
    /// an entity. Once it remembers an entity, it never descends to the right. An ineligible entity
    /// in the left subtree can hide an eligible entity in its right subtree.
    fn first_eligible(&self, n: usize, c: usize, v: u64) -> Option<EntId> {
        let mut at = self.nodes[n].trees[c].active.root();
        let mut found = None;
        while let Some(e) = at {
            if !gt(self.entity(e).start, v) {
                found = Some(e);
            }
            at = match self.sets.left(e) {
                Some(l) if !gt(self.sets.aug(l).0, v) => Some(l),
                _ if found.is_some() => return found,
                _ => self.sets.right(e),
            };
        }
        found
    }

    /// `bfq_get_next_queue`: puts the next queue and the groups above it in service. Returns the
    /// entity of the queue.
    pub fn select(&mut self, j: u64) -> Option<EntId> {
        if self.mq {
            self.select_cached(j)
        } else {
            self.select_now(j)
        }
    }
    fn select_now(&mut self, j: u64) -> Option<EntId> {
        let mut n = ROOT;
        loop {
            let e = self.look(n, true, (n == ROOT).then_some(j))?;
            self.extract(e);
            self.nodes[n as usize].in_service = Some(e);
            self.nodes[n as usize].next = None;
            self.entity_mut(e).service = 0;
            match self.entity(e).inside {
                Some(inside) => n = inside,
                None => return Some(e),
            }
        }
    }
    fn select_cached(&mut self, j: u64) -> Option<EntId> {
        let mut n = ROOT;
        let leaf = loop {
            let e = self.nodes[n as usize].next?;
            self.nodes[n as usize].in_service = Some(e);
            // A group that still has other active entities stays in the active set.
            let inside = self.entity(e).inside;
            if inside.is_none_or(|i| self.active_in(i) == 1) {
                self.extract(e);
            }
            match inside {
                Some(i) => n = i,
                None => break e,
            }
        };
        let mut at = Some(leaf);
        while let Some(e) = at {
            let n = self.entity(e).node;
            if !self.renew_next(n, None, false, j) {
                break;
            }
            at = self.nodes[n as usize].owner;
        }
        Some(leaf)
    }
}
