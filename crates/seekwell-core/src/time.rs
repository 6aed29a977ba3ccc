//! Time in integer nanoseconds, and the kernel's tick.
//!
//! Every clock starts at [`Instant::START`], which is 1000 s after the modelled boot. So a time of
//! 0 is long ago, as on a running machine. (Schedulers compare with times that are initially 0 and
//! mean "never".)

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Nanoseconds in a second.
pub const NSEC_PER_SEC: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub const NSEC_PER_MSEC: u64 = 1_000_000;
/// Nanoseconds in a microsecond.
pub const NSEC_PER_USEC: u64 = 1_000;

/// A duration in nanoseconds.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Nanos(pub u64);

impl Nanos {
    /// A duration of zero.
    pub const ZERO: Nanos = Nanos(0);
    /// Returns a duration of `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Nanos(us * NSEC_PER_USEC)
    }
    /// Returns a duration of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Nanos(ms * NSEC_PER_MSEC)
    }
    /// Returns a duration of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Nanos(s * NSEC_PER_SEC)
    }
    /// Returns the duration in seconds, for output.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NSEC_PER_SEC as f64
    }
    /// Returns the duration in milliseconds, for output.
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 / NSEC_PER_MSEC as f64
    }
    /// Returns the number of whole microseconds, rounded down.
    pub const fn as_us(self) -> u64 {
        self.0 / NSEC_PER_USEC
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, o: Nanos) -> Nanos {
        Nanos(self.0 + o.0)
    }
}
impl AddAssign for Nanos {
    fn add_assign(&mut self, o: Nanos) {
        self.0 += o.0;
    }
}

/// A point on the monotonic clock, in nanoseconds since boot.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(pub u64);

impl Instant {
    /// The start of every run: 1000 s after boot.
    pub const START: Instant = Instant(1000 * NSEC_PER_SEC);
    /// The last instant at which a run may start anything: 292 years, the range of a signed number
    /// of nanoseconds. Work in progress at that instant can last for another 292 years.
    pub const LAST: Instant = Instant(i64::MAX as u64);
    /// An instant later than all others.
    pub const FAR: Instant = Instant(u64::MAX);

    /// Returns the instant `ns` nanoseconds after the start.
    pub const fn at_ns(ns: u64) -> Self {
        Instant(Self::START.0.saturating_add(ns))
    }
    /// Returns the instant `us` microseconds after the start.
    pub const fn at_us(us: u64) -> Self {
        Instant(
            Self::START
                .0
                .saturating_add(us.saturating_mul(NSEC_PER_USEC)),
        )
    }
    /// Returns the number of nanoseconds since the start; 0 for an instant before the start.
    pub const fn since_start(self) -> u64 {
        self.0.saturating_sub(Self::START.0)
    }
    /// Returns the time from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Nanos> for Instant {
    type Output = Instant;
    fn add(self, d: Nanos) -> Instant {
        Instant(self.0.saturating_add(d.0))
    }
}
impl Sub<Instant> for Instant {
    type Output = Nanos;
    fn sub(self, o: Instant) -> Nanos {
        self.since(o)
    }
}
impl fmt::Display for Instant {
    /// Writes the milliseconds since the start, with three decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.since_start() / NSEC_PER_USEC;
        write!(f, "{}.{:03}", us / 1000, us % 1000)
    }
}

/// The kernel's tick, which converts time to jiffies.
///
/// `hz` is CONFIG_HZ (100, 250, 300 or 1000). `phase` shifts the tick against the clock; it is
/// shorter than one tick. So runs can compare a submission just before a tick with one just after
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TickClock {
    /// Number of ticks per second.
    pub hz: u32,
    /// Time that is added to the clock before it is divided into ticks.
    pub phase: Nanos,
}

