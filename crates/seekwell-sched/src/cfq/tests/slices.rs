//! Lengths of workload slices (`choose_wl_class_and_type`).

use super::*;

/// The number of jiffies for which the workload of a lone reader is served.
fn workload_slice(tunables: &[(&str, &str)]) -> u64 {
    let mut b = bench(Version::V4_0, &[BE4]);
    for (name, value) in tunables {
        b.s.store(&mut b.cx, name, value).unwrap();
    }
    b.insert(0, 1000);
    assert!(b.take().is_some());
    b.s.serving.expires - b.cx.jiffies()
}

#[test]
fn a_workload_slice_lasts_at_least_two_jiffies() {
    // The only queue of the only group has the whole target latency.
    let no_idling = |target| [("slice_idle", "0"), ("target_latency", target)];
    assert_eq!(workload_slice(&no_idling("300")), 300);
    assert_eq!(workload_slice(&no_idling("3")), 3);
    assert_eq!(workload_slice(&no_idling("2")), 2);
    assert_eq!(workload_slice(&no_idling("1")), 2);
}

#[test]
fn a_workload_slice_of_readers_lasts_at_least_two_idle_waits() {
    let idling = |target| [("slice_idle", "8"), ("target_latency", target)];
    assert_eq!(workload_slice(&idling("17")), 17);
    assert_eq!(workload_slice(&idling("1")), 16);
}
