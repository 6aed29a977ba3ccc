//! The cells of a table: each device, workload and scheduler one run. One that fails, or is stopped
//! by a signal, leaves what the others measured as it is.

use crate::fail::Failure;
use crate::json::{document, trim};
use crate::progress::Progress;
use seekwell_core::result::Record;
use seekwell_host::stop::{Signals, signal};
use seekwell_report::unfinished::Unfinished;
use seekwell_sim::compare::run_all;
use serde_json::{Value, json};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a run is called, and which others do the same work.
pub struct Job {
    /// The scheduler as it was asked for.
    pub label: String,
    /// The device, as it was asked for.
    pub device: String,
    /// Runs of the same kind do the same work.
    pub kind: usize,
}

/// A run's record, and how it ended early, if it did.
pub type Ran = (Record, Option<String>);

enum Cell {
    /// Through, or ended early by itself.
    Ran(Box<Record>, Option<String>),
    /// Stopped by a signal: what it had measured, if it had begun.
    Cut(Option<Box<Record>>, String),
    /// Gave nothing.
    Failed(String),
}

/// All cells, in the order of their jobs.
pub struct Cells {
    jobs: Vec<Job>,
    cells: Vec<Cell>,
    signal: Option<i32>,
}

/// Cells that stand side by side.
#[derive(Default)]
pub struct Group {
    /// To be compared.
    pub records: Vec<Record>,
    /// The others.
    pub rest: Vec<Unfinished>,
}

impl Group {
    /// A record that tells what ran where, if there is one.
    pub fn any(&self) -> Option<&Record> {
        let rest = self.rest.iter().filter_map(|u| u.record.as_ref());
        self.records.iter().chain(rest).next()
    }
}

/// What a signal makes of a command that had done some of what it was to do.
pub fn interrupted(signal: i32, done: usize, all: usize, what: &str) -> Failure {
    let name = match signal {
        1 => "SIGHUP (the terminal is gone)",
        2 => "SIGINT (interrupted)",
        _ => "SIGTERM (terminated)",
    };
    let kept = match done {
        0 => format!("none of {all} {what} was finished"),
        n => format!("{n} of {all} {what} were finished, and are given"),
    };
    Failure::Interrupted {
        signal,
        what: format!("stopped by {name}: {kept}"),
    }
}

/// How often the second signal is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `run` for each job, with a function that it tells its progress. The first signal stops all
/// that are under way and begins no more; the next ends the program.
pub fn run_cells(
    quiet: bool,
    threads: usize,
    jobs: Vec<Job>,
    run: impl Fn(usize, &mut dyn FnMut(u64, u64) -> bool) -> Result<Ran, Failure> + Sync,
) -> Result<Cells, Failure> {
    let kinds = jobs.iter().map(|j| j.kind + 1).max().unwrap_or(1);
    let progress = Progress::new(quiet, "runs", jobs.len(), kinds);
    let cells = catching(|| {
        run_all(jobs.len(), threads, |i| {
            if signal().is_some() {
                return Cell::Cut(None, "not begun".to_owned());
            }
            let mut task = progress.task(jobs[i].kind, &jobs[i].label);
            // A fault of ours in one run must not take the others' results with it.
            let ran = catch_unwind(AssertUnwindSafe(|| run(i, &mut |d, t| task.at(d, t))));
            match ran {
                Ok(Ok((r, why))) if task.refused() => Cell::Cut(
                    Some(Box::new(r)),
                    why.unwrap_or_else(|| "stopped".to_owned()),
                ),
                Ok(Ok((r, why))) => Cell::Ran(Box::new(r), why),
                Ok(Err(e)) if task.refused() => Cell::Cut(None, e.to_string()),
                Ok(Err(e)) => Cell::Failed(e.to_string()),
                Err(_) => Cell::Failed(format!(
                    "{} on {}: a fault of the program, told above; please report it",
                    jobs[i].label, jobs[i].device
                )),
            }
        })
    })?;
    drop(progress);
    let cut = cells.iter().any(|c| matches!(c, Cell::Cut(..)));
    let cells = Cells {
        jobs,
        cells,
        // One that came when all was done changes nothing.
        signal: signal().filter(|_| cut),
    };
    cells.something()?;
    Ok(cells)
}

