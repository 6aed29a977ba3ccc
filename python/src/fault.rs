//! Errors as Python exceptions. Their classes are in `seekwell._errors`, so that users can read
//! about them and catch them. The messages are those of the binary.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use seekwell::{Error, SpecErrors};
use seekwell_lab::experiment::Faults;

/// Returns an exception of `seekwell._errors`, with a message and attributes.
fn exception(
    class: &str,
    message: &str,
    about: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
) -> PyErr {
    let made = Python::attach(|py| {
        let kwargs = PyDict::new(py);
        about(&kwargs)?;
        let class = py.import("seekwell._errors")?.getattr(class)?;
        let value = class.call((message,), Some(&kwargs))?;
        Ok(PyErr::from_value(value))
    });
    made.unwrap_or_else(|e: PyErr| e)
}

/// Returns the first suggestion of a message, for example `cfq` in "did you mean `cfq` or `bfq`?".
fn meant(said: &str) -> Option<&str> {
    let (_, question) = said.split_once("did you mean `")?;
    question.split_once('`').map(|q| q.0)
}

/// Returns an error for invalid input.
pub fn input(message: &str) -> PyErr {
    exception("InputError", message, |kwargs| {
        kwargs.set_item("nearest", meant(message))
    })
}

/// Returns an error for invalid input in a file.
pub fn of_file(file: &str, message: &str) -> PyErr {
    exception("InputError", message, |kwargs| {
        kwargs.set_item("nearest", meant(message))?;
        kwargs.set_item("file", file)
    })
}

/// Returns an error that happened during a run.
pub fn run(message: &str) -> PyErr {
    exception("RunError", message, |_| Ok(()))
}

/// Returns an error for results that could not be stored or read.
pub fn store(path: &str, message: &str) -> PyErr {
    exception("StoreError", message, |kwargs| {
        kwargs.set_item("file", path)
    })
}

/// Returns the faults of an experiment as an error. `file` is the file that the text came from, if
/// any.
pub fn experiment(file: Option<&str>, faults: &Faults) -> PyErr {
    let lines = faults.0.iter().map(|f| match file {
        Some(name) => format!("{name}: {f}"),
        None => f.to_string(),
    });
    let message = lines.collect::<Vec<_>>().join("\n");
    exception("InputError", &message, |kwargs| {
        let first = faults.0.first();
        // If the text was made from a dict, the line numbers mean nothing to the user.
        let line = first
            .map(|f| f.at.line)
            .filter(|n| *n > 0 && file.is_some());
        kwargs.set_item("file", file)?;
        kwargs.set_item("line", line)?;
        let nearest = first.and_then(|f| f.nearest.as_deref().or_else(|| meant(&f.what)));
        kwargs.set_item("nearest", nearest)?;
        let each = PyList::empty(kwargs.py());
        for f in &faults.0 {
            each.append((f.at.line, f.field.as_str(), f.what.as_str()))?;
        }
        kwargs.set_item("faults", each)
    })
}

/// Returns the faults of a part of a specification as an error.
pub fn words(before: &str, e: &SpecErrors) -> PyErr {
    let nearest =
        e.0.iter()
            .find_map(|e| e.nearest.as_deref().or_else(|| meant(&e.what)));
    // The names of specification fields are left out, because the user did not type them.
    let lines: Vec<String> = e.0.iter().map(|e| format!("{before}{}", e.what)).collect();
    exception("InputError", &lines.join("\n"), |kwargs| {
        kwargs.set_item("nearest", nearest)
    })
}

/// Returns the reason why a run has no result, as an error.
pub fn of_run(e: &Error) -> PyErr {
    match e {
        Error::Spec(e) => words("", e),
        Error::Trace(what) => input(what),
        e => run(&e.to_string()),
    }
}

/// Returns an error for a property that does not hold.
pub fn check(message: &str, by: Option<PyErr>) -> PyErr {
    let e = exception("CheckError", message, |_| Ok(()));
    if let Some(by) = by {
        Python::attach(|py| e.set_cause(py, Some(by)));
    }
    e
}