impl TickClock {
    /// Returns a tick that has no phase shift.
    pub const fn new(hz: u32) -> Self {
        TickClock {
            hz,
            phase: Nanos::ZERO,
        }
    }
    /// Returns the jiffy that contains `t`.
    pub const fn jiffies(&self, t: Instant) -> u64 {
        // Values up to half a year fit into 64 bits. A 64-bit division takes a tenth of the time of
        // a 128-bit division.
        if let Some(since) = t.0.checked_add(self.phase.0)
            && let Some(ticks) = since.checked_mul(self.hz as u64)
        {
            return ticks / NSEC_PER_SEC;
        }
        ((t.0 as u128 + self.phase.0 as u128) * self.hz as u128 / NSEC_PER_SEC as u128) as u64
    }
    /// Returns the jiffy that contains `t`, and an instant up to which the jiffy lasts at least.
    /// The instant is computed without a division by a variable. So it can be earlier than the end
    /// of the jiffy, by at most half of the remaining time.
    pub const fn jiffy_at(&self, t: Instant) -> (u64, Instant) {
        if let Some(since) = t.0.checked_add(self.phase.0)
            && let Some(ticks) = since.checked_mul(self.hz as u64)
        {
            let j = ticks / NSEC_PER_SEC;
            let left = NSEC_PER_SEC - ticks % NSEC_PER_SEC;
            // `1 << shift` is the smallest power of two that is at least `hz`.
            let shift = u32::BITS - self.hz.saturating_sub(1).leading_zeros();
            return (j, Instant(t.0.saturating_add(left >> shift)));
        }
        (self.jiffies(t), t)
    }
    /// Returns the first instant of jiffy `j`.
    pub const fn start_of(&self, j: u64) -> Instant {
        let ns = match j.checked_mul(NSEC_PER_SEC) {
            Some(scaled) => scaled.div_ceil(self.hz as u64),
            None => (j as u128 * NSEC_PER_SEC as u128).div_ceil(self.hz as u128) as u64,
        };
        Instant(ns.saturating_sub(self.phase.0))
    }
    /// Converts milliseconds to jiffies, rounded up, like the kernel's `msecs_to_jiffies`.
    pub const fn from_ms(&self, ms: u64) -> u64 {
        (ms as u128 * self.hz as u128).div_ceil(1000) as u64
    }
    /// Converts jiffies to milliseconds, like the kernel's `jiffies_to_msecs`.
    pub const fn to_ms(&self, j: u64) -> u64 {
        (j as u128 * 1000 / self.hz as u128) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jiffies_start_at_1000_seconds() {
        let c = TickClock::new(250);
        assert_eq!(c.jiffies(Instant::at_us(0)), 250_000);
        assert_eq!(c.jiffies(Instant::at_us(3_999)), 250_000);
        assert_eq!(c.jiffies(Instant::at_us(4_000)), 250_001);
        assert_eq!(c.start_of(250_001), Instant::at_us(4_000));
    }

    #[test]
    fn jiffy_conversion_is_exact_at_the_last_instant() {
        for hz in [100, 250, 300, 1000] {
            let c = TickClock::new(hz);
            let t = Instant::LAST;
            let j = c.jiffies(t);
            assert!(c.start_of(j) <= t && c.start_of(j + 1) > t, "{hz}");
        }
        assert_eq!(Instant::at_ns(u64::MAX), Instant::FAR);
    }

    #[test]
    fn jiffies_agree_on_both_sides_of_the_64_bit_limit() {
        let exact = |t: u64, hz: u32| (u128::from(t) * u128::from(hz) / 1_000_000_000) as u64;
        for hz in [100, 250, 300, 1000] {
            let c = TickClock::new(hz);
            let last = u64::MAX / u64::from(hz);
            for t in [
                last - 1,
                last,
                last + 1,
                last + 3_999_999,
                last / 2,
                2 * last,
            ] {
                assert_eq!(c.jiffies(Instant(t)), exact(t, hz), "{t} at {hz}");
            }
            let most = u64::MAX / NSEC_PER_SEC;
            for j in [most - 1, most, most + 1] {
                let ns = (u128::from(j) * 1_000_000_000).div_ceil(u128::from(hz));
                assert_eq!(c.start_of(j), Instant(ns as u64), "{j} at {hz}");
            }
        }
    }

    #[test]
    fn reported_end_of_a_jiffy_is_never_too_late() {
        for (hz, phase) in [100, 250, 256, 300, 1000, 1024, 1].into_iter().zip(0..) {
            let c = TickClock {
                hz,
                phase: Nanos(phase * 1_234_567),
            };
            let end = c.start_of(c.jiffies(Instant::START) + 3);
            let before = [1u64, 2, 3, 999, 93_750, 1_000_000, 9_999_999];
            for t in before.map(|b| Instant(end.0 - b)) {
                let (j, until) = c.jiffy_at(t);
                assert_eq!(j, c.jiffies(t), "{t:?} at {hz}");
                let next = c.start_of(j + 1);
                assert!(until <= next, "{until:?} of {next:?} at {hz}");
                assert!(2 * (until.0 - t.0) + 2 >= next.0 - t.0, "{t:?} at {hz}");
            }
        }
        let c = TickClock::new(1000);
        assert_eq!(
            c.jiffy_at(Instant(u64::MAX)),
            (c.jiffies(Instant(u64::MAX)), Instant(u64::MAX))
        );
    }

    #[test]
    fn start_of_is_the_first_instant_at_hz_300() {
        let c = TickClock::new(300);
        for j in 300_000..300_100 {
            let t = c.start_of(j);
            assert_eq!(c.jiffies(t), j);
            assert_eq!(c.jiffies(Instant(t.0 - 1)), j - 1);
        }
    }

    #[test]
    fn milliseconds_are_rounded_up_to_jiffies() {
        let c = TickClock::new(250);
        assert_eq!(c.from_ms(1), 1);
        assert_eq!(c.from_ms(4), 1);
        assert_eq!(c.from_ms(5), 2);
        assert_eq!(c.from_ms(500), 125);
    }
}
