//! Runs cases under a scheduler and returns its decisions.

use crate::table::{Table, ints, some_ints, some_texts, texts};
use crate::{fault, scheduler, work};
use pyo3::prelude::*;
use seekwell::{Cancel, words};
use seekwell_microscope::format::CsvOptions;
use seekwell_microscope::{Agreement, Case, Outcome, read_cases, run};
use serde_json::Value;
use std::path::PathBuf;

/// The result of one case under one scheduler: the dispatched requests, their times, and the
/// reasons.
#[pyclass(frozen, module = "seekwell")]
pub struct Explained {
    case: Case,
    of: Outcome,
    agreement: Option<Agreement>,
}

#[pymethods]
impl Explained {
    /// The name of the case.
    #[getter]
    fn case(&self) -> &str {
        &self.case.case
    }
    /// The scheduler under which the case ran.
    #[getter]
    fn scheduler(&self) -> &str {
        &self.case.elevator
    }
    /// Number of decisions in the recording of the case. None: the case has no recording.
    #[getter]
    fn expected(&self) -> Option<usize> {
        self.agreement.as_ref().map(|a| a.expected)
    }
    /// Number of recorded decisions that are the same: same request and same time.
    #[getter]
    fn same(&self) -> Option<usize> {
        self.agreement.as_ref().map(|a| a.same)
    }
    /// Whether all decisions are as recorded. None: the case has no recording.
    #[getter]
    fn identical(&self) -> Option<bool> {
        self.agreement.as_ref().map(Agreement::identical)
    }

    fn __repr__(&self) -> String {
        let (case, scheduler, n) = (&self.case.case, &self.case.elevator, self.of.dispatch.len());
        format!("<seekwell.Explained: {case} under {scheduler}: {n} decisions>")
    }

    /// One row per dispatched request. `time_ns` counts from the start of the case. `bios` contains
    /// the numbers of its bios, separated by blanks.
    fn dispatch(&self) -> PyResult<Table> {
        let all = &self.of.dispatch;
        let bios = |b: &[seekwell::sdk::core::BioId]| {
            let ids: Vec<String> = b.iter().map(|b| b.0.to_string()).collect();
            ids.join(" ")
        };
        Table::of(vec![
            ("time_ns", ints(all.iter().map(|d| d.0.since_start()))),
            ("bios", texts(all.iter().map(|d| bios(&d.1)))),
        ])
    }

    /// One row per event: the action, the rule that decided, and its reason. The last event of a
    /// step also has the state of the scheduler.
    fn events(&self) -> PyResult<Table> {
        let all = &self.of.events;
        Table::of(vec![
            (
                "time_ns",
                ints(all.iter().map(|s| s.event.at.since_start())),
            ),
            (
                "action",
                texts(all.iter().map(|s| s.event.action.letter().to_string())),
            ),
            (
                "request",
                some_ints(all.iter().map(|s| s.event.rq.map(|r| u64::from(r.0)))),
            ),
            (
                "rule",
                some_texts(all.iter().map(|s| s.event.rule.map(|r| r.id))),
            ),
            ("detail", texts(all.iter().map(|s| s.event.detail.as_str()))),
            ("state", some_texts(all.iter().map(|s| s.state.as_deref()))),
        ])
    }
}

/// Replaces the scheduler of a case. Keeps the tunables of the case that the other scheduler also
/// has.
fn as_recorded(case: &mut Case, scheduler: &str) -> PyResult<()> {
    let found = words::named(scheduler).map_err(|e| fault::words("", &e))?;
    let knows = |name: &str| {
        (found.info.tunables)(found.version)
            .iter()
            .any(|t| t.name == name)
    };
    scheduler.clone_into(&mut case.elevator);
    case.tunables.retain(|name, _| knows(name));
    case.input.retain(|row| {
        let word = |i: usize| row.get(i).and_then(Value::as_str);
        word(1) != Some("t") || word(2).is_some_and(knows)
    });
    Ok(())
}

/// Runs the cases of a file (request lists as CSV, or cases as JSON lines). They run under the
/// scheduler that they name, or under the given one.
#[pyfunction]
#[pyo3(signature = (file, scheduler, case, tunables, events, keep_tunables))]
pub fn explain(
    py: Python<'_>,
    file: PathBuf,
    scheduler: Option<String>,
    case: Option<String>,
    tunables: Vec<String>,
    events: bool,
    keep_tunables: bool,
) -> PyResult<Vec<Explained>> {
    let name = file.display().to_string();
    let mut csv = CsvOptions::default();
    if let Some(s) = &scheduler {
        words::named(s).map_err(|e| fault::words("", &e))?;
        csv.elevator.clone_from(s);
    }
    let told = |e: &dyn std::fmt::Display| fault::of_file(&name, &e.to_string());
    let mut all = read_cases(&file, &csv).map_err(|e| told(&e))?;
    if let Some(wanted) = &case {
        let known: Vec<String> = all.iter().map(|c| c.case.clone()).collect();
        all.retain(|c| c.case == *wanted);
        if all.is_empty() {
            let some = known.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
            let what = format!(
                "{name}: no case \"{wanted}\"; it has {}: {some}",
                known.len()
            );
            return Err(told(&what));
        }
    }
    for case in &mut all {
        if !case.events.is_empty() {
            let what = "it is a recorded blk-mq round: use `seekwell explain` on the command line";
            return Err(told(&format!("{name}: case {}: {what}", case.case)));
        }
        if let Some(s) = &scheduler
            && *s != case.elevator
        {
            match keep_tunables {
                true => as_recorded(case, s)?,
                false => *case = case.under(s),
            }
        }
        let chosen = words::named(&case.elevator).map_err(|e| fault::words("", &e))?;
        for t in &tunables {
            let (name, value) = words::assignment(&chosen, t).map_err(|e| fault::words("", &e))?;
            case.tunables.insert(name, Value::from(value));
        }
    }
    let cancel = Cancel::new();
    let token = cancel.clone();
    work::interruptible(py, &cancel, move || {
        let mut out = Vec::new();
        for case in all {
            if token.is_set() {
                break;
            }
            let ran = scheduler::guarded(|| run(&case, events))?;
            let of = ran.map_err(|e| fault::input(&e.to_string()))?;
            let want = case.expected().map_err(|e| fault::input(&e.to_string()))?;
            let timers = case.expected_timers();
            let agreement = want.map(|w| Agreement::compare(&w, timers.as_deref(), &of));
            out.push(Explained {
                case,
                of,
                agreement,
            });
        }
        Ok(out)
    })?
}
