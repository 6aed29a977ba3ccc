//! Checks a property for every registered version with a few hundred cases each. A failure names
//! the version and how to reproduce the case.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseResult, TestRunner};
use seekwell_core::Era;
use seekwell_sched::{Layer, SchedulerInfo};
use std::fmt::Debug;

/// A scheduler, one of its versions, and the kernel generation of its layer.
pub type Version = (&'static SchedulerInfo, &'static str, Era);

/// Smallest number of cases per version.
const CASES: u32 = 256;

/// Every registered version of a layer.
pub fn versions(layer: Layer) -> Vec<Version> {
    let of = |s: &'static SchedulerInfo| s.versions.iter().map(move |v| (s, v.0, v.1));
    let all = crate::registered().iter().filter(|s| s.layer == layer);
    all.flat_map(of).collect()
}

/// Checks a property for each of them; the closure also gets the index in the list.
pub fn each<S: Strategy>(
    all: &[Version],
    strategy: S,
    holds: impl Fn(usize, S::Value) -> TestCaseResult,
) where
    S::Value: Debug,
{
    let mut config = Config {
        max_shrink_iters: 20_000,
        failure_persistence: None,
        ..Config::default()
    };
    config.cases = config.cases.max(CASES);
    if config.rng_seed == RngSeed::Random {
        // A known seed, which can be reported.
        config.rng_seed = RngSeed::Fixed(std::process::id().into());
    }
    for (which, (info, version, _)) in all.iter().enumerate() {
        let run = TestRunner::new(config.clone()).run(&strategy, |case| holds(which, case));
        if let Err(e) = run {
            panic!(
                "{}-{version}, PROPTEST_RNG_SEED={} PROPTEST_CASES={}: {e}",
                info.name, config.rng_seed, config.cases
            );
        }
    }
}
