//! Commands that wait for the mechanism, oldest first.
//!
//! A command keeps its slot while it waits, so that a removal moves only two bytes per younger
//! command. The values that are compared for all commands have columns of their own.

use super::Ticks;
use super::geometry::Place;
use super::mech::SLACK;
use std::ops::Index;

/// A queued command. Its place is computed once, on arrival.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Queued {
    pub id: u32,
    pub write: bool,
    /// The command continues the previously accepted read.
    pub sequential: bool,
    pub lba: u64,
    /// Sectors on the medium, without a cached beginning.
    pub n: u32,
    /// Sectors over the link.
    pub bus: u32,
    pub arrived: Ticks,
    /// Place of the first sector, as of arrival.
    pub place: Place,
    /// Angle of that place.
    pub theta: Ticks,
}

impl Queued {
    /// The end of its last sector.
    pub fn end(&self) -> u64 {
        self.lba + u64::from(self.n)
    }
}

/// Greatest number of waiting commands, as a power of two.
pub(super) const INDEX_BITS: u32 = 10;
const MOST: usize = 1 << INDEX_BITS;

/// The values that the choice compares for every command.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spot {
    /// Angle of the first sector plus the possible error of a wait, within a turn, in ticks. It
    /// starts at bit [`INDEX_BITS`], so that an index fits below it.
    pub soon: u64,
    pub cyl: u32,
}

/// Addresses are compared in blocks of this many sectors, as a power of two. The block numbers of
/// the largest drive fit into 32 bits, and a processor compares several of those at once.
const BLOCK_BITS: u32 = 11;
/// Block of a slot without a command.
const NOWHERE: u32 = u32::MAX;
/// Slots are allocated in groups, so that columns are whole vectors.
const GROUP: usize = 8;

/// All waiting commands.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    /// Ticks per turn.
    turn: Ticks,
    /// Slots, oldest command first.
    order: Vec<u16>,
    free: Vec<u16>,
    slots: Vec<Queued>,
    /// Per slot: spot, block of the first sector, low 32 bits of the end. The end of a removed
    /// command remains. One spot exists for every possible slot number, so that no bounds check is
    /// needed.
    spots: Box<[Spot; MOST]>,
    blocks: Vec<u32>,
    ends: Vec<u32>,
}

impl Index<usize> for Queue {
    type Output = Queued;
    /// The command at position `i`, oldest first.
    #[inline]
    fn index(&self, i: usize) -> &Queued {
        &self.slots[self.order[i] as usize]
    }
}

impl Queue {
    /// A queue with room for `n` commands. The drive takes `turn` ticks per revolution.
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
    /// The oldest command.
    #[inline]
    pub fn first(&self) -> Option<&Queued> {
        self.order.first().map(|&s| &self.slots[s as usize])
    }
    /// All commands, oldest first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.order.iter().map(|&s| &self.slots[s as usize])
    }
    /// Spots of the oldest `n`, oldest first.
    #[inline]
    pub fn spots(&self, n: usize) -> impl Iterator<Item = Spot> {
        let seen = &self.order[..n.min(self.order.len())];
        seen.iter().map(|&s| self.spots[s as usize % MOST])
    }

    /// Adds a command. Inlined, so that each field is written directly to its final place. A
    /// command that is built elsewhere is copied in larger pieces than it was written in, which
    /// stalls the processor.
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
    /// Removes the command at position `i`.
    #[inline]
    pub fn remove(&mut self, i: usize) -> Queued {
        let slot = self.order.remove(i);
        self.free.push(slot);
        self.blocks[slot as usize] = NOWHERE;
        self.slots[slot as usize]
    }
    /// Drops the beginning of a command up to `lba`, which is at `place`. The command is about to
    /// be removed, so its columns are not updated.
    pub fn trim(&mut self, i: usize, lba: u64, place: Place) {
        let q = &mut self.slots[self.order[i] as usize];
        q.n = (q.end() - lba) as u32;
        q.lba = lba;
        q.place = place;
    }
    /// Times of arrival, to convert them to another origin.
    pub fn arrivals(&mut self) -> impl Iterator<Item = &mut Ticks> {
        self.slots.iter_mut().map(|q| &mut q.arrived)
    }

    /// Whether a command may begin in [from, to]. False is certain; true is not.
    #[inline]
    pub fn may_begin(&self, from: u64, to: u64) -> bool {
        let first = (from >> BLOCK_BITS) as u32;
        let more = (to >> BLOCK_BITS) as u32 - first;
        let inside = |b: u32| b.wrapping_sub(first) <= more;
        self.blocks.iter().fold(false, |any, &b| any | inside(b))
    }
    /// Whether a command may end at `lba`. False is certain; true is not.
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
        /// The queue behaves like a vector of commands under any insertions and removals. The
        /// checks of beginnings and ends miss no command.
        #[test]
        fn keeps_order(ops in prop::collection::vec(
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
