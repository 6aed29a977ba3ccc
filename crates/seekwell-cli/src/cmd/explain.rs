//! `seekwell explain FILE`: a scheduler under the microscope.

use crate::choose;
use crate::cli::Explain;
use crate::fail::Failure;
use crate::out::{Out, note};
use seekwell_report::explain as report;
use seekwell_sim::cases::agree::{Tally, beside};
use seekwell_sim::cases::format::CsvOptions;
use seekwell_sim::cases::{self, Agreement, Case, CaseError, Outcome, read_cases};
use serde_json::{Value, json};

/// What one case gave.
struct Done {
    out: Outcome,
    agreement: Option<Agreement>,
    beside: Vec<cases::agree::Beside>,
}

fn run_case(case: &Case, steps: bool, with_null_models: bool) -> Result<Done, CaseError> {
    let out = cases::run(case, steps)?;
    let mut done = Done {
        out,
        agreement: None,
        beside: Vec::new(),
    };
    if let Some(want) = case.expected()? {
        let timers = case.expected_timers();
        done.agreement = Some(Agreement::of(&want, timers.as_deref(), &done.out));
        if with_null_models {
            done.beside = beside(case, &want)?;
        }
    }
    Ok(done)
}

/// The cases of the file as the options want them run.
fn select(a: &Explain) -> Result<Vec<Case>, Failure> {
    let mut csv = CsvOptions::default();
    if let Some(s) = &a.scheduler {
        choose::scheduler(s)?;
        csv.elevator.clone_from(s);
    }
    let mut all = read_cases(&a.file, &csv)?;
    if let Some(name) = &a.case {
        let known: Vec<_> = all.iter().map(|c| c.case.clone()).collect();
        all.retain(|c| c.case == *name);
        if all.is_empty() {
            let some: Vec<_> = known.iter().take(5).map(String::as_str).collect();
            let more = if known.len() > 5 { ", ..." } else { "" };
            return Err(Failure::input(format!(
                "{}: no case `{name}`; it has {} cases: {}{more}",
                a.file.display(),
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
        let chosen = choose::scheduler(&case.elevator)?;
        for t in &a.tunable {
            let (name, value) = choose::tunable(&chosen, t)?;
            case.tunables.insert(name, Value::from(value));
        }
    }
    Ok(all)
}

/// Runs all cases on all cores; the results are in the order of the cases.
fn run_all(cases: &[Case], null_models: bool) -> Result<Vec<Done>, Failure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = cases.len().div_ceil(threads).max(1);
    let parts = std::thread::scope(|s| {
        let run = |part: &'_ [Case]| {
            let done = part.iter().map(|c| run_case(c, false, null_models));
            done.collect::<Result<Vec<_>, _>>()
        };
        let threads: Vec<_> = cases
            .chunks(share)
            .map(|p| s.spawn(move || run(p)))
            .collect();
        let joined = threads.into_iter().map(|t| match t.join() {
            Ok(r) => r,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect::<Result<Vec<_>, CaseError>>()
    })?;
    Ok(parts.into_iter().flatten().collect())
}

fn one(out: &mut Out, case: &Case) -> Result<Done, Failure> {
    let done = run_case(case, true, true)?;
    out.text(&report::heading(case))?;
    out.line("")?;
    out.text(&report::steps(case, &done.out)?)?;
    if let Some(want) = case.expected()? {
        out.line("")?;
        out.text(&report::agreement(case, &want, &done.out, &done.beside)?)?;
    }
    Ok(done)
}

fn summary(out: &mut Out, a: &Explain, cases: &[Case], all: &[Done]) -> Result<(), Failure> {
    let decided: usize = all.iter().map(|d| d.out.dispatch.len()).sum();
    out.line(&format!(
        "{}: {} cases, {} decisions",
        a.file.display(),
        cases.len(),
        seekwell_report::units::count(decided as u64)
    ))?;
    let mut rows: Vec<(String, Tally)> = Vec::new();
    let mut add = |label: String, a: &Agreement| match rows.iter_mut().find(|r| r.0 == label) {
        Some(r) => r.1.add(a),
        None => {
            let mut t = Tally::default();
            t.add(a);
            rows.push((label, t));
        }
    };
    for (case, d) in cases.iter().zip(all) {
        let Some(agreement) = &d.agreement else {
            continue;
        };
        add(format!("{} (this)", case.elevator), agreement);
        for (b, what) in d.beside.iter().zip(["a FIFO", "a wrong one"]) {
            add(format!("{} ({what})", b.elevator), &b.agreement);
        }
    }
    if rows.is_empty() {
        return out.line("No case carries a recorded dispatch order: see the steps with --case.");
    }
    out.text(&report::summary(&rows))?;
    let differ = |d: &Done| d.agreement.as_ref().is_some_and(|a| !a.identical());
    let names: Vec<_> = cases.iter().zip(all).filter(|c| differ(c.1)).collect();
    if !names.is_empty() {
        out.line("Cases that differ (see one with --case NAME):")?;
    }
    for (case, d) in names {
        let Some(g) = &d.agreement else { continue };
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

fn agreement_json(a: &Agreement) -> Value {
    json!({
        "identical": a.identical(), "expected": a.expected, "got": a.got, "same": a.same,
        "same_request": a.same_request, "before_first_difference": a.prefix,
        "longest_common_subsequence": a.lcs, "timers_identical": a.timers,
    })
}

fn as_json(case: &Case, d: &Done) -> Value {
    let dispatch = d.out.dispatch.iter().map(|(t, bios)| {
        json!({ "t_ns": t.since_start(), "ids": bios.iter().map(|b| b.0).collect::<Vec<_>>() })
    });
    let beside = d
        .beside
        .iter()
        .map(|b| json!({ "elevator": b.elevator, "agreement": agreement_json(&b.agreement) }));
    json!({
        "case": case.case,
        "elevator": case.elevator,
        "hz": case.hz,
        "dispatch": dispatch.collect::<Vec<_>>(),
        "timers_ns": d.out.timers.iter().map(|t| t.since_start()).collect::<Vec<_>>(),
        "left": d.out.left.iter().map(|b| b.0).collect::<Vec<_>>(),
        "agreement": d.agreement.as_ref().map(agreement_json),
        "beside": beside.collect::<Vec<_>>(),
    })
}

/// Runs the cases and prints them as asked.
pub fn run(a: &Explain, quiet: bool) -> Result<(), Failure> {
    let cases = select(a)?;
    let mut out = Out::open(a.output.output.as_deref())?;
    let mut all = Vec::new();
    if a.csv {
        all = run_all(&cases, false)?;
        for d in &all {
            out.text(&report::csv(&d.out))?;
        }
    } else if a.json {
        all = run_all(&cases, true)?;
        let list: Vec<_> = cases.iter().zip(&all).map(|(c, d)| as_json(c, d)).collect();
        out.json(&json!({ "schema": 1, "file": a.file.display().to_string(), "cases": list }))?;
    } else if let ([case], false) = (&cases[..], a.all) {
        all.push(one(&mut out, case)?);
    } else {
        all = run_all(&cases, true)?;
        summary(&mut out, a, &cases, &all)?;
        if !a.all {
            note(
                quiet,
                "several cases: see the steps of one with --case NAME",
            );
        }
    }
    out.done()?;
    let differs = |d: &Done| d.agreement.as_ref().is_some_and(|a| !a.identical());
    if a.strict && all.iter().any(differs) {
        return Err(Failure::Difference);
    }
    Ok(())
}
