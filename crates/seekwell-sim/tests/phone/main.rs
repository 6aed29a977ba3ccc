//! Properties of the phone schedulers (zen, vr, sio, fiops, row) on random request lists through
//! the single-queue layer. Their specifications guarantee these properties for every input.
//!
//! Every step of every run also checks the invariants of the layer and of the scheduler.

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

    /// Every bio is dispatched once, merged or not. The tunables take extreme values, also in
    /// mid-run. There are exits, changes of ioprio and drains. Equal lists give equal runs. A run
    /// that ends also proves that idle timers end.
    #[test]
    fn every_bio_is_dispatched_once_and_runs_are_deterministic(case in any_case(ALL, Shape::wild())) {
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

    /// zen, vr and sio never leave the device idle while requests are queued. At depth 1 neither
    /// does fiops, because nothing can be in flight when the driver asks.
    #[test]
    fn only_row_idles_with_queued_requests(case in any_case(&ALL[..17], Shape::plain().depth_1())) {
        let out = run_case(&case);
        let service_ns = replay::service_ns(&case);
        for gap in replay::gaps(&out, service_ns) {
            prop_assert!(gap.queued.is_empty(), "idle with {:?} queued at {}", gap.queued, gap.from);
        }
    }
}
