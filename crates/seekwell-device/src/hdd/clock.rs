//! The clock of a disk. It counts ticks of 1/1024 ns since an origin that can move.
//!
//! A 64-bit count of ticks overflows after 208 days, but a count of nanoseconds only after 584
//! years. A replayed trace with Unix timestamps starts more than 50 years after time 0. Therefore
//! the origin moves forward when time has advanced far enough. The origin moves by whole
//! nanoseconds, and the phase of the platter is converted to the new origin, so no rounding error
//! occurs. A stored time that would be before the new origin is set to the origin. Such a time is
//! more than [`KEPT`] in the past.

use super::{Hdd, Mech, NEVER, ReadAhead, Ticks};
use seekwell_core::Instant;

const TICK_BITS: u32 = 10;
/// The origin moves when a time is farther than this from the origin, in ns (52 days). No command
/// takes that long.
const REACH: u64 = 1 << 52;
/// Length of the past that can still be represented after a move of the origin, in ns.
const KEPT: u64 = 1 << 51;
/// Maximum time since the origin, in ns. Later times are reduced to this value.
const LAST: u64 = (Ticks::MAX >> 1) >> TICK_BITS;

/// The origin of the ticks, in ns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clock {
    origin_ns: u64,
}

impl Clock {
    /// Returns true if `t` is too far from the origin, so that the origin must move.
    #[inline]
    pub fn beyond(&self, t: Instant) -> bool {
        t.0.saturating_sub(self.origin_ns) > REACH
    }
    #[inline]
    pub fn ticks(&self, t: Instant) -> Ticks {
        t.0.saturating_sub(self.origin_ns).min(LAST) << TICK_BITS
    }
    /// Converts ticks to nanoseconds, rounded up.
    #[inline]
    pub fn instant(&self, t: Ticks) -> Instant {
        Instant(self.origin_ns.saturating_add(t.div_ceil(1 << TICK_BITS)))
    }
    /// Returns the time, in ticks, up to which a disk executes its background work before its
    /// origin moves.
    pub const fn reach() -> Ticks {
        REACH << TICK_BITS
    }
    /// Returns the distance by which the origin should move before the disk handles `now`. `quiet`
    /// is true if the disk has no background work. If `quiet` is false, the caller must first have
    /// executed the background work up to [`Clock::reach`]. `untaken` is the time of the earliest
    /// completion that the caller has not yet collected.
    pub fn step(&self, now: Instant, quiet: bool, untaken: Option<Ticks>) -> Shift {
        let past = now.0.saturating_sub(self.origin_ns);
        let whole = if quiet { past } else { REACH };
        let most = untaken.map_or(u64::MAX, |t| t >> TICK_BITS);
        Shift(whole.saturating_sub(KEPT).min(most))
    }
    pub fn shift(&mut self, by: Shift) {
        self.origin_ns += by.0;
    }
}

/// The distance of a move of the origin, in ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shift(u64);

impl Shift {
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
    /// Converts a time in ticks to the new origin.
    pub fn time(self, t: &mut Ticks) {
        if *t != NEVER {
            let by = u128::from(self.0) << TICK_BITS;
            *t = t.saturating_sub(Ticks::try_from(by).unwrap_or(Ticks::MAX));
        }
    }
    /// Converts the phase of the platter at the old origin to the phase at the new origin.
    pub fn phase(self, phase: &mut Ticks, turn: Ticks) {
        let at = (u128::from(self.0) << TICK_BITS) + u128::from(*phase);
        *phase = (at % u128::from(turn)) as Ticks;
    }
}

impl Hdd {
    /// Converts `now` to ticks. Moves the origin if necessary; the disk then first executes its
    /// background work.
    #[inline]
    pub(super) fn ticks(&mut self, now: Instant) -> Ticks {
        if self.clock.beyond(now) {
            self.follow(now);
        }
        self.clock.ticks(now)
    }

    #[cold]
    fn follow(&mut self, now: Instant) {
        while self.clock.beyond(now) {
            self.run_to(Clock::reach());
            let untaken = self.finished.last().map(|f| f.at);
            let by = self.clock.step(now, self.next == NEVER, untaken);
            if by.is_none() {
                return;
            }
            self.shift(by);
        }
    }

    fn shift(&mut self, by: Shift) {
        self.clock.shift(by);
        self.mech.shift(by);
        self.ra.shift(by);
        by.time(&mut self.next);
        for t in [
            &mut self.link_free,
            &mut self.host_at,
            &mut self.write_end.1,
            &mut self.busy_to,
        ] {
            by.time(t);
        }
        self.queue.arrivals().for_each(|t| by.time(t));
        self.waiting
            .iter_mut()
            .for_each(|w| by.time(&mut w.arrived));
        self.finished.iter_mut().for_each(|f| by.time(&mut f.at));
    }
}

impl Mech {
    fn shift(&mut self, by: Shift) {
        let turn = self.turn();
        by.phase(self.phase_mut(), turn);
        by.time(&mut self.at.passes);
    }
}

impl ReadAhead {
    fn shift(&mut self, by: Shift) {
        by.time(self.start_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotational_phase_is_exact_after_a_clock_shift() {
        let turn = 8_533_333_333; // 7200 rpm
        let mut phase = 12_345;
        let by = Shift(1_700_000_000_000_000_001);
        by.phase(&mut phase, turn);
        let ticks = (1_700_000_000_000_000_001_u128 << TICK_BITS) + 12_345;
        assert_eq!(u128::from(phase), ticks % u128::from(turn));
    }

    #[test]
    fn clock_shift_clamps_past_times_to_zero_and_keeps_never() {
        let by = Shift(1 << 60);
        let (mut past, mut never) = (123 << TICK_BITS, NEVER);
        by.time(&mut past);
        by.time(&mut never);
        assert_eq!((past, never), (0, NEVER));
        let (by, mut t) = (Shift(100), 123 << TICK_BITS);
        by.time(&mut t);
        assert_eq!(t, 23 << TICK_BITS);
    }

    #[test]
    fn pending_completion_limits_the_clock_shift() {
        let clock = Clock::default();
        let now = Instant(1 << 60);
        assert!(clock.beyond(now) && !clock.beyond(Instant(REACH)));
        assert_eq!(clock.step(now, true, None).0, (1 << 60) - KEPT);
        assert_eq!(clock.step(now, false, None).0, REACH - KEPT);
        let untaken = Some(5000 << TICK_BITS);
        assert_eq!(clock.step(now, true, untaken).0, 5000);
        assert!(clock.step(now, true, Some(0)).is_none());
    }
}
