//! The cells of a table: the run with the first seed for each device, workload and scheduler. If a
//! run fails, or a signal stops it, the results of the other runs remain.

use crate::fail::Failure;
use crate::json::{document, trim};
use seekwell::Cancel;
use seekwell_core::prose::in_prose;
use seekwell_core::result::Record;
use seekwell_host::stop::{Signals, signal};
use seekwell_report::unfinished::Unfinished;
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Labels of a run.
pub struct Job {
    /// The scheduler as requested.
    pub label: String,
    /// The device as requested.
    pub device: String,
}

/// Result of a run.
#[derive(Clone)]
pub enum Cell {
    /// The run completed, or ended early for the given reason.
    Ran(Box<Record>, Option<String>),
    /// A signal stopped the run. Contains its measurements, if it had started, and the reason.
    Cut(Option<Box<Record>>, String),
    /// The run has no result, for the given reason.
    Failed(String),
}

/// All cells of the first seed, in the order of their jobs, and the state of the runs with other
/// seeds.
pub struct Cells {
    jobs: Vec<Job>,
    cells: Vec<Cell>,
    later: Later,
    signal: Option<i32>,
}

/// State of the runs with other seeds than the first.
#[derive(Clone, Default)]
pub struct Later {
    /// Number of runs that ended.
    pub ended: usize,
    /// Number of runs planned.
    pub of: usize,
    /// The reasons of failed runs.
    pub failed: Vec<String>,
}

/// Cells that are shown side by side.
#[derive(Default)]
pub struct Group {
    /// Completed runs, which are compared.
    pub records: Vec<Record>,
    /// Runs that failed or were stopped.
    pub rest: Vec<Unfinished>,
}

impl Group {
    /// Returns one record of the group, for facts about the workload.
    pub fn any(&self) -> Option<&Record> {
        let rest = self.rest.iter().filter_map(|u| u.record.as_ref());
        self.records.iter().chain(rest).next()
    }
}

/// Returns the failure of a command that a signal stopped after `done` of `all` parts of its work.
pub fn interrupted(signal: i32, done: usize, all: usize, what: &str) -> Failure {
    stopped(
        signal,
        &match done {
            0 => format!("none of {all} {what} finished"),
            n => format!("{n} of {all} {what} finished; their results are shown"),
        },
    )
}

/// Returns the failure of a command that a signal stopped; `kept` says which results are left.
pub fn stopped(signal: i32, kept: &str) -> Failure {
    let name = match signal {
        1 => "SIGHUP (the terminal is gone)",
        2 => "SIGINT (interrupted)",
        _ => "SIGTERM (terminated)",
    };
    Failure::Interrupted {
        signal,
        what: format!("stopped by {name}: {kept}"),
    }
}

/// Interval between checks for the second signal.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `act` while signals only set the flag that [`signal`] returns. A second signal ends the
/// program, because the user then does not want to wait for partial results.
pub fn catching<T>(act: impl FnOnce() -> T) -> Result<T, Failure> {
    cancelling(&Cancel::new(), act)
}

/// Like [`catching`]; the first signal also sets the token `cancel`.
pub fn cancelling<T>(cancel: &Cancel, act: impl FnOnce() -> T) -> Result<T, Failure> {
    let caught = Signals::catch();
    let caught = caught.map_err(|e| Failure::input(format!("signals cannot be caught: {e}")))?;
    let over = AtomicBool::new(false);
    Ok(std::thread::scope(|s| {
        let watch = s.spawn(|| {
            while !over.load(Ordering::Acquire) {
                if signal().is_some() {
                    cancel.set();
                    drop(caught);
                    return;
                }
                std::thread::park_timeout(LOOK);
            }
        });
        let _end = Ended(&over, watch.thread());
        act()
    }))
}

/// Ends the thread that watches for signals, also if the work panics.
struct Ended<'a>(&'a AtomicBool, &'a std::thread::Thread);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}

impl Cells {
    /// Makes the cells from the result of each job. Returns an error if all runs failed.
    pub fn new(jobs: Vec<Job>, cells: Vec<Cell>, later: Later) -> Result<Self, Failure> {
        let cut = cells.iter().any(|c| matches!(c, Cell::Cut(..))) || later.ended < later.of;
        let cells = Cells {
            jobs,
            cells,
            later,
            // A signal after the last run changes nothing.
            signal: signal().filter(|_| cut),
        };
        cells.something()?;
        Ok(cells)
    }

    /// Returns the first reason as an error, if every run failed.
    fn something(&self) -> Result<(), Failure> {
        let mut reasons: Vec<&str> = Vec::new();
        for c in &self.cells {
            match c {
                Cell::Failed(why) if !reasons.contains(&why.as_str()) => reasons.push(why),
                Cell::Failed(_) => {}
                _ => return Ok(()),
            }
        }
        match reasons[..] {
            [] => Ok(()),
            [one] => Err(Failure::input(one)),
            [first, ..] => Err(Failure::input(format!(
                "{first}\n(all {} runs failed, for different reasons: run them one by one)",
                self.cells.len()
            ))),
        }
    }

    /// Returns the cells of a range, separated into completed runs and the others.
    pub fn group(&self, range: Range<usize>) -> Group {
        let cells = self.cells.get(range.clone()).unwrap_or_default();
        let mut group = Group::default();
        for (c, job) in cells.iter().zip(&self.jobs[range]) {
            let (why, record) = match c {
                Cell::Ran(r, _) => {
                    group.records.push((**r).clone());
                    continue;
                }
                Cell::Cut(r, why) => (why, r.as_ref()),
                Cell::Failed(why) => (why, None),
            };
            group.rest.push(Unfinished {
                label: job.label.clone(),
                why: why.clone(),
                record: record.map(|r| (**r).clone()),
            });
        }
        group
    }

