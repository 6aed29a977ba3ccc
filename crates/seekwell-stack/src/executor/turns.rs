//! Two priority queues that every call uses. The first gives the next actor for a core. The second
//! gives the core that becomes free next.
//!
//! Both queues compare one 128-bit number, with nanoseconds in the high bits and a unique count in
//! the low bits. Such a comparison needs no branch.

use super::rt::Actor;

/// Combines a time or duration with its rank among equal ones.
#[inline]
pub(crate) fn key(ns: u64, seq: u64) -> u128 {
    u128::from(ns) << 64 | u128::from(seq)
}

/// A key that is later than every other key.
pub(crate) const NEVER: u128 = u128::MAX;

/// Actors that want a core, least key first. The queue is a heap with four children per node, so it
/// is half as deep as a binary heap. The children of a node are adjacent, and unused positions hold
/// [`NEVER`]. The least of four children is therefore found without a branch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// The root is at index 3; the children of `i` start at `4 * (i - 2)`.
    keys: Vec<u128>,
    who: Vec<Actor>,
    len: usize,
}

const ROOT: usize = 3;

impl Turns {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Adds an entry.
    #[inline]
    pub(crate) fn push(&mut self, key: u128, a: Actor) {
        let at = ROOT + self.len;
        if at >= self.keys.len() {
            // Extend by a whole group of siblings.
            let n = (at + 4) / 4 * 4;
            self.keys.resize(n, NEVER);
            self.who.resize(n, 0);
        }
        self.len += 1;
        self.rise(at, key, a);
    }
    /// Moves an entry up from a free position to its final position.
    #[inline]
    fn rise(&mut self, mut at: usize, key: u128, a: Actor) {
        while at > ROOT {
            let up = at / 4 + 2;
            if self.keys[up] <= key {
                break;
            }
            (self.keys[at], self.who[at]) = (self.keys[up], self.who[up]);
            at = up;
        }
        (self.keys[at], self.who[at]) = (key, a);
    }
    /// Removes the first entry.
    pub(crate) fn pop(&mut self) -> Option<Actor> {
        self.len = self.len.checked_sub(1)?;
        let first = self.who[ROOT];
        let end = ROOT + self.len;
        let (key, a) = (self.keys[end], self.who[end]);
        self.keys[end] = NEVER;
        if end == ROOT {
            return Some(first);
        }
        // Move the hole to the bottom, where the last entry usually belongs.
        let mut hole = ROOT;
        while let Some(&[k0, k1, k2, k3]) = self
            .keys
            .get(4 * (hole - 2)..)
            .and_then(|k| k.first_chunk())
        {
            let child = 4 * (hole - 2);
            if child >= end {
                break;
            }
            let low = usize::from(k1 < k0);
            let high = 2 + usize::from(k3 < k2);
            let beats = usize::from(k2.min(k3) < k0.min(k1));
            let least = child + low + (high - low) * beats;
            (self.keys[hole], self.who[hole]) = (self.keys[least], self.who[least]);
            hole = least;
        }
        self.rise(hole, key, a);
        Some(first)
    }
}

/// The time at which each core's work ends. This is a tournament tree in which the earlier end
/// wins. A change repeats the comparisons on the path from its core to the root.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// Keys of the cores; the length is a power of two.
    keys: Vec<u128>,
    /// Winners of the comparisons, with the root at index 1. The cores come after all comparisons.
    won: Vec<u32>,
}

impl Ends {
    /// Makes a tree for this number of cores. No core has work.
    pub(crate) fn new(cores: usize) -> Self {
        let n = cores.max(1).next_power_of_two();
        let mut e = Ends {
            keys: vec![NEVER; n],
            won: vec![0; 2 * n],
        };
        for i in (1..2 * n).rev() {
            e.won[i] = if i >= n { (i - n) as u32 } else { e.won[2 * i] };
        }
        e
    }
    /// Returns the earliest end and its core.
    #[inline]
    pub(crate) fn first(&self) -> (u128, u16) {
        let core = self.won[1];
        (self.keys[core as usize], core as u16)
    }
    /// Sets the end of a core's work. [`NEVER`]: the core has no work.
    #[inline]
    pub(crate) fn set(&mut self, core: u16, end: u128) {
        let n = self.keys.len();
        self.keys[usize::from(core)] = end;
        let mut i = (n + usize::from(core)) / 2;
        while i > 0 {
            let (a, b) = (self.won[2 * i], self.won[2 * i + 1]);
            let second = self.keys[b as usize] < self.keys[a as usize];
            let won = if second { b } else { a };
            let before = std::mem::replace(&mut self.won[i], won);
            if before != u32::from(core) && won != u32::from(core) {
                // The winner is another core, so nothing changes above this node.
                break;
            }
            i /= 2;
        }
    }
    /// Extends the tree to this number of cores.
    pub(crate) fn grow(&mut self, cores: usize) {
        if cores <= self.keys.len() {
            return;
        }
        let old = std::mem::replace(self, Ends::new(cores));
        for (core, end) in (0u16..).zip(old.keys) {
            self.set(core, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Checks that entries come out in the same order as from an ordered map.
        #[test]
        fn turns_agree_with_an_ordered_map(ops in proptest::collection::vec((0u8..3, 0u64..20), 0..400)) {
            let (mut turns, mut model) = (Turns::default(), BTreeMap::new());
            for (seq, (op, had)) in (0u64..).zip(ops) {
                if op == 0 {
                    prop_assert_eq!(turns.pop(), model.pop_first().map(|e| e.1));
                } else {
                    turns.push(key(had, seq), seq as Actor);
                    model.insert((had, seq), seq as Actor);
                }
                prop_assert_eq!(turns.is_empty(), model.is_empty());
            }
            while let Some(a) = turns.pop() {
                prop_assert_eq!(Some(a), model.pop_first().map(|e| e.1));
            }
            prop_assert!(model.is_empty());
        }
        /// Checks that the first end is the least of all ends, while cores are added.
        #[test]
        fn first_end_is_the_minimum(
            cores in 1usize..9,
            ops in proptest::collection::vec((0usize..40, 0u64..12), 1..200),
        ) {
            let (mut ends, mut model) = (Ends::new(cores), vec![NEVER; cores]);
            for (seq, (core, at)) in (0u64..).zip(ops) {
                if core >= model.len() {
                    model.push(NEVER);
                    ends.grow(model.len());
                }
                let core = core.min(model.len() - 1);
                let end = if at == 0 { NEVER } else { key(at, seq) };
                model[core] = end;
                ends.set(core as u16, end);
                let least = model.iter().min().copied().unwrap_or(NEVER);
                prop_assert_eq!(ends.first().0, least);
                if least != NEVER {
                    prop_assert_eq!(model[usize::from(ends.first().1)], least);
                }
            }
        }
    }
}
