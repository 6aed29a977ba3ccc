//! Bios that wait at one level in one direction: each child's and the cgroup's own in their order,
//! and these in turn.

use super::Held;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// Whose, and what waits: never empty.
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
    /// The first, whose group's turn comes last now.
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
