//! Seekwell for Python: the extension module `seekwell._seekwell`, which the package `seekwell`
//! uses.
//!
//! This crate contains only what cannot be written in Python: the conversion of values, the release
//! of the interpreter's lock during a run, Ctrl-C, and the interfaces for schedulers, devices and
//! workloads in Python. Everything else is in the Python package.

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

// The project's own property tests, for a scheduler or a device that is written in Python.
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

/// Runs a specification. Keeps at most `most_events` events.
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

/// Runs a workload once.
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

/// Replays a trace once.
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

/// Runs a specification that is given as the text of a TOML file with all fields.
#[pyfunction]
fn run_spec(py: Python<'_>, text: &str, most_events: Option<usize>) -> PyResult<Record> {
    let spec = RunSpec::from_toml(text).map_err(|e| fault::words("", &e))?;
    simulate(py, &spec, most_events)
}

/// The version of the program, and a description of its build.
#[pyfunction]
fn version() -> (&'static str, &'static str) {
    (env!("CARGO_PKG_VERSION"), seekwell::result::BUILD)
}

/// Quantile of Student's t distribution, as the lab computes it for its intervals.
#[pyfunction]
fn t_quantile(p: f64, df: f64) -> f64 {
    seekwell_lab::stats::t_quantile(p, df)
}

/// The extension module of the package `seekwell`.
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
