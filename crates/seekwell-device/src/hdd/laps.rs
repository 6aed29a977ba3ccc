//! A lower bound of the time until a sector passes its head, from its angle and the distance of its
//! cylinder only. The choice computes this bound for every command before it computes any exact
//! time.

use super::Ticks;
use super::mech::SLACK;
use super::queue::{INDEX_BITS, Spot};
use super::seek::Reach;

/// Largest number of shares of a turn.
const SHARES: usize = 256;

/// Bounds of the time until a sector passes: the time to its angle, plus the whole turns that the
/// arm needs.
#[derive(Debug, Clone)]
pub(super) struct Laps {
    /// Indexed by the angle from head to sector, in shares of a turn: the greatest distance in
    /// cylinders at which the sector can be reached in this turn, and in the next.
    within: Box<[[u32; 2]; SHARES]>,
    /// Base-2 logarithm of the ticks per share.
    shift: u32,
    turn: Ticks,
}

impl Laps {
    /// The bounds for a drive that requires at least `guard` ticks between the arm's arrival and
    /// the sector's. `guard` is above the possible error of a wait.
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

    /// Lower bound of the time until the sector of a spot passes. Its cylinder is `away` cylinders
    /// off, and the platter phase is `psi`. The bound includes the guard, except on the cylinder
    /// under the arm.
    #[inline]
    pub fn at_least(&self, psi: Ticks, spot: Spot, away: u32) -> Ticks {
        let ahead = ahead(psi, spot.soon >> INDEX_BITS, self.turn);
        let turns = self.turns(ahead >> self.shift, away);
        (ahead + turns * self.turn).saturating_sub(SLACK)
    }

    /// The spot with the least lower bound when the arm is at `cyl`; ties go to the older. The low
    /// bits of the result are its number. The high bits are the bound, plus the possible error of a
    /// wait.
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

    /// Lower bound of the whole turns before the arm arrives.
    #[inline]
    fn turns(&self, share: u64, away: u32) -> u64 {
        let [this, next] = self.within[share as usize % SHARES];
        u64::from(away > this) + u64::from(away > next)
    }
}

/// The rotation from phase `psi` to an angle, both below a turn. Written without a comparison,
/// because its branch would be unpredictable.
#[inline]
fn ahead(psi: u64, angle: u64, turn: u64) -> u64 {
    let ahead = angle.wrapping_sub(psi);
    ahead.wrapping_add(turn & ((ahead as i64) >> 63) as u64)
}
