//! What the kernel does to writeback throttling (`queue/wbt_lat_usec`) when the name of a scheduler
//! is written to `queue/scheduler`: the one table for simulations and for real runs.
//!
//! Throttling begins on, with a target by the kind of disk. bfq switches it off while it is in force
//! (`wbt_disable_default`); every other scheduler leaves it, or switches it on again after bfq
//! (`wbt_enable_default`). A value that was written by hand stays under every scheduler.

/// Target of a disk that does not rotate, us.
pub const FLASH_USEC: u64 = 2_000;
/// Target of a disk that rotates, us.
pub const ROTATING_USEC: u64 = 75_000;

/// Schedulers that switch it off. `turns` is no kernel's.
const OFF: &[&str] = &["bfq", "turns"];

/// Does the queue throttle writeback under this scheduler, unless told otherwise?
pub fn wanted(scheduler: &str) -> bool {
    !OFF.contains(&scheduler)
}

/// The target of a disk where it is on, us.
pub const fn target_usec(rotating: bool) -> u64 {
    match rotating {
        true => ROTATING_USEC,
        false => FLASH_USEC,
    }
}

/// What `wbt_lat_usec` reads under a scheduler when nobody has written it: 0 is off.
pub fn default_usec(scheduler: &str, rotating: bool) -> u64 {
    match wanted(scheduler) {
        true => target_usec(rotating),
        false => 0,
    }
}

/// A value that switches it the other way under a scheduler. Under bfq the kernel remembers the
/// target of the disk and takes a write of the same value for no change, so that one more is written.
pub fn opposite_usec(scheduler: &str, rotating: bool) -> u64 {
    match wanted(scheduler) {
        true => 0,
        false => target_usec(rotating) + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bfq_switches_it_off_and_the_others_leave_it_on() {
        for (scheduler, rotating, is, opposite) in [
            ("none", false, 2_000, 0),
            ("mq-deadline", true, 75_000, 0),
            ("kyber", false, 2_000, 0),
            ("adios", true, 75_000, 0),
            ("bfq", false, 0, 2_001),
            ("bfq", true, 0, 75_001),
        ] {
            let found = (
                default_usec(scheduler, rotating),
                opposite_usec(scheduler, rotating),
            );
            assert_eq!(found, (is, opposite), "{scheduler}");
        }
    }
}
