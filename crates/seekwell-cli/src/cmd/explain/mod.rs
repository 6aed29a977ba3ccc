//! `seekwell explain FILE`: shows a scheduler's decisions step by step.

mod json;

use super::report::page_of_picture;
use crate::cells::{catching, interrupted};
use crate::cli::Explain;
use crate::fail::Failure;
use crate::out::{Out, note, width};
use crate::progress::Progress;
use anstream::adapter::strip_str;
use seekwell::words::{assignment, named};
use seekwell_core::once::Once;
use seekwell_host::stop::signal;
use seekwell_microscope::agree::{Beside, Tally, compare_null_models};
use seekwell_microscope::format::CsvOptions;
use seekwell_microscope::rounds::{self, NullScores, Replay, Round, RoundAgreement, Verdict};
use seekwell_microscope::{self as cases, Agreement, Case, CaseError, Outcome, read_cases};
use seekwell_report::plain::Plain;
use seekwell_report::{explain as report, plot};
use seekwell_sim::compare::run_all;
use serde_json::Value;
use std::path::Path;

/// The result of one case.
enum Done {
    /// The result of a request list. If the case contains a recording, also the agreement with that
    /// recording.
    List {
        out: Outcome,
        scored: Option<(Agreement, Vec<Beside>)>,
    },
    /// The result of a recorded blk-mq round.
    Round {
        round: Box<Round>,
        replay: Replay,
        verdict: Verdict,
        null: NullScores,
    },
}

impl Done {
    fn differs(&self) -> bool {
        match self {
            Done::List { scored, .. } => scored.as_ref().is_some_and(|s| !s.0.identical()),
            Done::Round { verdict, .. } => !verdict.identical() || !verdict.pools,
        }
    }
    fn decisions(&self) -> usize {
        match self {
            Done::List { out, .. } => out.dispatch.len(),
            Done::Round { replay, .. } => replay.dispatch.len(),
        }
    }
    fn csv(&self) -> String {
        match self {
            Done::List { out, .. } => report::csv(&out.dispatch, &out.timers),
            Done::Round { replay, .. } => report::csv(&replay.dispatch, &replay.timers),
        }
    }
}

fn run_case(case: &Case, steps: bool, with_null_models: bool) -> Result<Done, CaseError> {
    if !case.events.is_empty() {
        let round = Round::from_case(case)?;
        let replay = rounds::replay_named(&round, steps)?;
        return Ok(Done::Round {
            verdict: rounds::compare(&round, &replay),
            null: rounds::null_scores(&round)?,
            round: Box::new(round),
            replay,
        });
    }
    let out = cases::run(case, steps)?;
    let mut scored = None;
    if let Some(want) = case.expected()? {
        let timers = case.expected_timers();
        let agreement = Agreement::compare(&want, timers.as_deref(), &out);
        let null = if with_null_models {
            compare_null_models(case, &want)
        } else {
            Vec::new()
        };
        scored = Some((agreement, null));
    }
    Ok(Done::List { out, scored })
}

/// Returns the requested cases of the file, changed by the options.
fn select(a: &Explain, file: &Path) -> Result<Vec<Case>, Failure> {
    let mut csv = CsvOptions::default();
    if let Some(s) = &a.scheduler {
        named(s).map_err(|e| Failure::words("", &e))?;
        csv.elevator.clone_from(s);
    }
    let mut all = read_cases(file, &csv)?;
    if let Some(name) = &a.case {
        let known: Vec<_> = all.iter().map(|c| c.case.clone()).collect();
        all.retain(|c| c.case == *name);
        if all.is_empty() {
            let some: Vec<_> = known.iter().take(5).map(String::as_str).collect();
            let more = if known.len() > 5 { ", ..." } else { "" };
            return Err(Failure::input(format!(
                "{}: no case \"{name}\"; it has {} cases: {}{more}",
                file.display(),
                known.len(),
                some.join(", ")
            )));
        }
    }
    for case in &mut all {
        if let Some(s) = &a.scheduler
            && *s != case.elevator
        {
            *case = case.under(s);
        }
        if let Some(hz) = a.hz {
            case.hz = hz;
        }
        if let Some(depth) = a.depth {
            case.device.depth = depth;
        }
        if let Some(us) = a.service_us {
            case.device.service_us = us;
        }
        let chosen = named(&case.elevator).map_err(|e| Failure::words("", &e))?;
        let mut once = Once::default();
        for t in &a.tunable {
            let set = assignment(&chosen, t);
            let (name, value) = set.map_err(|e| Failure::words("", &e))?;
            let taken = once.take(&name, t);
            taken.map_err(|what| Failure::input(format!("--tunable {t}: {what}")))?;
            case.tunables.insert(name, Value::from(value));
        }
    }
    Ok(all)
}