    /// Returns all cells as one JSON document; each `side_by_side` cells form a group.
    pub fn document(&self, command: &str, side_by_side: usize, series: bool) -> Value {
        let n = side_by_side.max(1);
        let groups =
            (0..self.cells.len().div_ceil(n)).map(|g| self.group(g * n..(g + 1) * n).records);
        let mut doc = document(command, groups.collect(), series);
        let rest = self.cells.iter().zip(&self.jobs).filter_map(|(c, job)| {
            let (record, why) = match c {
                Cell::Ran(..) => return None,
                Cell::Cut(r, why) => (r.as_deref(), why),
                Cell::Failed(why) => (None, why),
            };
            let record = record.cloned().map(|mut r| {
                trim(&mut r, series);
                r
            });
            Some(json!({
                "device": job.device, "scheduler": job.label, "why": why, "record": record,
            }))
        });
        let rest: Vec<Value> = rest.collect();
        if !rest.is_empty() {
            doc["unfinished"] = rest.into();
        }
        doc
    }

    /// Returns the outcome of the command; call this after the results are written.
    pub fn outcome(&self) -> Result<(), Failure> {
        self.broken()?;
        self.early(Record::censored)
    }

    /// Returns an error if one of the runs that `is` accepts ended early; the error names the
    /// first.
    fn early(&self, is: impl Fn(&Record) -> bool) -> Result<(), Failure> {
        let early = |(c, j): (&Cell, &Job)| match c {
            Cell::Ran(r, Some(why)) if is(r) => {
                let label = in_prose(&j.label);
                Some(format!("{} under {label}: {why}", r.workload))
            }
            _ => None,
        };
        match self.cells.iter().zip(&self.jobs).find_map(early) {
            Some(why) => Err(Failure::Early(why)),
            None => Ok(()),
        }
    }

    /// Like [`Cells::outcome`], for commands that compare runs at their limit. A run that reached
    /// its limit is then no failure.
    pub fn broken(&self) -> Result<(), Failure> {
        let ran = |c: &&Cell| matches!(c, Cell::Ran(..));
        let whole = self.cells.iter().filter(ran).count() + self.later.ended;
        let all = self.cells.len() + self.later.of;
        if let Some(signal) = self.signal {
            return Err(interrupted(signal, whole, all, "runs"));
        }
        let failed = |c: &Cell| match c {
            Cell::Failed(why) => Some(why.clone()),
            _ => None,
        };
        let mut reasons: Vec<String> = self.cells.iter().filter_map(failed).collect();
        reasons.extend(self.later.failed.iter().cloned());
        if let Some(first) = reasons.first() {
            let n = reasons.len();
            return Err(Failure::Early(format!(
                "{n} of {all} runs failed; the others are shown: {first}"
            )));
        }
        self.early(|r| !r.censored())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(n: usize) -> Vec<Job> {
        let job = |i| Job {
            label: format!("s{i}"),
            device: "d".to_owned(),
        };
        (0..n).map(job).collect()
    }

    fn cells(of: Vec<Cell>) -> Result<Cells, Failure> {
        Cells::new(jobs(of.len()), of, Later::default())
    }
    fn ran(early: Option<&str>) -> Cell {
        Cell::Ran(Box::default(), early.map(str::to_owned))
    }
    fn failed(why: &str) -> Cell {
        Cell::Failed(why.to_owned())
    }

    #[test]
    fn failed_run_keeps_the_other_cells() {
        let cells = cells(vec![
            ran(None),
            failed("no such thing"),
            failed("x"),
            ran(None),
        ]);
        let cells = cells.expect("two of four");
        let group = cells.group(0..4);
        assert_eq!((group.records.len(), group.rest.len()), (2, 2));
        assert_eq!(group.rest[0].why, "no such thing");
        let e = cells.outcome().expect_err("not whole");
        assert!(matches!(e, Failure::Early(_)), "{e}");
        assert_eq!(
            e.to_string(),
            "2 of 4 runs failed; the others are shown: no such thing"
        );
        let doc = cells.document("run", 4, false);
        assert_eq!(doc["records"].as_array().map(Vec::len), Some(2));
        assert_eq!(doc["unfinished"][0]["scheduler"], "s1");
    }

    #[test]
    fn failures_of_later_seeds_are_counted() {
        let later = Later {
            ended: 4,
            of: 4,
            failed: vec!["no space".to_owned()],
        };
        let cells = Cells::new(jobs(2), vec![ran(None), ran(None)], later);
        let e = cells.expect("they ran").outcome().expect_err("not whole");
        assert_eq!(
            e.to_string(),
            "1 of 6 runs failed; the others are shown: no space"
        );
    }

    #[test]
    fn input_is_rejected_if_every_run_fails() {
        let same = cells(vec![failed("bad 0"), failed("bad 0")]).err();
        let same = same.expect("nothing ran");
        assert!(matches!(same, Failure::Input(_)));
        assert_eq!(same.to_string(), "bad 0");
        let differ = cells(vec![failed("bad 0"), failed("bad 1"), failed("bad 2")]);
        let differ = differ.err().expect("nothing ran").to_string();
        assert!(differ.starts_with("bad 0\n(all 3 runs failed"), "{differ}");
    }

    #[test]
    fn run_that_ended_early_is_shown_with_the_others() {
        let cells = cells(vec![ran(None), ran(Some("disk full"))]).expect("it runs");
        assert_eq!(cells.group(0..2).records.len(), 2);
        let e = cells.outcome().expect_err("early").to_string();
        assert!(e.ends_with("under s1: disk full"), "{e}");
    }
}
