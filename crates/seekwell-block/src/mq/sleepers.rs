//! Tasks that sleep for a tag, for a controller, or until a frozen queue continues.
//!
//! If a trace is replayed faster than the device can serve it, the whole rest of the trace sleeps
//! here. The cost must not depend on the number of sleeping tasks. A task is therefore found by its
//! number, and the next task to wake is always at the head of a queue.

use super::latency::Gate;
use super::submit::SubmitStep;
use super::wbt::Class;
use seekwell_core::event::Asleep;
use seekwell_core::{Bio, Instant, TaskId};
use std::collections::{BTreeMap, VecDeque};

/// The event that a sleeping task needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    /// A slot or budget from a gate. The gate keeps the order of these tasks.
    Slot(Gate),
    /// Nothing more from this gate, which has let the task continue.
    Granted(Gate),
    /// A tag of this hardware context, under this limit.
    Tag { hctx: usize, limit: Option<u32> },
    /// The end of a freeze.
    Thaw,
}

/// A sleeping task.
#[derive(Debug)]
pub(super) struct Sleeper {
    pub task: TaskId,
    pub need: Need,
    pub bio: Bio,
    pub arrived: Instant,
    /// The slot of the writeback throttle that the task already has.
    pub slot: Option<Class>,
    /// The actions that the task does after it wakes.
    pub then: VecDeque<SubmitStep>,
}

/// Tasks with the same need, in the order in which they fell asleep. Each element has the number of
/// the sleep, and the index of the task.
#[derive(Debug)]
struct Queue {
    need: Need,
    line: VecDeque<(u64, u32)>,
}

/// Largest number of empty lists that are kept for reuse.
const SPARE_LISTS: usize = 64;

/// All sleeping tasks of a block queue.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    slots: Vec<Option<Sleeper>>,
    free: Vec<u32>,
    by_task: BTreeMap<TaskId, u32>,
    /// One queue for each different need. An empty queue is reused for the next need, so there are
    /// few.
    queues: Vec<Queue>,
    fell_asleep: u64,
    /// Empty action lists, kept so that their memory can be reused.
    spare: Vec<VecDeque<SubmitStep>>,
    /// Number of entries examined. Tests check that the cost per sleeping task does not grow with
    /// the number of such tasks.
    looked: u64,
}

