//! What B-WF2Q+ schedules: entities (queues and groups), the weights they have, and the multiset
//! of weights that tells whether all queues are alike.

/// Index of an entity in [`super::tree::Wf2q`].
pub type EntId = u32;
/// Index of a node (the root, or the inside of a group).
pub type NodeId = u32;

/// Scheduling class as an index: RT 0, BE 1, IDLE 2.
pub type ClassIdx = u8;
/// Best effort.
pub const BE: ClassIdx = 1;
/// Idle.
pub const IDLE: ClassIdx = 2;
/// Classes a node keeps apart.
pub const CLASSES: usize = 3;

/// Fraction bits of virtual time.
const SHIFT: u32 = 22;

/// Virtual time that `n` sectors take at weight `w`.
#[inline]
pub fn delta(n: u64, w: u64) -> u64 {
    (n << SHIFT) / w.max(1)
}

/// `a` later than `b`, also across a wrap.
#[inline]
pub fn gt(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) > 0
}

/// Set of a service tree an entity is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Set {
    /// Neither: in service, or forgotten.
    #[default]
    None,
    /// Backlogged.
    Active,
    /// Without backlog, but its finish time is still ahead of the virtual time.
    Idle,
}

/// A queue or group under B-WF2Q+.
#[derive(Clone, Debug, Default)]
pub struct Entity {
    /// Weight in force, raising included.
    pub weight: u64,
    /// Weight without raising.
    pub orig_weight: u64,
    /// Weight asked for; in force from the next activation or requeue on.
    pub new_weight: u64,
    /// Raising coefficient; 1: not raised.
    pub coeff: u64,
    /// Class in force.
    pub class: ClassIdx,
    /// Class asked for.
    pub new_class: ClassIdx,
    /// Weight, coefficient or class changed and is not in force yet.
    pub changed: bool,
    /// Sectors it may be served in a slot.
    pub budget: u64,
    /// Sectors charged in the present slot.
    pub service: u64,
    /// Virtual start.
    pub start: u64,
    /// Virtual finish.
    pub finish: u64,
    /// Where it waits.
    pub set: Set,
    /// Waiting, on the idle set, or in service: its weight counts in its tree's sum.
    pub on_tree: bool,
    /// Node it is scheduled in.
    pub node: NodeId,
    /// Node inside it, for a group.
    pub inside: Option<NodeId>,
    /// Its queue, for a queue.
    pub queue: Option<u32>,
    /// Requests, queued or in the driver, of the queue or of all queues of the group.
    pub allocated: u32,
    /// Weight under which it is counted in [`Weights`]; 0: not counted.
    pub counted: u64,
}

impl Entity {
    /// Sectors left of its budget.
    #[inline]
    pub fn left(&self) -> u64 {
        self.budget.saturating_sub(self.service)
    }
    /// Finish time after `service` sectors.
    #[inline]
    pub fn set_finish(&mut self, service: u64) {
        self.finish = self.start.wrapping_add(delta(service, self.weight));
    }
    /// Is its weight raised?
    #[inline]
    pub fn raised(&self) -> bool {
        self.coeff > 1
    }
}

/// How many counted queues have which weight; a handful of entries, sorted.
#[derive(Clone, Debug, Default)]
pub struct Weights(Vec<(u64, u32)>);

impl Weights {
    /// One more of weight `w`.
    pub fn add(&mut self, w: u64) {
        match self.0.binary_search_by_key(&w, |e| e.0) {
            Ok(i) => self.0[i].1 += 1,
            Err(i) => self.0.insert(i, (w, 1)),
        }
    }
    /// One fewer.
    pub fn remove(&mut self, w: u64) {
        if let Ok(i) = self.0.binary_search_by_key(&w, |e| e.0) {
            self.0[i].1 -= 1;
            if self.0[i].1 == 0 {
                self.0.remove(i);
            }
        }
    }
    /// More than one distinct weight?
    #[inline]
    pub fn varied(&self) -> bool {
        self.0.len() > 1
    }
    /// The smallest counted weight.
    #[inline]
    pub fn smallest(&self) -> Option<u64> {
        self.0.first().map(|e| e.0)
    }
    /// All counted.
    pub fn total(&self) -> u32 {
        self.0.iter().map(|e| e.1).sum()
    }
}