/// The completed cases, and the reasons why other cases did not complete.
struct Ran {
    cases: Vec<Case>,
    done: Vec<Done>,
    asked: usize,
    failed: Vec<String>,
}

impl Ran {
    /// Returns an error if a case did not complete.
    fn outcome(&self) -> Result<(), Failure> {
        let n = self.done.len();
        if let Some(signal) = signal().filter(|_| n + self.failed.len() < self.asked) {
            return Err(interrupted(signal, n, self.asked, "cases"));
        }
        let Some((first, others)) = self.failed.split_first() else {
            return Ok(());
        };
        let more = match others.len() {
            0 => String::new(),
            n => format!(" (and {n} more)"),
        };
        Err(Failure::Early(format!(
            "{} of {} cases failed; the others are shown: {first}{more}",
            self.failed.len(),
            self.asked
        )))
    }
}

/// Runs all cases on all cores and returns the results in order. After a signal, no further case
/// starts. A failed case does not affect the others.
fn run_many(cases: Vec<Case>, null_models: bool, quiet: bool) -> Result<Ran, Failure> {
    let (asked, steps) = (cases.len(), cases.len() == 1);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let progress = Progress::new(quiet, "cases", asked, 1);
    let results = catching(|| {
        run_all(asked, threads, |i| {
            let _task = progress.task(0, &cases[i].case);
            let going = signal().is_none();
            going.then(|| run_case(&cases[i], steps, null_models))
        })
    })?;
    drop(progress);
    let mut ran = Ran {
        cases: Vec::new(),
        done: Vec::new(),
        asked,
        failed: Vec::new(),
    };
    let mut first = None;
    for (case, result) in cases.into_iter().zip(results) {
        match result {
            Some(Ok(done)) => {
                ran.cases.push(case);
                ran.done.push(done);
            }
            Some(Err(e)) => {
                ran.failed.push(e.to_string());
                first.get_or_insert(e);
            }
            None => {}
        }
    }
    match first {
        Some(e) if ran.done.is_empty() => Err(e.into()),
        _ => Ok(ran),
    }
}

/// Returns the HTML page of a case, with its picture and every step.
fn page(case: &Case, done: &Done) -> Result<Plain, Failure> {
    let steps = match done {
        Done::List { out, .. } => report::steps(case, &out.events, &out.left, usize::MAX)?,
        Done::Round { replay, .. } => report::steps(case, &replay.steps, &[], usize::MAX)?,
    };
    let heading = strip_str(&report::heading(case)).to_string();
    let mut lines = heading.lines().map(str::to_owned);
    Ok(Plain {
        kind: "a scheduler, step by step",
        title: lines.next().unwrap_or_default(),
        sentences: lines.collect(),
        picture: picture(case, done),
        steps: strip_str(&steps).to_string(),
        again: format!("seekwell explain FILE --case {}", case.case),
        ..Plain::default()
    })
}

fn picture(case: &Case, done: &Done) -> String {
    match done {
        Done::List { out, .. } => plot::explain(case, &out.events, &out.left),
        Done::Round { replay, .. } => plot::explain(case, &replay.steps, &[]),
    }
}

fn explain_case(out: &mut Out, case: &Case, a: &Explain) -> Result<Done, Failure> {
    let legend = a.legend;
    let done = run_case(case, true, true)?;
    if let Some(file) = &a.plot {
        Out::whole(file, &picture(case, &done))?;
    }
    if let Some(file) = &a.report {
        page_of_picture(file, &page(case, &done)?)?;
    }
    out.text(&report::heading(case))?;
    out.line("")?;
    match &done {
        Done::List { out: run, scored } => {
            out.text(&report::steps(case, &run.events, &run.left, width())?)?;
            if legend {
                out.line("")?;
                out.text(&report::legend(case, &run.events, width()))?;
            }
            if let (Some((_, null)), Some(want)) = (scored, case.expected()?) {
                out.line("")?;
                out.text(&report::agreement(case, &want, run, null)?)?;
            }
        }
        Done::Round {
            round,
            replay,
            verdict,
            null,
        } => {
            out.text(&report::steps(case, &replay.steps, &[], width())?)?;
            if legend {
                out.line("")?;
                out.text(&report::legend(case, &replay.steps, width()))?;
            }
            out.line("")?;
            out.text(&report::round(round, replay, verdict, null))?;
        }
    }
    Ok(done)
}

