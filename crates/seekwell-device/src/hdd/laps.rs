//! How soon a sector can come under its head at the earliest, from nothing but its angle and how far
//! away its cylinder is: what is looked at of every command before one is worked out.

use super::Ticks;
use super::mech::SLACK;
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
    /// Ticks of so many turns.
    turns: [Ticks; 3],
}

impl Laps {
    /// For a drive that wants `guard` ticks between the arm's arrival and the sector's; more than
    /// what a wait may be off by.
    pub fn new(reach: &Reach, turn: Ticks, guard: Ticks) -> Self {
        let shift = (turn / SHARES as Ticks).max(1).ilog2() + 1;
        let mut within = Box::new([[0; 2]; SHARES]);
        for (share, far) in within.iter_mut().enumerate() {
            let end = (share as Ticks + 1) << shift;
            for (lap, far) in far.iter_mut().enumerate() {
                let latest = end + lap as Ticks * turn + SLACK;
                *far = reach.cylinders(latest.saturating_sub(guard));
            }
        }
        Laps {
            within,
            shift,
            turn,
            turns: [0, turn, 2 * turn],
        }
    }

    /// Not sooner than this comes the sector at `theta` round that is `away` cylinders off, the
    /// platter at `psi`; with the guard, but on the cylinder under the arm.
    #[inline]
    pub fn at_least(&self, psi: Ticks, theta: Ticks, away: u32) -> Ticks {
        // Without a comparison that would be made a branch: which way it goes is anyone's guess.
        // What has passed by no more than a wait may be off by is there yet, on this track.
        let ahead = (theta + SLACK).wrapping_sub(psi);
        let ahead = ahead.wrapping_add(self.turn & (ahead as i64 >> 63) as u64);
        let past = (self.turn.wrapping_sub(1).wrapping_sub(ahead)) as i64 >> 63;
        let ahead = ahead - (self.turn & past as u64);
        let [this, next] = self.within[(ahead >> self.shift) as usize % SHARES];
        let turns = self.turns[usize::from(away > this) + usize::from(away > next)];
        (ahead + turns).saturating_sub(SLACK)
    }
}
