//! Properties of the phone schedulers (zen, vr, sio, fiops, row), on random request lists through
//! the single-queue layer: what their specifications promise whatever comes.
//!
//! The layer's and the scheduler's own invariants are checked after every step of every run.

mod fiops;
mod lists;
mod replay;
mod row;
mod sio;
mod vr;
mod zen;

use lists::{Shape, any_case};
use proptest::prelude::*;
use replay::run_case;
use std::collections::BTreeMap;

const ALL: &[&str] = &[
    "zen",
    "zen-v1",
    "zen-jf",
    "zen-ge",
    "vr",
    "vr-tuna",
    "vr-jf",
    "vr-glitch",
    "sio",
    "sio-tuned",
    "sio-zenkernel",
    "sio-normandy",
    "sio-oneplus",
    "sio-v1",
    "fiops",
    "fiops-v1",
    "fiops-preempt",
    "row",
    "row-hisi",
    "row-mid",
    "row-v1",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Everything goes out once, merged or not, with tunables at their extremes and written in the
    /// middle, exits, changes of ioprio and drains; the same list gives the same run. That a run
    /// ends at all shows that idle timers do.
    #[test]
    fn every_bio_goes_out_once_and_runs_repeat(case in any_case(ALL, Shape::wild())) {
        let first = run_case(&case);
        let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
        for id in first.dispatch.iter().flat_map(|d| &d.1) {
            *seen.entry(id.0).or_default() += 1;
        }
        let bios = case.input.iter().filter(|r| r.len() == 6).count();
        prop_assert!(first.left.is_empty(), "left behind: {:?}", first.left);
        prop_assert_eq!(seen.len(), bios);
        prop_assert!(seen.values().all(|&n| n == 1));
        let again = run_case(&case);
        prop_assert_eq!(&first.dispatch, &again.dispatch);
        prop_assert_eq!(&first.timers, &again.timers);
    }

    /// zen, vr and sio never let the device wait while something is queued; fiops does not either
    /// at depth 1, where nothing can be in flight while the driver asks.
    #[test]
    fn only_row_lets_the_device_wait(case in any_case(&ALL[..17], Shape::plain().depth_1())) {
        let out = run_case(&case);
        let service_ns = replay::service_ns(&case);
        for gap in replay::gaps(&out, service_ns) {
            prop_assert!(gap.queued.is_empty(), "idle with {:?} queued at {}", gap.queued, gap.from);
        }
    }
}