fn lists(out: &mut Out, cases: &[Case], all: &[Done]) -> Result<(), Failure> {
    let mut rows: Vec<(String, Tally)> = Vec::new();
    let mut add = |label: String, a: &Agreement| match rows.iter_mut().find(|r| r.0 == label) {
        Some(r) => r.1.add(a),
        None => {
            let mut t = Tally::default();
            t.add(a);
            rows.push((label, t));
        }
    };
    let mut differ = Vec::new();
    for (case, d) in cases.iter().zip(all) {
        let Done::List {
            scored: Some((agreement, null)),
            ..
        } = d
        else {
            continue;
        };
        add(format!("{} (this)", case.elevator), agreement);
        for b in null {
            add(format!("{} ({})", b.elevator, b.role), &b.agreement);
        }
        if !agreement.identical() {
            differ.push((case, agreement));
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    out.text(&report::summary(&rows))?;
    if !differ.is_empty() {
        out.line("Cases that differ from their recording (to see one: --case NAME):")?;
    }
    for (case, g) in differ {
        let timers = if g.timers == Some(false) {
            ", timers differ"
        } else {
            ""
        };
        out.line(&format!(
            "  {}: {} of {} decisions, first difference at {}{timers}",
            case.case,
            g.same,
            g.expected,
            g.prefix + 1
        ))?;
    }
    Ok(())
}

fn summary(out: &mut Out, file: &Path, cases: &[Case], all: &[Done]) -> Result<(), Failure> {
    let decided: usize = all.iter().map(Done::decisions).sum();
    out.line(&format!(
        "{}: {} cases, {} decisions",
        file.display(),
        cases.len(),
        seekwell_report::units::count(decided as u64)
    ))?;
    lists(out, cases, all)?;
    let (mut by_class, mut pools) = (RoundAgreement::default(), false);
    for d in all {
        if let Done::Round {
            round,
            verdict,
            null,
            ..
        } = d
        {
            by_class.add(round, verdict, null);
            pools |= round.pools.is_some();
        }
    }
    if !by_class.0.is_empty() {
        out.text(&report::rounds(&by_class, pools))?;
    }
    let silent = |d: &Done| matches!(d, Done::List { scored: None, .. });
    if all.iter().all(silent) {
        out.line(
            "No case contains a recorded dispatch order. To see the steps of a case: --case NAME.",
        )?;
    }
    Ok(())
}

/// Returns the rules of the requested scheduler, or of all schedulers.
fn rules(a: &Explain) -> Result<String, Failure> {
    let all = match &a.scheduler {
        Some(name) => vec![named(name).map_err(|e| Failure::words("", &e))?.info],
        None => seekwell_sched::registry().iter().collect(),
    };
    Ok(report::tables(all, width()))
}

/// Runs the cases and prints them in the requested form.
pub fn run(a: &Explain, quiet: bool) -> Result<(), Failure> {
    let mut out = Out::open(a.output.output.as_deref())?;
    let Some(file) = a.file.as_deref() else {
        out.text(&rules(a)?)?;
        return out.done();
    };
    Out::apart(a.output.output.as_deref(), [file])?;
    Out::apart(a.plot.as_deref(), [file])?;
    Out::check(a.report.as_deref())?;
    Out::apart(a.report.as_deref(), [file])?;
    let cases = select(a, file)?;
    if let (Some(_), [first, _, ..]) = (a.plot.as_ref().or(a.report.as_ref()), &cases[..]) {
        return Err(Failure::input(format!(
            "--plot draws one case and --report shows one, but {} has {}; choose one with --case \
             NAME ({}, ...)",
            file.display(),
            cases.len(),
            first.case
        )));
    }
    if let ([case], false) = (&cases[..], a.all || a.csv || a.json) {
        let done = explain_case(&mut out, case, a)?;
        out.done()?;
        return match a.strict && done.differs() {
            true => Err(Failure::Difference),
            false => Ok(()),
        };
    }
    let ran = run_many(cases, !a.csv, quiet)?;
    if a.csv {
        for d in &ran.done {
            out.text(&d.csv())?;
        }
    } else if a.json {
        out.json(&json::document(file, &ran.cases, &ran.done))?;
    } else {
        summary(&mut out, file, &ran.cases, &ran.done)?;
        if a.legend {
            out.text(&report::legends(&ran.cases, width()))?;
        }
        if !a.all {
            note(
                quiet,
                "the file has several cases; --case NAME shows the steps of one",
            );
        }
    }
    out.done()?;
    ran.outcome()?;
    if a.strict && ran.done.iter().any(Done::differs) {
        return Err(Failure::Difference);
    }
    Ok(())
}
