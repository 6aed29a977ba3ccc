//! A lower bound of the time until a sector passes its head. The bound depends only on the angle of
//! the sector and the distance of its cylinder. The drive computes this bound for every waiting
//! command before it computes any exact time.

use super::Ticks;
use super::mech::SLACK;
use super::queue::{INDEX_BITS, Spot};
use super::seek::Reach;

/// Maximum number of intervals into which the table divides a revolution.
const SHARES: usize = 256;

/// Computes lower bounds of the time until a sector passes its head. A bound is the time of the
/// rotation to the angle of the sector, plus the whole revolutions that the arm needs.
#[derive(Debug, Clone)]
pub(super) struct Laps {
    /// Indexed by the angle from the head to the sector, in intervals of a revolution. The two
    /// values are distances in cylinders. Up to the first distance, the sector can be reached in
    /// this revolution. Up to the second distance, it can be reached in the next revolution.
    within: Box<[[u32; 2]; SHARES]>,
    /// Base-2 logarithm of the ticks per interval.
    shift: u32,
    turn: Ticks,
}

impl Laps {
    /// Makes the table for a drive that requires at least `guard` ticks between the arrival of the
    /// arm and the arrival of the sector. `guard` must exceed the possible rounding error of a
    /// wait.
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

    /// Returns a lower bound of the time, in ticks, until the sector of `spot` passes. The cylinder
    /// of the sector is `away` cylinders from the arm, and `psi` is the phase of the platter. The
    /// bound includes the guard time, except on the cylinder under the arm.
    #[inline]
    pub fn at_least(&self, psi: Ticks, spot: Spot, away: u32) -> Ticks {
        let ahead = ahead(psi, spot.soon >> INDEX_BITS, self.turn);
        let turns = self.turns(ahead >> self.shift, away);
        (ahead + turns * self.turn).saturating_sub(SLACK)
    }

    /// Returns the spot with the smallest lower bound if the arm is at `cyl`. On a tie, the older
    /// spot wins. The low [`INDEX_BITS`] bits of the result are the index of the spot. The high
    /// bits are the lower bound, plus the possible rounding error of a wait.
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

    /// Returns a lower bound of the number of whole revolutions before the arm arrives.
    #[inline]
    fn turns(&self, share: u64, away: u32) -> u64 {
        let [this, next] = self.within[share as usize % SHARES];
        u64::from(away > this) + u64::from(away > next)
    }
}

/// Returns the rotation from phase `psi` to `angle`. Both are less than a revolution. The code
/// contains no comparison, because the processor could not predict its branch.
#[inline]
fn ahead(psi: u64, angle: u64, turn: u64) -> u64 {
    let ahead = angle.wrapping_sub(psi);
    ahead.wrapping_add(turn & ((ahead as i64) >> 63) as u64)
}
