//! The rules by which the kernel changes writeback throttling (`queue/wbt_lat_usec`) when the name
//! of a scheduler is written to `queue/scheduler`. Simulations and host runs both use these rules.
//!
//! By default throttling is on, with a latency target that depends on the kind of disk. While bfq
//! is the scheduler, throttling is off (`wbt_disable_default`). Any other scheduler leaves
//! throttling as it is, or turns it on again after bfq (`wbt_enable_default`). A value that a user
//! wrote stays under every scheduler.

/// Default latency target of a non-rotational disk, us.
pub const FLASH_USEC: u64 = 2_000;
/// Default latency target of a rotational disk, us.
pub const ROTATING_USEC: u64 = 75_000;

/// The schedulers that turn throttling off. `turns` is not a kernel scheduler.
const OFF: &[&str] = &["bfq", "turns"];

/// Returns true if the queue throttles writeback under this scheduler by default.
pub fn wanted(scheduler: &str) -> bool {
    !OFF.contains(&scheduler)
}

/// Returns the default latency target of a disk, us.
pub const fn target_usec(rotating: bool) -> u64 {
    match rotating {
        true => ROTATING_USEC,
        false => FLASH_USEC,
    }
}

/// Returns the value of `wbt_lat_usec` under a scheduler if nobody wrote it, us; 0 means off.
pub fn default_usec(scheduler: &str, rotating: bool) -> u64 {
    match wanted(scheduler) {
        true => target_usec(rotating),
        false => 0,
    }
}

/// Returns a value (us) that switches throttling on under a scheduler that turns it off, and off
/// under any other. Under bfq the kernel still stores the disk's target and treats a write of the
/// same value as no change. So the value that switches it on is the target plus one.
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
    fn bfq_disables_wbt_and_other_schedulers_enable_it() {
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
