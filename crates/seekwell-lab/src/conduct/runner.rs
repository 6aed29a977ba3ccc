//! What makes a run: a door for the simulator, a host, and tests that need neither.

use super::{Job, values};
use crate::experiment::Experiment;
use crate::results::{Outcome, Pace, Run, Value, throttled_usec};
use seekwell::{Cancel, Error, Hooks, Progress, Record, RunSpec};
use seekwell_core::result::Starved;

/// Makes runs, several at a time.
pub trait Runner: Sync {
    /// Makes one. When the token is set it ends soon, with [`NoRun::Cut`].
    ///
    /// # Errors
    /// Why there is no run.
    fn run(
        &self,
        job: &Job,
        cancel: &Cancel,
        told: &mut dyn FnMut(Progress),
    ) -> Result<Measured, NoRun>;
}

/// Why there is no run.
#[derive(Clone, Debug)]
pub enum NoRun {
    /// It failed: a row with the reason.
    Failed(String),
    /// It was stopped, or not begun: it will be made again. Why, and what it had measured.
    Cut(String, Option<Box<Record>>),
}

/// What a run gave.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Its numbers, the primary first.
    pub values: Vec<Value>,
    /// Its duration, ns.
    pub duration_ns: u64,
    /// It ended early, and counts nevertheless: why.
    pub early: Option<String>,
    /// It ended at its limit: its values are those of an unfinished run.
    pub censored: bool,
    /// Kinds of tasks of which some were starved.
    pub starved: Vec<Starved>,
    /// When it began on the wall clock, ns since 1970; `None` in simulation.
    pub began_unix_ns: Option<u64>,
    /// Share of the processors' time that others took, 0 to 1; `None`: not known, or nothing that
    /// matters (simulation).
    pub others: Option<f64>,
    /// Seconds of the primary value, of a timed run.
    pub pace: Option<Pace>,
    /// All of it.
    pub record: Option<Box<Record>>,
}

impl Measured {
    /// Of a record.
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

    /// Puts the numbers first that decide, as far as the run has them.
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
    /// Says of whom an error is.
    fn of(spec: &RunSpec, e: &Error) -> String {
        let who = spec.scheduler_label();
        match e {
            // It names the file itself.
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

/// A record that ended early because it was cancelled is no run.
///
/// # Errors
/// That it was cut.
pub fn ended(record: Record, cancel: &Cancel) -> Result<Measured, NoRun> {
    match &record.early {
        Some(early) if cancel.is_set() => {
            Err(NoRun::Cut(early.why.clone(), Some(Box::new(record))))
        }
        _ => Ok(Measured::of(record)),
    }
}