impl Sleepers {
    pub fn len(&self) -> usize {
        self.by_task.len()
    }
    pub fn is_empty(&self) -> bool {
        self.by_task.is_empty()
    }
    /// Returns the number of entries examined or moved so far.
    pub fn looked(&self) -> u64 {
        self.looked
    }
    /// Returns whether this task sleeps.
    pub fn has(&self, task: TaskId) -> bool {
        !self.by_task.is_empty() && self.by_task.contains_key(&task)
    }
    /// Returns all sleeping bios, and the bios that wait behind them. The longest sleep comes
    /// first.
    pub fn asleep(&self, now: Instant) -> Vec<Asleep> {
        let mut all: Vec<&Sleeper> = self.slots.iter().flatten().collect();
        all.sort_by_key(|s| (s.arrived, s.task));
        let behind = |d: &SubmitStep| match d {
            SubmitStep::Bio(bio) => Some(*bio),
            SubmitStep::Whole(w) => Some(w.bio),
            _ => None,
        };
        let mut out = Vec::with_capacity(all.len());
        for s in all {
            let then = s.then.iter().filter_map(behind);
            let bios = std::iter::once(s.bio).chain(then);
            out.extend(bios.map(|b| Asleep::new(now, &b, s.arrived)));
        }
        out
    }
    /// Returns the pending actions of this task, if it sleeps.
    pub fn then_of(&mut self, task: TaskId) -> Option<&mut VecDeque<SubmitStep>> {
        if self.by_task.is_empty() {
            return None;
        }
        let slot = *self.by_task.get(&task)?;
        self.slots[slot as usize].as_mut().map(|s| &mut s.then)
    }
    /// Returns how many times a task has fallen asleep so far.
    pub fn sleeps(&self) -> u64 {
        self.fell_asleep
    }
    /// Returns an empty list for pending actions.
    pub fn list(&mut self) -> VecDeque<SubmitStep> {
        self.spare.pop().unwrap_or_default()
    }
    /// Keeps an empty list for the next sleeping task.
    pub fn give_back(&mut self, list: VecDeque<SubmitStep>) {
        if list.capacity() > 0 && self.spare.len() < SPARE_LISTS {
            self.spare.push(list);
        }
    }
    /// Puts a task to sleep. The task must be awake.
    pub fn push(&mut self, s: Sleeper) {
        let (task, need) = (s.task, s.need);
        let slot = match self.free.pop() {
            Some(i) => {
                self.slots[i as usize] = Some(s);
                i
            }
            None => {
                self.slots.push(Some(s));
                (self.slots.len() - 1) as u32
            }
        };
        let before = self.by_task.insert(task, slot);
        debug_assert!(before.is_none(), "a task sleeps once");
        self.fell_asleep += 1;
        if !matches!(need, Need::Slot(_)) {
            self.stand_in_line(need, slot);
        }
    }
    /// Appends a task to the queue for its need. Tasks that wait at a gate are not in these queues,
    /// because the gate keeps their order.
    fn stand_in_line(&mut self, need: Need, slot: u32) {
        self.looked += self.queues.len() as u64;
        let same = self.queues.iter().position(|q| q.need == need);
        let i = match same.or_else(|| self.queues.iter().position(|q| q.line.is_empty())) {
            Some(i) => i,
            None => {
                let line = VecDeque::new();
                self.queues.push(Queue { need, line });
                self.queues.len() - 1
            }
        };
        self.queues[i].need = need;
        self.queues[i].line.push_back((self.fell_asleep, slot));
    }
    /// Returns the bio with which a task sleeps.
    pub fn bio_of(&self, task: TaskId) -> Option<Bio> {
        let slot = *self.by_task.get(&task)?;
        self.slots[slot as usize].as_ref().map(|s| s.bio)
    }
    /// Records that a gate lets a task continue. The writeback throttle also gives a slot.
    pub fn grant(&mut self, task: TaskId, gate: Gate, class: Option<Class>) {
        let Some(&slot) = self.by_task.get(&task) else {
            debug_assert!(false, "{task:?} has a slot and does not sleep");
            return;
        };
        if let Some(s) = &mut self.slots[slot as usize] {
            (s.need, s.slot) = (Need::Granted(gate), class);
        }
        self.fell_asleep += 1;
        self.stand_in_line(Need::Granted(gate), slot);
    }
    /// Returns whether all sleeping tasks wait at this gate.
    pub fn only_before(&self, gate: Gate) -> bool {
        let mut all = self.slots.iter().flatten();
        all.all(|s| s.need == Need::Slot(gate))
    }
    /// Returns the slots of the writeback throttle that sleeping tasks hold.
    pub fn slots(&self) -> impl Iterator<Item = Class> {
        self.slots.iter().flatten().filter_map(|s| s.slot)
    }
    /// Removes and returns the task that has slept longest among those whose need is met.
    pub fn wake(&mut self, met: impl Fn(Need) -> bool) -> Option<Sleeper> {
        if self.by_task.is_empty() {
            return None;
        }
        self.looked += self.queues.len() as u64;
        let mut first: Option<(u64, usize)> = None;
        for (i, q) in self.queues.iter().enumerate() {
            if let Some(head) = q.line.front()
                && first.is_none_or(|f| head.0 < f.0)
                && met(q.need)
            {
                first = Some((head.0, i));
            }
        }
        let (_, slot) = self.queues[first?.1].line.pop_front()?;
        self.free.push(slot);
        let s = self.slots[slot as usize].take()?;
        self.by_task.remove(&s.task);
        Some(s)
    }
    /// Appends the remaining actions of a woken task that sleeps again. Returns false if it does
    /// not sleep.
    pub fn resume_later(&mut self, task: TaskId, rest: &mut VecDeque<SubmitStep>) -> bool {
        let Some(then) = self.then_of(task) else {
            return false;
        };
        let moved = if then.is_empty() {
            std::mem::swap(then, rest);
            1
        } else {
            then.append(rest);
            then.len() as u64
        };
        self.looked += moved;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_core::{Flags, Op};

    fn sleeper(task: u32, need: Need) -> Sleeper {
        let task = TaskId(task);
        Sleeper {
            task,
            need,
            bio: Bio::new(0, task, Op::Read, Flags::empty(), 0, 8),
            arrived: Instant::START,
            slot: None,
            then: VecDeque::new(),
        }
    }
    const fn tag(limit: u32) -> Need {
        Need::Tag {
            hctx: 0,
            limit: Some(limit),
        }
    }

    #[test]
    fn longest_sleeper_whose_need_is_met_wakes_first() {
        let mut all = Sleepers::default();
        for (task, need) in [(1, tag(4)), (2, Need::Thaw), (3, tag(8)), (4, tag(4))] {
            all.push(sleeper(task, need));
        }
        let mut next = |met: &[Need]| all.wake(|n| met.contains(&n)).map(|s| s.task.0);
        assert_eq!(next(&[]), None);
        assert_eq!(next(&[tag(8)]), Some(3));
        assert_eq!(next(&[tag(4), Need::Thaw]), Some(1));
        assert_eq!(next(&[tag(4), Need::Thaw]), Some(2));
        assert_eq!(next(&[tag(4), Need::Thaw]), Some(4));
        assert!(all.is_empty() && all.wake(|_| true).is_none());
        // A queue that has become empty is reused for another need.
        all.push(sleeper(5, tag(99)));
        assert_eq!(all.queues.len(), 3);
        assert!(all.has(TaskId(5)) && !all.has(TaskId(1)));
    }

    #[test]
    fn remaining_steps_of_a_woken_task_move_in_one_operation() {
        let mut all = Sleepers::default();
        all.push(sleeper(1, tag(4)));
        let mut rest: VecDeque<SubmitStep> = (0..1000).map(|_| SubmitStep::Plug).collect();
        let before = all.looked();
        assert!(all.resume_later(TaskId(1), &mut rest));
        assert!(rest.is_empty() && all.looked() - before == 1);
        assert!(!all.resume_later(TaskId(2), &mut rest));
    }
}
