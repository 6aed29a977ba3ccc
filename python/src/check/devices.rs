//! The property tests of devices, for one kind of device.

use super::SILENT;
use crate::laws::{Step, each_completes_once, is_deterministic, step};
use crate::scheduler::{quiet, said, watch};
use crate::{fault, work};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use pyo3::prelude::*;
use seekwell::Cancel;

/// Number of commands in a test case.
const STEPS: std::ops::Range<usize> = 1..60;

type Law = (
    &'static str,
    fn(&str, u64, &[Step]) -> Result<(), TestCaseError>,
);

const LAWS: &[Law] = &[
    (
        "each command that is taken completes once, in order, not before it came",
        each_completes_once,
    ),
    (
        "the same seed gives the same completions, from event to event or in leaps",
        is_deterministic,
    ),
];

/// Runs the property tests for a kind of device. Returns the properties that hold.
#[pyfunction]
pub fn check_device(py: Python<'_>, device: String, cases: u32) -> PyResult<Vec<String>> {
    seekwell::sdk::device::open(&device, 1).map_err(|e| fault::input(&e.to_string()))?;
    let cancel = Cancel::new();
    let failed = work::interruptible(py, &cancel, move || {
        SILENT.set(true);
        let config = Config {
            cases: cases.max(1),
            max_shrink_iters: 500,
            max_shrink_time: crate::check::SHRINK_MS,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(1),
            ..Config::default()
        };
        let mut kept = Vec::new();
        for (what, law) in LAWS {
            watch::take();
            let cases = (0u64..1000, proptest::collection::vec(step(), STEPS));
            let held = quiet(|| {
                let mut runner = TestRunner::new(config.clone());
                let run = runner.run(&cases, |(seed, steps)| law(&device, seed, &steps));
                run.map_err(|e| e.to_string())
            });
            let why = match held {
                Ok(Ok(())) => {
                    kept.push((*what).to_owned());
                    continue;
                }
                Ok(Err(why)) => why,
                Err(panic) => said(&*panic),
            };
            return Err(Box::new((*what, why, watch::take())));
        }
        Ok(kept)
    })?;
    failed.map_err(|failed| {
        let (what, why, raised) = *failed;
        let message = format!("{what}: it does not hold.\n{why}");
        fault::check(&message, raised.map(|r| r.by))
    })
}
