//! Tests of the rate that the throttle allows, as a function of dirty memory.

use super::disk::Disk;
use super::machine::{Machine, free_cpu};
use seekwell_core::Era;

/// The ratio is 1 at the setpoint, less than 1 above it, and 0 from the limit on. It is doubled
/// when dirty memory is below half of the setpoint.
#[test]
fn throttle_doubles_the_rate_if_dirty_memory_is_far_below_the_setpoint() {
    for era in [Era::K3_4, Era::K4_0, Era::Mq6_18] {
        let m = Machine::new(free_cpu(era), Disk::hdd());
        let w = m.kernel.world();
        let (free, setpoint, limit) = w.control_line();
        assert!(free < setpoint && setpoint < limit);
        assert!((w.pos_ratio(setpoint) - 1.0).abs() < 1e-9);
        assert_eq!(w.pos_ratio(limit), 0.0);
        let above = w.pos_ratio((setpoint + limit) / 2.0);
        assert!(0.0 < above && above < 1.0, "{above}");
        let half = setpoint / 2.0;
        let (at, below) = (w.pos_ratio(half), w.pos_ratio(half - 1.0));
        assert!((below / at - 2.0).abs() < 0.01, "{below} and {at}");
    }
}
