//! Replays recorded decisions of every scheduler, for `seekwell verify-kernel --recorded`.

use crate::fail::Failure;
use seekwell_lab::referee::SCHEDULERS;
use seekwell_microscope::agree::{Tally, compare_null_models};
use seekwell_microscope::format::CsvOptions;
use seekwell_microscope::rounds::{Round, agreement};
use seekwell_microscope::{Agreement, Case, read_cases, run};
use seekwell_report::units::share;
use seekwell_sched::{Layer, registry};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The result for one file of recorded decisions.
struct Row {
    /// Scheduler and version.
    elevator: String,
    recorded_from: &'static str,
    cases: usize,
    identical: usize,
    same: usize,
    of: usize,
    /// Number of identical cases of the two null models: a FIFO, and another scheduler.
    null: [usize; 2],
}

fn of_rounds(cases: &[Case]) -> Result<Row, Failure> {
    let rounds: Vec<Round> = cases
        .iter()
        .map(Round::from_case)
        .collect::<Result<_, _>>()?;
    let all = agreement(&rounds)?.over(|_| true);
    Ok(Row {
        elevator: cases[0].elevator.clone(),
        recorded_from: "a running kernel",
        cases: all.rounds,
        identical: all.identical,
        same: all.same,
        of: all.positions,
        null: [all.fifo, all.clook],
    })
}

fn of_lists(cases: &[Case]) -> Result<Row, Failure> {
    let mut tally = Tally::default();
    let mut null = [0, 0];
    for case in cases {
        let Some(want) = case.expected()? else {
            continue;
        };
        let out = run(case, false)?;
        let timers = case.expected_timers();
        tally.add(&Agreement::compare(&want, timers.as_deref(), &out));
        for (n, b) in null.iter_mut().zip(compare_null_models(case, &want)) {
            *n += usize::from(b.agreement.identical());
        }
    }
    Ok(Row {
        elevator: cases[0].elevator.clone(),
        recorded_from: "the original's code",
        cases: tally.cases,
        identical: tally.identical,
        same: tally.same,
        of: tally.expected,
        null,
    })
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for dir in [dir.to_owned(), dir.join("mq")] {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        all.extend(entries.map(|e| e.path()).filter(|p| {
            let name = p.file_name().unwrap_or_default().to_string_lossy();
            name.contains(".jsonl")
        }));
    }
    all.sort();
    all
}

/// Returns the section about recorded decisions, in Markdown.
pub fn section(dir: &Path) -> Result<String, Failure> {
    let files = files(dir);
    if files.is_empty() {
        return Err(Failure::input(format!(
            "{}: holds no recorded decisions (NAME.jsonl, NAME.jsonl.zst)",
            dir.display()
        )));
    }
    let mut rows = Vec::new();
    for file in &files {
        let cases = read_cases(file, &CsvOptions::default())?;
        let Some(first) = cases.first() else { continue };
        rows.push(match first.events.is_empty() {
            true => of_lists(&cases)?,
            false => of_rounds(&cases)?,
        });
    }
    let mut out = "## Comparison with recorded decisions\n\n\
        Each row is one file of recorded decisions. The file holds the requests that the original\n\
        code, or a running kernel, dispatched for seeded lists of requests. Seekwell replays the\n\
        same lists. *Identical* counts the lists that are equal from first to last, including the\n\
        times if the recording has them. *Same decisions* counts single decisions. The last two\n\
        columns are null models: the number of identical lists under a FIFO and under a wrong\n\
        scheduler. For recordings of a running kernel the wrong scheduler is one-way sweeps.\n\n\
        | scheduler | recorded from | lists | identical | same decisions | a FIFO | a wrong one |\n\
        |---|---|---:|---:|---:|---:|---:|\n"
        .to_owned();
    let mut held = BTreeSet::new();
    for r in &rows {
        held.insert(family(&r.elevator));
        out += &format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            r.elevator,
            r.recorded_from,
            r.cases,
            r.identical,
            share(r.same as u64, r.of as u64),
            r.null[0],
            r.null[1]
        );
    }
    let others = registry().iter().filter(|s| !held.contains(s.name));
    let others: Vec<String> = others
        .map(|s| {
            let layer = match s.layer {
                Layer::Legacy => "single queue",
                Layer::Mq => "blk-mq",
            };
            format!("{} ({layer})", s.name)
        })
        .collect();
    if !others.is_empty() {
        out += &format!(
            "\nThese schedulers have no recordings and are checked against worked examples only: \
             {}.\n",
            others.join(", ")
        );
    }
    out += &format!(
        "\nThe next section compares {} with the running kernel, decision by decision.\n",
        SCHEDULERS.join(", ")
    );
    Ok(out)
}

/// Returns the scheduler's name without its version.
fn family(elevator: &str) -> &'static str {
    seekwell_sched::find(elevator).map_or("", |f| f.0.name)
}
