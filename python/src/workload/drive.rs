//! Runs a coroutine. The coroutine yields a call and gets the result of the call.

use super::Class;
use super::call::{Answer, Call, carry_out};
use crate::scheduler::watch;
use pyo3::exceptions::{PyOSError, PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use rand::RngCore;
use seekwell::sdk::workload::{Errno, Fail, Machine, Mark, Note, Outcome};
use seekwell_core::{Instant, Nanos};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Largest number of different words (kinds of operations, units). A script has about a dozen.
const WORDS_MAX: usize = 4096;

/// Returns the text with the lifetime of the process.
fn word(text: &str) -> &'static str {
    static ALL: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(text) {
        return known;
    }
    if all.len() >= WORDS_MAX {
        return "other";
    }
    let new: &'static str = Box::leak(text.to_owned().into_boxed_str());
    all.insert(new);
    new
}

/// The result of running a coroutine until it makes a call.
enum Step {
    Asks(Call),
    Done,
    Failed(Fail),
}

/// A task: its machine and its coroutine.
struct Task {
    class: Arc<Class>,
    machine: Py<PyAny>,
    run: Py<PyAny>,
}

impl Task {
    /// Sends the result of a call to the coroutine, and runs it to its next call.
    fn step(&self, now_ns: u64, answer: Result<Answer, Fail>) -> (Step, Vec<Note>) {
        let stepped = Python::attach(|py| -> PyResult<(Step, Vec<Note>)> {
            let _call = watch::enter(py);
            let (machine, run) = (self.machine.bind(py), self.run.bind(py));
            machine.setattr("now_ns", now_ns)?;
            let came = match answer {
                Ok(answer) => run.call_method1("send", (answer.into_python(py)?,)),
                Err(fail) => {
                    let e = PyOSError::new_err((fail.errno.0, fail.what));
                    run.call_method1("throw", (e.into_value(py),))
                }
            };
            let step = match came {
                Ok(asked) => Step::Asks(Call::of(&asked)?),
                Err(e) if e.is_instance_of::<PyStopIteration>(py) => Step::Done,
                Err(e) if e.is_instance_of::<PyOSError>(py) => self.failed(py, e)?,
                Err(e) => return Err(e),
            };
            Ok((step, notes(machine)?))
        });
        stepped.unwrap_or_else(|e| {
            let what = watch::words(&self.class.name, "run", &e);
            watch::fail("WorkloadError", what, e)
        })
    }

    /// Handles an exception that the script did not catch. It ends the run.
    fn failed(&self, py: Python<'_>, e: PyErr) -> PyResult<Step> {
        let errno: Option<i64> = e.value(py).getattr("errno")?.extract()?;
        match errno {
            Some(n) => Ok(Step::Failed(Fail {
                what: watch::words(&self.class.name, "run", &e),
                errno: Errno(n),
            })),
            None => Err(e),
        }
    }
}

/// Returns the notes for the measurement that the script made since the last call.
fn notes(machine: &Bound<'_, PyAny>) -> PyResult<Vec<Note>> {
    let all = machine.getattr("_notes")?;
    let all: &Bound<'_, PyList> = all.cast()?;
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let told = all.iter().map(|n| note(&n)).collect();
    all.call_method0("clear")?;
    told
}

fn note(of: &Bound<'_, PyAny>) -> PyResult<Note> {
    let at = |ns: u64| Instant::START + Nanos(ns);
    let of: &Bound<'_, PyTuple> = of.cast()?;
    let text = |i: usize| -> PyResult<String> { of.get_item(i)?.extract() };
    let int = |i: usize| -> PyResult<u64> { of.get_item(i)?.extract() };
    Ok(match &*text(0)? {
        "op" => Note::Op {
            kind: word(&text(1)?),
            start: at(int(2)?),
            end: at(int(3)?),
            bytes: int(4)?,
        },
        "clock start" => Note::Mark(at(int(1)?), Mark::ClockStart),
        "clock stop" => Note::Mark(at(int(1)?), Mark::ClockStop),
        "phase" => Note::Mark(at(int(1)?), Mark::Phase(word(&text(2)?))),
        "counts" => Note::Counts(word(&text(1)?)),
        "metric" => Note::Metric {
            name: Cow::Owned(text(1)?),
            unit: word(&text(2)?),
            value: of.get_item(3)?.extract()?,
            higher_is_better: of.get_item(4)?.is_truthy()?,
        },
        other => return Err(PyValueError::new_err(format!("no note is called {other}"))),
    })
}

/// Runs a coroutine to its end.
pub async fn drive<M: Machine>(
    m: &mut M,
    class: Arc<Class>,
    machine: Py<PyAny>,
    run: Py<PyAny>,
) -> Outcome {
    let seed = m.rng().next_u64();
    Python::attach(|py| {
        // Setting this attribute cannot fail.
        let _ = machine.setattr(py, "_seed", seed);
    });
    let task = Task {
        class: class.clone(),
        machine,
        run,
    };
    let mut answer = Ok(Answer::Nothing);
    loop {
        let now = m.now().since_start();
        let (step, notes) = task.step(now, std::mem::replace(&mut answer, Ok(Answer::Nothing)));
        for note in notes {
            m.note(note);
        }
        match step {
            Step::Asks(call) => answer = carry_out(m, &class, call).await,
            Step::Done => return Ok(()),
            Step::Failed(fail) => return Err(fail),
        }
    }
}
