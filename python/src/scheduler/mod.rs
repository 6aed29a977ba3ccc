//! Schedulers that are written in Python, in the same registry as the built-in ones.
//!
//! The registry creates a scheduler with a plain function. Therefore each class has a slot with its
//! own functions. A class that is registered again under the same name uses the same slot; a
//! notebook does this often. Not supported: events of io contexts and cgroups, depth limits, and
//! merge lists of the scheduler itself (`bio_merge`).

mod bridge;
mod slots;
pub mod view;
pub mod watch;

use crate::fault;
use bridge::Bridge;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use seekwell_core::{Era, Rule};
use seekwell_sched::registry::hash_always;
use seekwell_sched::tunable::INT_MAX;
use seekwell_sched::{Kind, Layer, SchedulerInfo, Tunable, Waiting};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// A registered class.
pub struct Class {
    /// Name of the scheduler in the registry.
    pub name: String,
    /// The Python class.
    pub of: Py<PyAny>,
    /// The block layer of the scheduler.
    pub layer: Layer,
    /// Tunables of the scheduler.
    pub tunables: &'static [Tunable],
    /// Methods that the class itself defines.
    methods: BTreeSet<&'static str>,
}

impl Class {
    /// Returns whether the class itself defines this method.
    pub fn has(&self, method: &str) -> bool {
        self.methods.contains(method)
    }
}

/// Methods that are called only if the class defines them.
const OPTIONAL: &[&str] = &[
    "has_work",
    "find_front",
    "allow_merge",
    "merged",
    "former",
    "latter",
    "completed",
    "check",
    "state",
];

/// Returns the text with the lifetime of the process, as names in the registry need it.
pub fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Largest number of different rules. A scheduler has about a dozen.
const RULES_MAX: usize = 1000;

/// Returns the rule with this name. Creates the rule at the first call.
pub fn rule(name: &str) -> &'static Rule {
    static ALL: Mutex<BTreeMap<String, &'static Rule>> = Mutex::new(BTreeMap::new());
    static OTHER: Rule = Rule {
        id: "rule",
        kernel: "dispatch",
        says: "A rule of a scheduler in Python.",
    };
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(name) {
        return known;
    }
    if all.len() >= RULES_MAX {
        return &OTHER;
    }
    let made: &'static Rule = Box::leak(Box::new(Rule {
        id: kept(name.to_owned()),
        kernel: "dispatch",
        says: "A rule of a scheduler in Python.",
    }));
    all.insert(name.to_owned(), made);
    made
}

fn era(layer: Layer, kernel: &str) -> Option<Era> {
    Some(match (layer, kernel) {
        (Layer::Mq, "") => Era::Mq,
        (Layer::Legacy, "" | "4.0") => Era::K4_0,
        (Layer::Legacy, "3.4") => Era::K3_4,
        (Layer::Legacy, "2.6.24") => Era::K2_6_24,
        (Layer::Legacy, "2.6.18") => Era::K2_6_18,
        _ => return None,
    })
}

fn kind(text: &str) -> Option<Kind> {
    Some(match text {
        "ms" => Kind::Ms,
        "us" => Kind::Us,
        "ns" => Kind::Ns,
        "count" => Kind::Count,
        "bool" => Kind::Bool,
        _ => return None,
    })
}

fn tunable(name: &str, t: &Bound<'_, PyAny>) -> PyResult<Tunable> {
    let text = |field: &str| -> PyResult<String> { t.getattr(field)?.extract() };
    let own: String = text("name")?;
    let kind_name = text("kind")?;
    let kind = kind(&kind_name).ok_or_else(|| {
        let what = format!(
            "scheduler \"{name}\": tunable \"{own}\": no kind is called \"{kind_name}\"; there are \
             count, bool, ms, us, ns"
        );
        fault::input(&what)
    })?;
    let (min, max): (i64, i64) = (t.getattr("min")?.extract()?, t.getattr("max")?.extract()?);
    let default: i64 = t.getattr("default")?.extract()?;
    if !(min..=max).contains(&default) || min < i64::from(i32::MIN) || max > INT_MAX {
        let what = format!(
            "scheduler \"{name}\": tunable \"{own}\": {default} is not within {min}..={max}, or \
             those are not within 32 bits"
        );
        return Err(fault::input(&what));
    }
    Ok(Tunable {
        name: kept(own),
        kind,
        unit: kept(text("unit")?),
        default: kept(default.to_string()),
        min,
        max,
        help: kept(text("help")?),
    })
}

