//! Errors as Python has them: the classes are of `seekwell._errors`, so that they can be documented
//! and caught there; the words are the binary's.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use seekwell::{Error, SpecErrors};
use seekwell_lab::experiment::Faults;

/// An exception of `seekwell._errors`, with its message and what it is about.
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

/// The first word that a remedy asks for: "did you mean `cfq` or `bfq`?" means `cfq`.
fn meant(said: &str) -> Option<&str> {
    let (_, question) = said.split_once("did you mean `")?;
    question.split_once('`').map(|q| q.0)
}

/// What was asked for cannot be.
pub fn input(message: &str) -> PyErr {
    exception("InputError", message, |kwargs| {
        kwargs.set_item("nearest", meant(message))
    })
}

/// The same of a file.
pub fn of_file(file: &str, message: &str) -> PyErr {
    exception("InputError", message, |kwargs| {
        kwargs.set_item("nearest", meant(message))?;
        kwargs.set_item("file", file)
    })
}

/// What came to pass while something ran.
pub fn run(message: &str) -> PyErr {
    exception("RunError", message, |_| Ok(()))
}

/// Results could not be kept or read.
pub fn store(path: &str, message: &str) -> PyErr {
    exception("StoreError", message, |kwargs| {
        kwargs.set_item("file", path)
    })
}

/// What is wrong with an experiment; `file`: where its text came from.
pub fn experiment(file: Option<&str>, faults: &Faults) -> PyErr {
    let lines = faults.0.iter().map(|f| match file {
        Some(name) => format!("{name}: {f}"),
        None => f.to_string(),
    });
    let message = lines.collect::<Vec<_>>().join("\n");
    exception("InputError", &message, |kwargs| {
        let first = faults.0.first();
        // Of a text that was made from a dict the lines are nobody's.
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

/// What is wrong with a word of a specification.
pub fn words(before: &str, e: &SpecErrors) -> PyErr {
    let nearest =
        e.0.iter()
            .find_map(|e| e.nearest.as_deref().or_else(|| meant(&e.what)));
    // Fields of the specification are not said: nobody typed those.
    let lines: Vec<String> = e.0.iter().map(|e| format!("{before}{}", e.what)).collect();
    exception("InputError", &lines.join("\n"), |kwargs| {
        kwargs.set_item("nearest", nearest)
    })
}

/// Why a run gave nothing.
pub fn of_run(e: &Error) -> PyErr {
    match e {
        Error::Spec(e) => words("", e),
        Error::Trace(what) => input(what),
        e => run(&e.to_string()),
    }
}

/// A property that does not hold.
pub fn check(message: &str, by: Option<PyErr>) -> PyErr {
    let e = exception("CheckError", message, |_| Ok(()));
    if let Some(by) = by {
        Python::attach(|py| e.set_cause(py, Some(by)));
    }
    e
}
