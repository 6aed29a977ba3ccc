//! The environment that the property tests need, for one scheduler. It sets the number of test
//! cases, and limits the search for the smallest failing case.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseResult, TestRunner};
use seekwell_core::Era;
use seekwell_sched::{Layer, SchedulerInfo};
use std::fmt::Debug;

/// A scheduler, one of its versions, and the kernel generation of its layer.
pub type Version = (&'static SchedulerInfo, &'static str, Era);

/// Largest number of steps in the search for a smaller failing case.
const SHRINK_ITERS: u32 = 500;

/// Returns every version of the tested scheduler.
pub fn versions(layer: Layer) -> Vec<Version> {
    let of = |s: &'static SchedulerInfo| s.versions.iter().map(move |v| (s, v.0, v.1));
    let all = crate::check::registered()
        .iter()
        .filter(|s| s.layer == layer);
    all.flat_map(of).collect()
}

/// Tests a property for each version. `holds` also gets the index of the version.
pub fn each<S: Strategy>(
    all: &[Version],
    strategy: S,
    holds: impl Fn(usize, S::Value) -> TestCaseResult,
) where
    S::Value: Debug,
{
    let config = Config {
        cases: crate::check::cases(),
        max_shrink_iters: SHRINK_ITERS,
        max_shrink_time: crate::check::SHRINK_MS,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..Config::default()
    };
    for (which, _) in all.iter().enumerate() {
        let run = TestRunner::new(config.clone()).run(&strategy, |case| holds(which, case));
        if let Err(e) = run {
            panic!("{e}");
        }
    }
}
