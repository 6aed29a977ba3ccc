//! The entities (queues and groups) that B-WF2Q+ schedules. Also counts the queues per weight, to
//! show whether all queues have the same weight.

/// Index of an entity in [`super::tree::Wf2q`].
pub type EntId = u32;
/// Index of a node (the root, or the tree inside a group).
pub type NodeId = u32;

/// Scheduling class as an index: RT 0, BE 1, IDLE 2.
pub type ClassIdx = u8;
/// The best-effort class.
pub const BE: ClassIdx = 1;
/// The idle class.
pub const IDLE: ClassIdx = 2;
/// Number of classes.
pub const CLASSES: usize = 3;

/// Number of fraction bits of a virtual time.
const SHIFT: u32 = 22;

/// Returns the virtual time that `n` sectors take at weight `w`.
#[inline]
pub fn delta(n: u64, w: u64) -> u64 {
    (n << SHIFT) / w.max(1)
}

/// Returns true if `a` is later than `b`. The comparison is right even if a time wrapped around.
#[inline]
pub fn gt(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) > 0
}

/// The set of a service tree that contains an entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Set {
    /// In no set: the entity is in service or was forgotten.
    #[default]
    None,
    /// The entity has requests.
    Active,
    /// The entity has no requests, but its finish time is later than the virtual time.
    Idle,
}

/// A queue or a group that B-WF2Q+ schedules.
#[derive(Clone, Debug, Default)]
pub struct Entity {
    /// Weight in force, with raising.
    pub weight: u64,
    /// Weight in force, without raising.
    pub orig_weight: u64,
    /// Requested weight. It takes effect at the next activation or requeue.
    pub new_weight: u64,
    /// Raising coefficient (factor on the weight); 1: not raised.
    pub coeff: u64,
    /// Class in force.
    pub class: ClassIdx,
    /// Requested class.
    pub new_class: ClassIdx,
    /// True if a change of weight, coefficient or class has not taken effect yet.
    pub changed: bool,
    /// Number of sectors that the entity may be served in one slot.
    pub budget: u64,
    /// Number of sectors charged in the current slot.
    pub service: u64,
    /// Virtual start time.
    pub start: u64,
    /// Virtual finish time.
    pub finish: u64,
    /// The set that contains the entity.
    pub set: Set,
    /// True if the entity waits, is in the idle set, or is in service. Its weight then counts in
    /// the sum of its service tree.
    pub on_tree: bool,
    /// The node that schedules the entity.
    pub node: NodeId,
    /// For a group: the node inside the group.
    pub inside: Option<NodeId>,
    /// For a queue: the index of the queue.
    pub queue: Option<u32>,
    /// Number of requests, queued or in the driver. For a group: of all queues in the group.
    pub allocated: u32,
    /// The weight under which [`Weights`] counts the entity; 0 if it is not counted.
    pub counted: u64,
}

impl Entity {
    /// Returns the number of sectors left in the budget.
    #[inline]
    pub fn left(&self) -> u64 {
        self.budget.saturating_sub(self.service)
    }
    /// Sets the finish time: the start time plus the virtual time of `service` sectors.
    #[inline]
    pub fn set_finish(&mut self, service: u64) {
        self.finish = self.start.wrapping_add(delta(service, self.weight));
    }
    /// Returns true if the weight of the entity is raised.
    #[inline]
    pub fn raised(&self) -> bool {
        self.coeff > 1
    }
}

/// Number of counted queues for each weight. The list is short and sorted by weight.
#[derive(Clone, Debug, Default)]
pub struct Weights(Vec<(u64, u32)>);

impl Weights {
    /// Counts one queue of weight `w`.
    pub fn add(&mut self, w: u64) {
        match self.0.binary_search_by_key(&w, |e| e.0) {
            Ok(i) => self.0[i].1 += 1,
            Err(i) => self.0.insert(i, (w, 1)),
        }
    }
    /// Removes one queue of weight `w` from the count.
    pub fn remove(&mut self, w: u64) {
        if let Ok(i) = self.0.binary_search_by_key(&w, |e| e.0) {
            self.0[i].1 -= 1;
            if self.0[i].1 == 0 {
                self.0.remove(i);
            }
        }
    }
    /// Returns true if the counted queues have different weights.
    #[inline]
    pub fn varied(&self) -> bool {
        self.0.len() > 1
    }
    /// Returns the smallest counted weight.
    #[inline]
    pub fn smallest(&self) -> Option<u64> {
        self.0.first().map(|e| e.0)
    }
    /// Returns the number of counted queues.
    pub fn total(&self) -> u32 {
        self.0.iter().map(|e| e.1).sum()
    }
}
