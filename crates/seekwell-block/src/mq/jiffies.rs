//! Time with the resolution of the kernel's timers.

/// A point in time, on the clock and in kernel ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds on the clock.
    pub ns: u64,
    /// Number of kernel ticks (`jiffies`).
    pub jiffy: i64,
}

/// Length of the first level of the timer wheel, jiffies. On each further level, the buckets are
/// eight times as wide.
const FIRST: i64 = 63;
/// Number of levels that are modelled. They cover 18 hours at 1000 Hz.
const LEVELS: u32 = 6;

/// Returns the jiffy in which a timer for the jiffy `expires` fires, if it is set in the jiffy
/// `now`. It never fires in the present jiffy. The resolution is coarser for later times
/// (`calc_wheel_index`).
pub(super) fn fires_at(now: i64, expires: i64) -> i64 {
    let ahead = expires - now;
    if ahead <= FIRST {
        return expires.max(now) + 1;
    }
    let level = (1..LEVELS).find(|l| ahead < FIRST << (3 * l));
    let width = 1 << (3 * level.unwrap_or(LEVELS));
    (expires + width).div_euclid(width) * width
}

#[cfg(test)]
mod tests {
    use super::fires_at;

    #[test]
    fn timers_fire_at_the_end_of_their_wheel_bucket() {
        for (expires, fires) in [
            (1000, 1001),
            (990, 1001),
            (1001, 1002),
            (1063, 1064),
            (1064, 1072),
            (1100, 1104),
            (1503, 1504),
            (1504, 1536),
        ] {
            assert_eq!(fires_at(1000, expires), fires, "{expires}");
        }
    }
}
