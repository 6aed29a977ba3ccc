//! How soon a sector can come under its head at the earliest, from nothing but its angle and how far
//! away its cylinder is: what is looked at of every command before one is worked out.

use super::Ticks;
use super::mech::SLACK;
use super::queue::{INDEX_BITS, Spot};
use super::seek::Reach;

/// Shares of a turn, at most.
const SHARES: usize = 256;

/// See the module. A sector comes round at its angle, or so many turns later as the arm needs.
#[derive(Debug, Clone)]
pub(super) struct Laps {
    /// By the share of a turn that a sector is ahead of the head: how many cylinders away it may be
    /// to be reached in this turn, and in the next.
    within: Box<[[u32; 2]; SHARES]>,
    /// Ticks of a share, as a power of two.
    shift: u32,
    turn: Ticks,
}

impl Laps {
    /// For a drive that wants `guard` ticks between the arm's arrival and the sector's; more than
    /// what a wait may be off by.
    pub fn new(reach: &Reach, turn: Ticks, guard: Ticks) -> Self {
        let shift = (turn / SHARES as Ticks).max(1).ilog2() + 1;
        let within = |share: usize| {
            let end = (share as Ticks + 1) << shift;
            [0, turn].map(|lap| reach.cylinders((end + lap + SLACK).saturating_sub(guard)))
        };
        Laps {
            within: Box::new(std::array::from_fn(within)),
            shift,
            turn,
        }
    }

    /// Not sooner than this comes the sector of a spot round that is `away` cylinders off, the
    /// platter at `psi`; with the guard, but on the cylinder under the arm.
    #[inline]
    pub fn at_least(&self, psi: Ticks, spot: Spot, away: u32) -> Ticks {
        let ahead = ahead(psi, spot.soon >> INDEX_BITS, self.turn);
        let turns = self.turns(ahead >> self.shift, away);
        (ahead + turns * self.turn).saturating_sub(SLACK)
    }

    /// The first of these that could come round, the oldest first, the arm at `cyl`: its number in
    /// the lower bits, and above them when, not sooner, and with what a wait may be off by.
    #[inline]
    pub fn first(&self, psi: Ticks, cyl: u32, spots: impl Iterator<Item = Spot>) -> u64 {
        let (psi, turn) = (psi << INDEX_BITS, self.turn << INDEX_BITS);
        let shift = self.shift + INDEX_BITS;
        let mut first = u64::MAX;
        for (i, spot) in (0..).zip(spots) {
            let ahead = ahead(psi, spot.soon, turn);
            let turns = self.turns(ahead >> shift, spot.cyl.abs_diff(cyl));
            first = first.min(ahead + turns * turn + i);
        }
        first
    }

    /// Turns that are over before the arm is there, at least.
    #[inline]
    fn turns(&self, share: u64, away: u32) -> u64 {
        let [this, next] = self.within[share as usize % SHARES];
        u64::from(away > this) + u64::from(away > next)
    }
}

/// From phase `psi` on to an angle: both below a turn. Without a comparison that would be made a
/// branch: which way it goes is anyone's guess.
#[inline]
fn ahead(psi: u64, angle: u64, turn: u64) -> u64 {
    let ahead = angle.wrapping_sub(psi);
    ahead.wrapping_add(turn & ((ahead as i64) >> 63) as u64)
}
