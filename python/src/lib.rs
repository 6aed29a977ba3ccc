//! Seekwell for Python: the module `seekwell._seekwell`, on which the package `seekwell` stands.
//!
//! Here is what has to be: values over the border, the interpreter's lock let go while something
//! runs, Ctrl-C, schedulers in Python behind the contract. What can be said in Python is said
//! there.

mod calibrate;
mod check;
mod device;
mod explain;
mod fault;
mod json;
mod lab;
mod lists;
mod parameters;
mod record;
mod scheduler;
mod slots;
mod specs;
mod table;
mod work;
mod workload;

// The tree's own property tests, over a scheduler or a device that somebody wrote in Python.
#[path = "../../crates/seekwell-device/tests/suite/laws.rs"]
mod laws;
#[path = "../../crates/seekwell-sim/tests/suite/legacy.rs"]
#[allow(dead_code)]
mod legacy;
#[path = "../../crates/seekwell-sim/tests/suite/mq.rs"]
#[allow(dead_code)]
mod mq;
#[path = "../../crates/seekwell-sim/tests/suite/near.rs"]
mod near;
#[path = "check/versions.rs"]
mod versions;
#[path = "../../crates/seekwell-sim/tests/suite/waiting.rs"]
#[allow(dead_code)]
mod waiting;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use record::Record;
use seekwell::event::Event;
use seekwell::{Cancel, Hooks, RunSpec};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

/// Runs a specification; with so many of its events.
fn simulate(py: Python<'_>, spec: &RunSpec, most_events: Option<usize>) -> PyResult<Record> {
    let cancel = Cancel::new();
    let token = cancel.clone();
    work::interruptible(py, &cancel, move || {
        let kept: Rc<RefCell<(Vec<Event>, bool)>> = Rc::default();
        let mut hooks = Hooks::default().cancel(&token);
        if let Some(most) = most_events {
            let to = kept.clone();
            hooks = hooks.events(move |e| {
                let (all, cut) = &mut *to.borrow_mut();
                match all.len() < most {
                    true => all.push(e.clone()),
                    false => *cut = true,
                }
            });
        }
        let ran = seekwell::run(spec, hooks);
        let events = most_events.map(|_| kept.take());
        match (ran, scheduler::watch::take()) {
            (_, Some(raised)) => Err(scheduler::watch::as_error(raised)),
            (Ok(record), None) => Ok(Record::new(record, events)),
            (Err(e), None) => Err(fault::of_run(&e)),
        }
    })?
}

/// One run of a workload.
#[pyfunction]
fn run(
    py: Python<'_>,
    workload: &str,
    params: Vec<String>,
    options: &Bound<'_, PyDict>,
    most_events: Option<usize>,
) -> PyResult<Record> {
    let workload = specs::workload(workload, &params)?;
    let spec = specs::Bench::of(options)?.spec(workload)?;
    simulate(py, &spec, most_events)
}

/// One replay of a trace.
#[pyfunction]
fn replay(
    py: Python<'_>,
    file: PathBuf,
    said: &Bound<'_, PyDict>,
    options: &Bound<'_, PyDict>,
    most_events: Option<usize>,
) -> PyResult<Record> {
    let workload = specs::trace(&file, said)?;
    specs::one_volume(py, &file, &workload)?;
    let spec = specs::Bench::of(options)?.spec(workload)?;
    simulate(py, &spec, most_events)
}

/// The specification of a run as the text of a TOML file, with everything stated.
#[pyfunction]
fn run_spec(py: Python<'_>, text: &str, most_events: Option<usize>) -> PyResult<Record> {
    let spec = RunSpec::from_toml(text).map_err(|e| fault::words("", &e))?;
    simulate(py, &spec, most_events)
}

/// Version of the program, and how it was built.
#[pyfunction]
fn version() -> (&'static str, &'static str) {
    (env!("CARGO_PKG_VERSION"), seekwell::result::BUILD)
}

/// Quantile of Student's t, as the lab's own intervals have it.
#[pyfunction]
fn t_quantile(p: f64, df: f64) -> f64 {
    seekwell_lab::stats::t_quantile(p, df)
}

/// Inside of `seekwell`.
#[pymodule]
fn _seekwell(m: &Bound<'_, PyModule>) -> PyResult<()> {
    check::hush();
    m.add_class::<calibrate::Calibration>()?;
    m.add_class::<device::bridge::Command>()?;
    m.add_class::<explain::Explained>()?;
    m.add_class::<lab::Results>()?;
    m.add_class::<lab::Token>()?;
    m.add_class::<Record>()?;
    m.add_class::<scheduler::view::Bio>()?;
    m.add_class::<scheduler::view::Cx>()?;
    m.add_class::<scheduler::view::Request>()?;
    m.add_class::<table::Table>()?;
    m.add_function(wrap_pyfunction!(calibrate::calibrate, m)?)?;
    m.add_function(wrap_pyfunction!(check::check, m)?)?;
    m.add_function(wrap_pyfunction!(explain::explain, m)?)?;
    m.add_function(wrap_pyfunction!(lab::arena, m)?)?;
    m.add_function(wrap_pyfunction!(lab::carry_out, m)?)?;
    m.add_function(wrap_pyfunction!(lab::check_experiment, m)?)?;
    m.add_function(wrap_pyfunction!(lab::experiment_text, m)?)?;
    m.add_function(wrap_pyfunction!(lab::read_results, m)?)?;
    m.add_function(wrap_pyfunction!(lab::run_json, m)?)?;
    m.add_function(wrap_pyfunction!(lists::devices, m)?)?;
    m.add_function(wrap_pyfunction!(lists::schedulers, m)?)?;
    m.add_function(wrap_pyfunction!(lists::workloads, m)?)?;
    m.add_function(wrap_pyfunction!(replay, m)?)?;
    m.add_function(wrap_pyfunction!(run, m)?)?;
    m.add_function(wrap_pyfunction!(run_spec, m)?)?;
    m.add_function(wrap_pyfunction!(check::devices::check_device, m)?)?;
    m.add_function(wrap_pyfunction!(device::register_device, m)?)?;
    m.add_function(wrap_pyfunction!(scheduler::register_scheduler, m)?)?;
    m.add_function(wrap_pyfunction!(workload::register_workload, m)?)?;
    m.add_function(wrap_pyfunction!(scheduler::watch::set_callback_limit, m)?)?;
    m.add_function(wrap_pyfunction!(t_quantile, m)?)?;
    m.add_function(wrap_pyfunction!(version, m)?)
}
