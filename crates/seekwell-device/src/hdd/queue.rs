//! The commands that wait for the mechanism, oldest first.
//!
//! A command keeps its slot number while it waits. When a command is removed, each younger command
//! therefore moves only two bytes. The values that are compared for all commands are stored in
//! separate arrays.

use super::Ticks;
use super::geometry::Place;
use super::mech::SLACK;
use std::ops::Index;

/// A queued command. Its position is computed once, when the command arrives.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Queued {
    pub id: u32,
    pub write: bool,
    /// True if the command continues the previously accepted read.
    pub sequential: bool,
    pub lba: u64,
    /// Number of sectors on the medium, without sectors at the beginning that were found in the
    /// cache.
    pub n: u32,
    /// Number of sectors that cross the link.
    pub bus: u32,
    pub arrived: Ticks,
    /// Position of the first sector when the command arrived.
    pub place: Place,
    /// Angle of that position.
    pub theta: Ticks,
}

impl Queued {
    /// Returns the sector after the last sector of the command.
    pub fn end(&self) -> u64 {
        self.lba + u64::from(self.n)
    }
}

/// Base-2 logarithm of the maximum number of waiting commands.
pub(super) const INDEX_BITS: u32 = 10;
const MOST: usize = 1 << INDEX_BITS;

/// The values that the drive compares for every command when it selects one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spot {
    /// Angle of the first sector plus the possible rounding error of a wait, in ticks, less than a
    /// revolution. The value is shifted left by [`INDEX_BITS`], so that an index fits into the low
    /// bits.
    pub soon: u64,
    pub cyl: u32,
}

/// Base-2 logarithm of the block size, in sectors. Comparisons use block numbers, because those of
/// the largest drive fit into 32 bits. A processor compares several 32-bit numbers at once.
const BLOCK_BITS: u32 = 11;
/// Block number of a slot without a command.
const NOWHERE: u32 = u32::MAX;
/// Slots are allocated in groups of this size, so that the arrays consist of whole vectors.
const GROUP: usize = 8;

/// All waiting commands.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    /// Time of a revolution, in ticks.
    turn: Ticks,
    /// Slot numbers, oldest command first.
    order: Vec<u16>,
    free: Vec<u16>,
    slots: Vec<Queued>,
    /// Arrays indexed by slot: spot, block of the first sector, and low 32 bits of the end sector.
    /// The end sector of a removed command remains. There is one spot for every possible slot
    /// number, so that no bounds check is needed.
    spots: Box<[Spot; MOST]>,
    blocks: Vec<u32>,
    ends: Vec<u32>,
}

impl Index<usize> for Queue {
    type Output = Queued;
    /// Returns the command at position `i`; position 0 is the oldest.
    #[inline]
    fn index(&self, i: usize) -> &Queued {
        &self.slots[self.order[i] as usize]
    }
}

