//! The bios that wait at one level in one direction. There is one queue for the cgroup's own bios
//! and one for each child. Each queue keeps its order. Bios are taken from the queues in turn.

use super::Held;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// The owner of each queue and its waiting bios. No queue is empty.
    turns: VecDeque<(usize, VecDeque<Held>)>,
    len: usize,
}

impl Lane {
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn push(&mut self, from: usize, bio: Held) {
        self.len += 1;
        match self.turns.iter_mut().find(|t| t.0 == from) {
            Some(t) => t.1.push_back(bio),
            None => self.turns.push_back((from, VecDeque::from([bio]))),
        }
    }
    pub fn first(&self) -> Option<&Held> {
        self.turns.front()?.1.front()
    }
    /// Takes the first bio. The queue of its owner goes to the end.
    pub fn pop(&mut self) -> Option<Held> {
        let (from, mut line) = self.turns.pop_front()?;
        let bio = line.pop_front();
        if !line.is_empty() {
            self.turns.push_back((from, line));
        }
        self.len -= usize::from(bio.is_some());
        bio
    }
}
