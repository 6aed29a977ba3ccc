//! `check`: the project's property tests, for one scheduler.

pub mod devices;

use crate::scheduler::{quiet, said, watch};
use crate::{fault, legacy, mq, waiting, work};
use pyo3::prelude::*;
use seekwell::Cancel;
use seekwell::sdk::sched::{self, Layer, SchedulerInfo};
use std::cell::Cell;

/// Longest time for the search for a smaller failing case, ms. The search has hundreds of steps. If
/// a callback does not return, each step takes the longest time that a callback may take.
pub const SHRINK_MS: u32 = 10_000;

thread_local! {
    /// Index of the tested scheduler in the registry.
    static CHOSEN: Cell<usize> = const { Cell::new(0) };
    /// Number of test cases for each property.
    static CASES: Cell<u32> = const { Cell::new(64) };
    /// Whether panics print nothing on standard error.
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// Returns the tested scheduler. The property tests call a function with this name.
pub fn registered() -> &'static [SchedulerInfo] {
    let at = CHOSEN.get();
    &sched::registry()[at..=at]
}

/// Returns the number of test cases.
pub fn cases() -> u32 {
    CASES.get()
}

/// Makes panics of the checking threads silent. The caller gets an exception instead.
pub fn hush() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !SILENT.get() {
            usual(info);
        }
    }));
}

/// The name of a property, and its test.
type Property = (&'static str, fn());

fn properties(layer: Layer, bounded: bool) -> Vec<Property> {
    let once =
        "every bio completes once, whatever comes: merges, requeues, switches, drains, tunables";
    let nobody = "nobody waits for longer than `waiting` says";
    let (first, second): (fn(), fn()) = match layer {
        Layer::Legacy => (legacy::every_bio_completes_once, || {
            waiting::check_waiting_bounds(Layer::Legacy);
        }),
        Layer::Mq => (mq::every_bio_completes_once, || {
            waiting::check_waiting_bounds(Layer::Mq);
        }),
    };
    let mut all: Vec<Property> = vec![(once, first)];
    if bounded {
        all.push((nobody, second));
    }
    all
}

/// Runs the property tests for a scheduler. Returns the properties that hold.
#[pyfunction]
pub fn check(py: Python<'_>, name: &str, cases: u32, bounded: bool) -> PyResult<Vec<String>> {
    let all = sched::registry();
    let Some(at) = all.iter().position(|s| s.name == name) else {
        let what = format!(
            "no scheduler is called \"{name}\"; {}",
            sched::unknown_scheduler(name)
        );
        return Err(fault::input(&what));
    };
    let layer = all[at].layer;
    let cancel = Cancel::new();
    let failed = work::interruptible(py, &cancel, move || {
        CHOSEN.set(at);
        CASES.set(cases.max(1));
        SILENT.set(true);
        let mut passed = Vec::new();
        for (what, property) in properties(layer, bounded) {
            watch::take();
            if let Err(panic) = quiet(property) {
                return Err(Box::new((what, said(&*panic), watch::take())));
            }
            passed.push(what.to_owned());
        }
        Ok(passed)
    })?;
    failed.map_err(|failed| {
        let (what, why, raised) = *failed;
        let message = format!("{what}: it does not hold.\n{why}");
        fault::check(&message, raised.map(|r| r.by))
    })
}
