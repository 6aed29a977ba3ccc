//! The interface for making runs. The simulator, real hosts and tests implement it.

use super::{Job, values};
use crate::data::{Outcome, Pace, Run, Value, throttled_usec};
use crate::experiment::Experiment;
use seekwell::{Cancel, Error, Hooks, Progress, Record, RunSpec};
use seekwell_core::prose::in_prose;
use seekwell_core::result::Starved;

/// Makes runs. Several threads may call it at the same time.
pub trait Runner: Sync {
    /// Makes one run. If the token is set, the run ends soon with [`NoRun::Cut`].
    ///
    /// # Errors
    /// Returns the reason if there is no result.
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
    /// The run failed for this reason, which the results contain.
    Failed(String),
    /// The run was stopped or not started, and will be made again. Holds the reason and what was
    /// measured until then.
    Cut(String, Option<Box<Record>>),
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The values of the run, the primary value first.
    pub values: Vec<Value>,
    /// Duration in ns.
    pub duration_ns: u64,
    /// Why the run ended early, if its values still count.
    pub early: Option<String>,
    /// True if the run reached its limit. Its values are then those of unfinished work.
    pub censored: bool,
    /// Kinds of tasks with at least one starved task.
    pub starved: Vec<Starved>,
    /// Start time in ns since 1970; `None` in a simulation.
    pub began_unix_ns: Option<u64>,
    /// Fraction of CPU time that other work took, 0 to 1; `None` if not known, or in a simulation.
    pub others: Option<f64>,
    /// The primary value of each second of a timed run.
    pub pace: Option<Pace>,
    /// The complete record of the run.
    pub record: Option<Box<Record>>,
}

impl Measured {
    /// Builds the result of a run from its record.
    pub fn from_record(record: Record) -> Self {
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

    /// Moves the values of the deciding metrics to the front, the primary value first.
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

/// The runner that simulates.
#[derive(Default)]
pub struct Simulated {
    traces: seekwell::Traces,
}

impl Simulated {
    /// Formats an error with the scheduler, device and workload of the run.
    fn error_text(spec: &RunSpec, e: &Error) -> String {
        let who = in_prose(&spec.scheduler_label());
        match e {
            // This error already names the trace file.
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
            Err(e) => Err(NoRun::Failed(Simulated::error_text(&job.spec, &e))),
            Ok(record) => Ok(ended(record, cancel)?),
        }
    }
}

/// Converts a record into a result. The record of a cancelled run is not a result.
///
/// # Errors
/// Returns [`NoRun::Cut`] if the run was cancelled.
pub fn ended(record: Record, cancel: &Cancel) -> Result<Measured, NoRun> {
    match &record.early {
        Some(early) if cancel.is_set() => {
            Err(NoRun::Cut(early.why.clone(), Some(Box::new(record))))
        }
        _ => Ok(Measured::from_record(record)),
    }
}
