//! The units that B-WF2Q+ schedules: entities (queues and groups), their weights, and the multiset
//! of weights that shows whether all queues are equal.

/// Index of an entity in [`super::tree::Wf2q`].
pub type EntId = u32;
/// Index of a node (the root, or the tree inside a group).
pub type NodeId = u32;

/// Scheduling class as an index: RT 0, BE 1, IDLE 2.
pub type ClassIdx = u8;
/// Best effort.
pub const BE: ClassIdx = 1;
/// Idle.
pub const IDLE: ClassIdx = 2;
/// Number of classes that a node keeps apart.
pub const CLASSES: usize = 3;

/// Fraction bits of virtual time.
const SHIFT: u32 = 22;

/// Virtual time of `n` sectors at weight `w`.
#[inline]
pub fn delta(n: u64, w: u64) -> u64 {
    (n << SHIFT) / w.max(1)
}

/// Whether `a` is later than `b`, also across a wrap.
#[inline]
pub fn gt(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) > 0
}

/// The set of a service tree that holds an entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Set {
    /// Neither set: in service, or forgotten.
    #[default]
    None,
    /// Backlogged.
    Active,
    /// Without backlog, but its finish time is still later than the virtual time.
    Idle,
}

/// A queue or group under B-WF2Q+.
#[derive(Clone, Debug, Default)]
pub struct Entity {
    /// Weight in force, raising included.
    pub weight: u64,
    /// Weight without raising.
    pub orig_weight: u64,
    /// Requested weight; takes effect at the next activation or requeue.
    pub new_weight: u64,
    /// Raising coefficient; 1 if not raised.
    pub coeff: u64,
    /// Class in force.
    pub class: ClassIdx,
    /// Requested class.
    pub new_class: ClassIdx,
    /// A change of weight, coefficient or class has not taken effect yet.
    pub changed: bool,
    /// Number of sectors it may be served in a slot.
    pub budget: u64,
    /// Sectors charged in the current slot.
    pub service: u64,
    /// Virtual start.
    pub start: u64,
    /// Virtual finish.
    pub finish: u64,
    /// The set it waits in.
    pub set: Set,
    /// Whether it waits, is in the idle set, or is in service; its weight then counts in its tree's
    /// sum.
    pub on_tree: bool,
    /// The node in which it is scheduled.
    pub node: NodeId,
    /// For a group: the node inside it.
    pub inside: Option<NodeId>,
    /// For a queue: the queue.
    pub queue: Option<u32>,
    /// Number of requests, queued or in the driver, of the queue or of all queues of the group.
    pub allocated: u32,
    /// Weight under which it is counted in [`Weights`]; 0 if not counted.
    pub counted: u64,
}

impl Entity {
    /// Sectors left of its budget.
    #[inline]
    pub fn left(&self) -> u64 {
        self.budget.saturating_sub(self.service)
    }
    /// Sets the finish time to that after `service` sectors.
    #[inline]
    pub fn set_finish(&mut self, service: u64) {
        self.finish = self.start.wrapping_add(delta(service, self.weight));
    }
    /// Whether its weight is raised.
    #[inline]
    pub fn raised(&self) -> bool {
        self.coeff > 1
    }
}

/// Number of counted queues per weight; a few entries, sorted.
#[derive(Clone, Debug, Default)]
pub struct Weights(Vec<(u64, u32)>);

impl Weights {
    /// Adds a queue of weight `w`.
    pub fn add(&mut self, w: u64) {
        match self.0.binary_search_by_key(&w, |e| e.0) {
            Ok(i) => self.0[i].1 += 1,
            Err(i) => self.0.insert(i, (w, 1)),
        }
    }
    /// Removes a queue of weight `w`.
    pub fn remove(&mut self, w: u64) {
        if let Ok(i) = self.0.binary_search_by_key(&w, |e| e.0) {
            self.0[i].1 -= 1;
            if self.0[i].1 == 0 {
                self.0.remove(i);
            }
        }
    }
    /// Whether there is more than one distinct weight.
    #[inline]
    pub fn varied(&self) -> bool {
        self.0.len() > 1
    }
    /// The smallest counted weight.
    #[inline]
    pub fn smallest(&self) -> Option<u64> {
        self.0.first().map(|e| e.0)
    }
    /// Number of counted queues.
    pub fn total(&self) -> u32 {
        self.0.iter().map(|e| e.1).sum()
    }
}
