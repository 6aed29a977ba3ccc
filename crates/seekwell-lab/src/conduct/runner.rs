//! The interface for making runs. The simulator, hosts and tests implement it.

use super::{Job, values};
use crate::experiment::Experiment;
use crate::results::{Outcome, Pace, Run, Value, throttled_usec};
use seekwell::{Cancel, Error, Hooks, Progress, Record, RunSpec};
use seekwell_core::result::Starved;

/// Makes runs; several threads may call it at once.
pub trait Runner: Sync {
    /// Makes one run. If the token is set, the run ends soon with [`NoRun::Cut`].
    ///
    /// # Errors
    /// The reason why there is no result.
    fn run(
        &self,
        job: &Job,
        cancel: &Cancel,
        told: &mut dyn FnMut(Progress),
    ) -> Result<Measured, NoRun>;
}

/// Why a run has no result.
#[derive(Clone, Debug)]
pub enum NoRun {
    /// It failed; the reason becomes a row.
    Failed(String),
    /// It was stopped or not started, and will be made again. Holds the reason and what was
    /// measured.
    Cut(String, Option<Box<Record>>),
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Its values, the primary first.
    pub values: Vec<Value>,
    /// Duration in ns.
    pub duration_ns: u64,
    /// The reason why it ended early, if it still counts.
    pub early: Option<String>,
    /// It reached its limit; its values are those of an unfinished run.
    pub censored: bool,
    /// Kinds of tasks with at least one starved task.
    pub starved: Vec<Starved>,
    /// Start time in ns since 1970; `None` in simulation.
    pub began_unix_ns: Option<u64>,
    /// Share of processor time that other work took, 0 to 1. `None` if not known or irrelevant
    /// (simulation).
    pub others: Option<f64>,
    /// The primary value per second, for a timed run.
    pub pace: Option<Pace>,
    /// The complete record.
    pub record: Option<Box<Record>>,
}

impl Measured {
    /// Builds the result from a record.
    pub fn of(record: Record) -> Self {
        Measured {
            values: values(&record),
            duration_ns: record.duration_ns,
            early: record.early.as_ref().map(|e| e.why.clone()),
            censored: record.censored(),
            starved: record.starved.clone(),
            began_unix_ns: None,
            others: None,
            pace: None,
            record: Some(Box::new(record)),
        }
    }

    /// Moves the deciding values to the front, if the run has them.
    pub(super) fn first(&mut self, experiment: &Experiment, job: &Job) {
        let Some(record) = &self.record else { return };
        let deciding = &experiment.cells[job.key.cell].deciding;
        let rows = deciding.rows.iter().rev();
        for row in rows.filter_map(|r| r.value(record, &job.spec.workload)) {
            self.values.retain(|v| v.metric.name != row.metric.name);
            self.values.insert(0, row);
        }
        let primary = &deciding.primary;
        if let Some(asked) = primary.value(record, &job.spec.workload) {
            self.values.retain(|v| v.metric.name != asked.metric.name);
            self.values.insert(0, asked);
            let paced = primary.paced(&job.spec.workload);
            self.pace = paced.and_then(|p| p.read(record));
        }
    }

    pub(super) fn into_run(self, job: &Job) -> (Run, Option<Box<Record>>) {
        let hash = self.record.as_ref().map(|r| r.spec_hash.clone());
        let run = Run {
            key: job.key,
            place: job.place,
            seed: job.spec.run_seed(),
            spec_hash: hash
                .filter(|h| !h.is_empty())
                .unwrap_or_else(|| job.spec.hash()),
            outcome: match self.early {
                None => Outcome::Done,
                Some(why) if self.censored => Outcome::Censored(why),
                Some(why) => Outcome::Early(why),
            },
            values: self.values,
            starved: self.starved,
            began_unix_ns: self.began_unix_ns,
            duration_ns: self.duration_ns,
            others: self.others,
            wbt_lat_usec: self.record.as_deref().and_then(throttled_usec),
            pace: self.pace,
        };
        (run, self.record)
    }
}

/// The simulator.
#[derive(Default)]
pub struct Simulated {
    traces: seekwell::Traces,
}

impl Simulated {
    /// Adds to an error which scheduler, device and workload it belongs to.
    fn of(spec: &RunSpec, e: &Error) -> String {
        let who = spec.scheduler_label();
        match e {
            // This error names the file itself.
            Error::Trace(_) => e.to_string(),
            _ => format!(
                "{} under {who} on {}: {e}",
                spec.workload.name(),
                spec.device.spec
            ),
        }
    }
}

impl Runner for Simulated {
    fn run(
        &self,
        job: &Job,
        cancel: &Cancel,
        told: &mut dyn FnMut(Progress),
    ) -> Result<Measured, NoRun> {
        let hooks = Hooks::default().progress(told).cancel(cancel);
        match self.traces.run(&job.spec, hooks) {
            Err(Error::NotBegun) => Err(NoRun::Cut("not begun".to_owned(), None)),
            Err(e) if cancel.is_set() => Err(NoRun::Cut(e.to_string(), None)),
            Err(e) => Err(NoRun::Failed(Simulated::of(&job.spec, &e))),
            Ok(record) => Ok(ended(record, cancel)?),
        }
    }
}

/// Converts a record into a result; a record cut short by cancellation is not a result.
///
/// # Errors
/// The run was cancelled.
pub fn ended(record: Record, cancel: &Cancel) -> Result<Measured, NoRun> {
    match &record.early {
        Some(early) if cancel.is_set() => {
            Err(NoRun::Cut(early.why.clone(), Some(Box::new(record))))
        }
        _ => Ok(Measured::of(record)),
    }
}