impl Queue {
    /// Makes a queue with space for `n` commands. A revolution of the drive takes `turn` ticks.
    pub fn with_capacity(n: usize, turn: Ticks) -> Self {
        let whole = n.next_multiple_of(GROUP);
        Queue {
            turn,
            order: Vec::with_capacity(n),
            free: Vec::with_capacity(whole),
            slots: Vec::with_capacity(whole),
            spots: Box::new([Spot::default(); MOST]),
            blocks: Vec::with_capacity(whole),
            ends: Vec::with_capacity(whole),
        }
    }
    #[inline]
    pub fn len(&self) -> usize {
        self.order.len()
    }
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
    /// Returns the oldest command.
    #[inline]
    pub fn first(&self) -> Option<&Queued> {
        self.order.first().map(|&s| &self.slots[s as usize])
    }
    /// Returns all commands, oldest first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.order.iter().map(|&s| &self.slots[s as usize])
    }
    /// Returns the spots of the `n` oldest commands, oldest first.
    #[inline]
    pub fn spots(&self, n: usize) -> impl Iterator<Item = Spot> {
        let seen = &self.order[..n.min(self.order.len())];
        seen.iter().map(|&s| self.spots[s as usize % MOST])
    }

    /// Adds a command. The function is inlined, so that each field is written directly to its final
    /// place. A command that is built elsewhere is copied in larger units than it was written in,
    /// which stalls the processor.
    #[inline(always)]
    pub fn push(&mut self, q: Queued) {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.grow(),
        };
        let i = slot as usize;
        self.slots[i] = q;
        let soon = q.theta + SLACK;
        let soon = if soon < self.turn {
            soon
        } else {
            soon - self.turn
        };
        self.spots[i % MOST] = Spot {
            soon: soon << INDEX_BITS,
            cyl: q.place.cyl,
        };
        self.blocks[i] = (q.lba >> BLOCK_BITS) as u32;
        self.ends[i] = q.end() as u32;
        self.order.push(slot);
    }
    #[cold]
    fn grow(&mut self) -> u16 {
        let from = self.slots.len();
        let to = from + GROUP;
        self.slots.resize(to, Queued::default());
        self.blocks.resize(to, NOWHERE);
        self.ends.resize(to, 0);
        self.free.extend((from as u16 + 1..to as u16).rev());
        from as u16
    }
    /// Removes and returns the command at position `i`.
    #[inline]
    pub fn remove(&mut self, i: usize) -> Queued {
        let slot = self.order.remove(i);
        self.free.push(slot);
        self.blocks[slot as usize] = NOWHERE;
        self.slots[slot as usize]
    }
    /// Removes the sectors before `lba` from a command; `place` is the position of `lba`. The
    /// command is about to be removed, so the arrays are not updated.
    pub fn trim(&mut self, i: usize, lba: u64, place: Place) {
        let q = &mut self.slots[self.order[i] as usize];
        q.n = (q.end() - lba) as u32;
        q.lba = lba;
        q.place = place;
    }
    /// Returns the arrival times, so that the caller can convert them to another origin.
    pub fn arrivals(&mut self) -> impl Iterator<Item = &mut Ticks> {
        self.slots.iter_mut().map(|q| &mut q.arrived)
    }

    /// Returns false if certainly no command begins in [from, to]. Returns true if a command may
    /// begin there.
    #[inline]
    pub fn may_begin(&self, from: u64, to: u64) -> bool {
        let first = (from >> BLOCK_BITS) as u32;
        let more = (to >> BLOCK_BITS) as u32 - first;
        let inside = |b: u32| b.wrapping_sub(first) <= more;
        self.blocks.iter().fold(false, |any, &b| any | inside(b))
    }
    /// Returns false if certainly no command ends at `lba`. Returns true if a command may end
    /// there.
    #[inline]
    pub fn may_end(&self, lba: u64) -> bool {
        let low = lba as u32;
        self.ends.iter().fold(false, |any, &e| any | (e == low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TURN: Ticks = 1_000;

    fn command(id: u32, lba: u64, n: u32) -> Queued {
        Queued {
            id,
            write: false,
            sequential: false,
            lba,
            n,
            bus: n,
            arrived: Ticks::from(id),
            place: Place {
                cyl: (lba >> 4) as u32,
                head: 0,
                zone: 0,
                slot: 0,
                left: 1,
            },
            theta: lba % TURN,
        }
    }

    proptest! {
        /// The queue behaves like a vector of commands after any insertions and removals. The
        /// functions `may_begin` and `may_end` miss no command.
        #[test]
        fn command_queue_agrees_with_a_plain_vector(ops in prop::collection::vec(
            (any::<bool>(), 0u64..1 << 40, 1u32..5000, 0usize..40), 1..200,
        ), from in 0u64..1 << 40) {
            let (mut queue, mut plain) = (Queue::with_capacity(31, TURN), Vec::<Queued>::new());
            for (i, (come, lba, n, at)) in ops.into_iter().enumerate() {
                if come || plain.is_empty() {
                    let q = command(i as u32, lba, n);
                    queue.push(q);
                    plain.push(q);
                } else {
                    let at = at % plain.len();
                    prop_assert_eq!(queue.remove(at).id, plain.remove(at).id);
                }
                let ids: Vec<u32> = queue.iter().map(|q| q.id).collect();
                let all: Vec<u32> = plain.iter().map(|q| q.id).collect();
                prop_assert_eq!(ids, all);
                prop_assert_eq!(queue.len(), plain.len());
                prop_assert_eq!(queue.first().map(|q| q.id), plain.first().map(|q| q.id));
                for (k, (q, s)) in plain.iter().zip(queue.spots(usize::MAX)).enumerate() {
                    let soon = ((q.theta + SLACK) % TURN) << INDEX_BITS;
                    prop_assert_eq!((s.soon, s.cyl), (soon, q.place.cyl));
                    prop_assert_eq!(queue[k].lba, q.lba);
                    prop_assert!(queue.may_end(q.end()));
                    prop_assert!(queue.may_begin(q.lba, q.lba));
                    prop_assert!(queue.may_begin(q.lba.saturating_sub(5000), q.lba));
                    prop_assert!(queue.may_begin(q.lba, q.lba + 5000));
                }
                let near = |q: &Queued| q.lba.abs_diff(from) < 1 << 20;
                if !plain.iter().any(near) {
                    prop_assert!(!queue.may_begin(from, from));
                }
            }
        }
    }
}
