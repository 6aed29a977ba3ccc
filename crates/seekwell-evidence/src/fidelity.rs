//! Replays recorded decisions of every scheduler, and compares the decisions of the models with
//! them and with null models.

use seekwell_microscope::agree::{Tally, compare_null_models};
use seekwell_microscope::format::CsvOptions;
use seekwell_microscope::rounds::{Round, agreement};
use seekwell_microscope::{Agreement, Case, CaseError, read_cases, run};
use seekwell_sched::{SchedulerInfo, registry};
use std::path::{Path, PathBuf};

/// The result for one file of recorded decisions.
#[derive(Clone, Debug)]
pub struct Row {
    /// Scheduler and version.
    pub elevator: String,
    /// What made the decisions: the original's code, or a running kernel.
    pub recorded_from: &'static str,
    /// Number of cases.
    pub cases: usize,
    /// Number of cases in which all decisions are equal.
    pub identical: usize,
    /// Number of equal decisions.
    pub same: usize,
    /// Number of decisions.
    pub of: usize,
    /// Number of identical cases of the two null models: a FIFO, and another scheduler.
    pub null: [usize; 2],
}

fn of_rounds(cases: &[Case]) -> Result<Row, CaseError> {
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

fn of_lists(cases: &[Case]) -> Result<Row, CaseError> {
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

/// Replays the recorded decisions in the files of a directory. Returns `None` if there are no such
/// files.
///
/// # Errors
/// A file cannot be read, or a case in it is invalid.
pub fn replayed(dir: &Path) -> Result<Option<Vec<Row>>, CaseError> {
    let files = files(dir);
    let mut rows = Vec::new();
    for file in &files {
        let cases = read_cases(file, &CsvOptions::default())?;
        let Some(first) = cases.first() else { continue };
        rows.push(match first.events.is_empty() {
            true => of_lists(&cases)?,
            false => of_rounds(&cases)?,
        });
    }
    Ok((!files.is_empty()).then_some(rows))
}

/// Returns the schedulers without recorded decisions.
pub fn without_recordings(rows: &[Row]) -> Vec<&'static SchedulerInfo> {
    let held = |s: &&SchedulerInfo| rows.iter().any(|r| family(&r.elevator) == s.name);
    registry().iter().filter(|s| !held(s)).collect()
}

/// Returns the scheduler's name without its version.
fn family(elevator: &str) -> &'static str {
    seekwell_sched::find(elevator).map_or("", |f| f.0.name)
}