/// Registers a class, or replaces the class with the same name. Returns its name in the registry.
#[pyfunction]
pub fn register_scheduler(class: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = |field: &str| -> PyResult<String> { class.getattr(field)?.extract() };
    let (name, kernel) = (text("name")?, text("kernel")?);
    let layer = match &*text("layer")? {
        "blk-mq" => Layer::Mq,
        "single-queue" => Layer::Legacy,
        other => {
            let what = format!(
                "scheduler \"{name}\": no layer is called \"{other}\"; there are \"blk-mq\" and \
                 \"single-queue\""
            );
            return Err(fault::input(&what));
        }
    };
    let era = era(layer, &kernel).ok_or_else(|| {
        let what = format!(
            "scheduler \"{name}\": no kernel \"{kernel}\" of its layer; single-queue: 2.6.18, \
             2.6.24, 3.4, 4.0; blk-mq: none is named"
        );
        fault::input(&what)
    })?;
    let mut tunables = Vec::new();
    for t in class.getattr("tunables")?.try_iter()? {
        tunables.push(tunable(&name, &t?)?);
    }
    let base = class
        .py()
        .import("seekwell.scheduler")?
        .getattr("Scheduler")?;
    let mut methods = BTreeSet::new();
    for method in OPTIONAL {
        if !class.getattr(*method)?.is(&base.getattr(*method)?) {
            methods.insert(*method);
        }
    }
    let waiting = waiting(&class.getattr("waiting")?)?;
    let bound = Class {
        name: name.clone(),
        of: class.clone().unbind(),
        layer,
        tunables: Box::leak(tunables.into_boxed_slice()),
        methods,
    };
    let line = slots::Line {
        name: &name,
        layer,
        era,
        waiting,
    };
    slots::take(bound, &line, |functions| {
        let info = SchedulerInfo {
            name: kept(name.clone()),
            layer,
            versions: Box::leak(Box::new([("1", era)])),
            summary: kept(text("summary")?),
            history: "Written in Python and registered while the program runs.",
            not_when: "Speed matters: every call goes through the interpreter.",
            source: "a class of Python",
            per_process: false,
            hash: hash_always,
            waiting,
            rules: &[],
            tunables: functions.1,
            make: functions.0,
        };
        seekwell::register_scheduler(info).map_err(|e| fault::input(&e.to_string()))
    })?;
    Ok(name)
}

/// Returns the longest waiting time of a request that a class allows. An hour if the class sets
/// none.
fn waiting(said: &Bound<'_, PyAny>) -> PyResult<Waiting> {
    let mut w = Waiting {
        fixed_ms: 3_600_000,
        requests: 0,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 1_000_000,
        except: &[],
    };
    if said.is_none() {
        return Ok(w);
    }
    let said: &Bound<'_, PyDict> = said.cast().map_err(PyErr::from)?;
    w.fixed_ms = 0;
    for (name, value) in said {
        let (name, value): (String, u32) = (name.extract()?, value.extract()?);
        match &*name {
            "fixed_ms" => w.fixed_ms = value,
            "requests" => w.requests = value,
            "per_task_ms" => w.per_task_ms = value,
            "per_task_requests" => w.per_task_requests = value,
            other => {
                let what = format!(
                    "waiting: no \"{other}\"; there are fixed_ms, requests, per_task_ms, \
                     per_task_requests"
                );
                return Err(fault::input(&what));
            }
        }
    }
    Ok(w)
}

/// Runs work that may call Python. An exception in Python becomes the error.
///
/// # Errors
/// Returns the exception that Python raised, or a fault of the program.
pub fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    let done = quiet(work);
    match (done, watch::take()) {
        (Ok(done), None) => Ok(done),
        (_, Some(raised)) => Err(watch::as_error(raised)),
        (Err(panic), None) => Err(fault::run(&format!("internal error: {}", said(&*panic)))),
    }
}

/// Runs work. If it panics, nothing is printed.
pub fn quiet<T>(work: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(work))
}

/// Returns the message of a panic.
pub fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no words").to_owned()
}