/// Does something while signals only set a flag, [`signal`]. Whoever sends a second one does not
/// want to wait for what we make of the first.
pub fn catching<T>(act: impl FnOnce() -> T) -> Result<T, Failure> {
    let caught = Signals::catch();
    let caught = caught.map_err(|e| Failure::input(format!("signals cannot be caught: {e}")))?;
    let over = AtomicBool::new(false);
    Ok(std::thread::scope(|s| {
        let watch = s.spawn(|| {
            while !over.load(Ordering::Acquire) {
                if signal().is_some() {
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

/// Ends the watch, also when the work panics.
struct Ended<'a>(&'a AtomicBool, &'a std::thread::Thread);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}

impl Cells {
    /// If nothing ran and nothing was stopped, the command is refused with the first reason.
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
                "{first}\n(each of the {} runs failed; the others' reasons differ: run them one by \
                 one)",
                self.cells.len()
            ))),
        }
    }

    /// Those of a range, sorted into what can be compared and what not.
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

    /// The whole as one JSON document; so many cells stand side by side.
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

    /// What the runs make of the command, once what they gave is written.
    pub fn outcome(&self) -> Result<(), Failure> {
        let ran = |c: &&Cell| matches!(c, Cell::Ran(..));
        let (whole, all) = (self.cells.iter().filter(ran).count(), self.cells.len());
        if let Some(signal) = self.signal {
            return Err(interrupted(signal, whole, all, "runs"));
        }
        let failed = |c: &Cell| match c {
            Cell::Failed(why) => Some(why.clone()),
            _ => None,
        };
        let reasons: Vec<String> = self.cells.iter().filter_map(failed).collect();
        if let Some(first) = reasons.first() {
            let n = reasons.len();
            return Err(Failure::Early(format!(
                "{n} of {all} runs failed, the others are given: {first}"
            )));
        }
        let early = |(c, j): (&Cell, &Job)| match c {
            Cell::Ran(r, Some(why)) => Some(format!("{} under {}: {why}", r.workload, j.label)),
            _ => None,
        };
        match self.cells.iter().zip(&self.jobs).find_map(early) {
            Some(why) => Err(Failure::Early(why)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(n: usize) -> Vec<Job> {
        let job = |i| Job {
            label: format!("s{i}"),
            device: "d".to_owned(),
            kind: 0,
        };
        (0..n).map(job).collect()
    }

    #[test]
    fn one_that_fails_or_panics_leaves_the_others() {
        let cells = run_cells(true, 2, jobs(4), |i, _| match i {
            1 => Err(Failure::input("no such thing")),
            2 => panic!("planted"),
            _ => Ok((Record::default(), None)),
        });
        let cells = cells.expect("two of four");
        let group = cells.group(0..4);
        assert_eq!((group.records.len(), group.rest.len()), (2, 2));
        assert_eq!(group.rest[0].why, "no such thing");
        assert!(group.rest[1].why.contains("a fault of the program"));
        let e = cells.outcome().expect_err("not whole");
        assert!(matches!(e, Failure::Early(_)), "{e}");
        assert_eq!(
            e.to_string(),
            "2 of 4 runs failed, the others are given: no such thing"
        );
        let doc = cells.document("run", 4, false);
        assert_eq!(doc["records"].as_array().map(Vec::len), Some(2));
        assert_eq!(doc["unfinished"][0]["scheduler"], "s1");
    }

    #[test]
    fn where_all_fail_the_input_is_refused() {
        let all = |i| format!("bad {}", i / 9);
        let same = run_cells(true, 2, jobs(3), |i, _| Err(Failure::input(all(i))));
        let same = same.err().expect("nothing ran");
        assert!(matches!(same, Failure::Input(_)));
        assert_eq!(same.to_string(), "bad 0");
        let differ = run_cells(true, 2, jobs(3), |i, _| Err(Failure::input(all(9 * i))));
        let differ = differ.err().expect("nothing ran").to_string();
        assert!(
            differ.starts_with("bad 0\n(each of the 3 runs failed"),
            "{differ}"
        );
    }

    #[test]
    fn what_ended_early_by_itself_stands_among_the_others() {
        let cells = run_cells(true, 1, jobs(2), |i, _| {
            Ok((Record::default(), (i == 1).then(|| "disk full".to_owned())))
        });
        let cells = cells.expect("it runs");
        assert_eq!(cells.group(0..2).records.len(), 2);
        let e = cells.outcome().expect_err("early").to_string();
        assert!(e.ends_with("under s1: disk full"), "{e}");
    }
}
