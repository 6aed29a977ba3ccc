//! Commands waiting for the mechanism, oldest first.
//!
//! A command keeps its slot while it waits, so that what goes moves nothing but two bytes each of
//! those behind it; what is looked at of all commands at once has a column of its own.

use super::Ticks;
use super::geometry::Place;
use super::mech::SLACK;
use std::ops::Index;

/// A queued command. Its place is worked out once, on arrival.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Queued {
    pub id: u32,
    pub write: bool,
    /// It continues the read accepted before it.
    pub sequential: bool,
    pub lba: u64,
    /// Sectors on the medium (a cached beginning is left out).
    pub n: u32,
    /// Sectors over the link.
    pub bus: u32,
    pub arrived: Ticks,
    /// Where the first sector lay when it arrived.
    pub place: Place,
    /// Angle of that place.
    pub theta: Ticks,
}

impl Queued {
    /// Behind its last sector.
    pub fn end(&self) -> u64 {
        self.lba + u64::from(self.n)
    }
}

/// Commands that wait at a time, at most, as a power of two.
pub(super) const INDEX_BITS: u32 = 10;
const MOST: usize = 1 << INDEX_BITS;

/// What the choice looks at of every command.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spot {
    /// Angle of its first sector and what a wait may be off by, within a turn: in ticks, from bit
    /// [`INDEX_BITS`] on, so that a number fits below it.
    pub soon: u64,
    pub cyl: u32,
}

/// Addresses are compared in blocks of so many sectors, as a power of two: the largest drive's fit
/// into 32 bits, of which a processor compares several at once.
const BLOCK_BITS: u32 = 11;
/// Block of a slot without a command.
const NOWHERE: u32 = u32::MAX;
/// Slots are made in groups, so that columns are whole vectors.
const GROUP: usize = 8;

/// All that wait.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    /// Ticks of a turn.
    turn: Ticks,
    /// Slots, oldest command first.
    order: Vec<u16>,
    free: Vec<u16>,
    slots: Vec<Queued>,
    /// Of each slot: spot, block of the first sector, end in 32 bits (that of a command that has
    /// gone stays).
    /// There is one for every number that a slot may have, so that none is looked for in vain.
    spots: Box<[Spot; MOST]>,
    blocks: Vec<u32>,
    ends: Vec<u32>,
}

impl Index<usize> for Queue {
    type Output = Queued;
    /// The command so many are older than.
    #[inline]
    fn index(&self, i: usize) -> &Queued {
        &self.slots[self.order[i] as usize]
    }
}

impl Queue {
    /// Room for so many commands of a drive that takes so many ticks for a turn.
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
    /// The oldest.
    #[inline]
    pub fn first(&self) -> Option<&Queued> {
        self.order.first().map(|&s| &self.slots[s as usize])
    }
    /// All, oldest first.
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

    /// A command comes. Part of its caller, so that each field goes where it stays: a command that is
    /// put together elsewhere is copied in larger pieces than it was written in, which waits for them.
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
    /// The command that `i` are older than goes.
    #[inline]
    pub fn remove(&mut self, i: usize) -> Queued {
        let slot = self.order.remove(i);
        self.free.push(slot);
        self.blocks[slot as usize] = NOWHERE;
        self.slots[slot as usize]
    }
    /// The beginning of a command, up to `lba`, which lies at `place`, is not needed any more. It is
    /// about to go, so that its columns stay as they are.
    pub fn trim(&mut self, i: usize, lba: u64, place: Place) {
        let q = &mut self.slots[self.order[i] as usize];
        q.n = (q.end() - lba) as u32;
        q.lba = lba;
        q.place = place;
    }
    /// Times of arrival, to be seen from another origin.
    pub fn arrivals(&mut self) -> impl Iterator<Item = &mut Ticks> {
        self.slots.iter_mut().map(|q| &mut q.arrived)
    }

    /// May a command begin in [from, to]? If not, none does.
    #[inline]
    pub fn may_begin(&self, from: u64, to: u64) -> bool {
        let first = (from >> BLOCK_BITS) as u32;
        let more = (to >> BLOCK_BITS) as u32 - first;
        let inside = |b: u32| b.wrapping_sub(first) <= more;
        self.blocks.iter().fold(false, |any, &b| any | inside(b))
    }
    /// May a command end at `lba`? If not, none does.
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
        /// It is a vector of commands, whatever comes and goes; nothing that begins or ends
        /// somewhere is overlooked.
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
