//! The data of an experiment: its method, cells and treatments, and the values of each run. The
//! same form is used for runs on every substrate and for imported results.
//!
//! It contains only the numbers that the statistics need. Histograms, series and events of a run
//! are in its [`seekwell_core::result::Record`] and in the files of a results folder
//! ([`crate::results`]).

mod interned;
mod pace;
mod throttled;

pub use interned::Interned;
pub use pace::{Busy, Moving, Pace, PaceOf, Paced, SECONDS_MIN, WarmUp, settle};
pub use throttled::Throttled;
pub(crate) use throttled::usec as throttled_usec;

use crate::stats::Until;
use seekwell_core::result::{Metric, Record, Starved};
use seekwell_core::spec::RunSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Name of the metric "time for the same work".
pub const DURATION: &str = "duration";

/// The results of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Description of the experiment, and the rules for its verdicts.
    pub about: About,
    /// The cells. A cell is a combination of device, workload, machine and parameter values.
    pub cells: Vec<Cell>,
    /// The schedulers with their settings.
    pub treatments: Vec<Treatment>,
    /// The runs, ordered by cell, block and treatment.
    pub runs: Vec<Run>,
    /// Imported results that have only a mean and a spread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summaries: Vec<Summary>,
}

/// Description of an experiment, and the rules for its verdicts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Name of the experiment.
    pub name: String,
    /// Description in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The rules for repetitions and verdicts.
    pub method: Method,
    /// Where the values come from: "experiment", or the format that they were imported from.
    pub source: String,
    /// True if the blocks are known, so that the runs of a block form pairs. False for imports.
    pub paired: bool,
    /// Notes for the reader, for example "order unknown: drift cannot be excluded".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The order of an experiment's runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// In blocks. A block contains every treatment once, in random order.
    #[default]
    Interleaved,
    /// All runs of one treatment, then all runs of the next treatment, as in most publications.
    /// This order exists only to show the errors that it causes.
    Sequential,
}

/// When a cell has enough repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopRule {
    /// When all confidence intervals are narrow enough.
    #[default]
    Width,
    /// When the interval that allows repeated looks excludes 0 or lies within the margin.
    Decided,
    /// When `repeats_max` blocks are finished.
    Fixed,
}

/// The rules for repetitions and verdicts of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// Relative difference that matters; 0.02 is 2 %.
    pub margin: f64,
    /// Two-sided error probability of intervals and tests (1 - confidence).
    pub alpha: f64,
    /// Number of blocks before the intervals are looked at for the first time.
    pub repeats_min: u32,
    /// Largest number of blocks.
    pub repeats_max: u32,
    /// Relative half-width of the intervals at which a cell has enough blocks.
    pub target: f64,
    /// Alternative to `target`: the half-width may be this fraction of the effect.
    pub fraction: f64,
    /// When a cell has enough blocks.
    pub stop: StopRule,
    /// Order of the runs.
    pub order: Order,
    /// Seed of the experiment. It determines the order of the runs and the seed of each run.
    pub seed: u64,
    /// Largest wall-clock time of the experiment, in s; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_s: Option<u64>,
    /// Warm-up that is left out of each timed run, in s; if absent, the first block determines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_s: Option<f64>,
    /// True if the drive keeps its state from one run to the next.
    #[serde(default)]
    pub carried: bool,
}

impl Default for Method {
    fn default() -> Self {
        Method {
            margin: crate::stats::MARGIN,
            alpha: crate::stats::ALPHA,
            repeats_min: 10,
            repeats_max: 60,
            target: 0.01,
            fraction: 0.25,
            stop: StopRule::Width,
            order: Order::Interleaved,
            seed: 1,
            budget_s: None,
            warmup_s: None,
            carried: false,
        }
    }
}

/// A cell: the device, workload, machine and parameter values with which treatments are compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the cell, unique among the cells.
    pub name: String,
    /// Name of the device as printed in tables.
    pub device: String,
    /// Name of the workload as printed in tables.
    pub workload: String,
    /// Name of the machine as printed in tables; empty for the default machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// Substrate of the runs: "sim", "serve", "host", "kernel" or "import".
    pub substrate: String,
    /// Values of the parameters that the experiment varies, by name, for example
    /// `workload.clients`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub axes: BTreeMap<String, String>,
    /// The deciding metric.
    pub primary: MetricInfo,
    /// Further deciding metrics. Each has its own row with a verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<MetricInfo>,
    /// Metrics without their own row. They must agree too before the analysis concludes that
    /// nothing differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// The treatments of the cell in printing order, as indices into [`Results::treatments`].
    pub treatments: Vec<usize>,
    /// Index of the reference in [`Results::treatments`].
    pub reference: usize,
    /// How the cell ended. It stays open for imports.
    #[serde(default)]
    pub ended: CellEnd,
    /// The warm-up that the values leave out; `None` if the runs have no warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Treatments with runs during which the host was busy with other work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<Busy>,
    /// Setting of writeback throttling for each treatment; empty if it is not known or not
    /// supported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<Throttled>,
}

impl Cell {
    /// Returns whether the runs were made in virtual time over a modelled disk. They then depend on
    /// their seeds only.
    pub fn virtual_time(&self) -> bool {
        matches!(self.substrate.as_str(), "sim" | "kernel")
    }
}

/// How a cell ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellEnd {
    /// The cell is still running, or it was imported.
    #[default]
    Open,
    /// The stopping rule was satisfied after this many blocks.
    Met(u32),
    /// The cell reached the largest number of blocks, which is this number.
    Most(u32),
    /// The budget or a signal ended the cell after this many complete blocks.
    Cut(u32),
    /// All runs of this many first blocks failed, so the cell was stopped.
    Failing(u32),
}

/// Description of a metric.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricInfo {
    /// Name of the metric, for example "transactions" or "fsync p99".
    pub name: String,
    /// Unit.
    pub unit: String,
    /// True if larger values are better.
    pub higher_is_better: bool,
    /// Step size, if the metric has whole steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
}

/// A scheduler with its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Treatment {
    /// Label in tables, unique among the treatments.
    pub label: String,
    /// Kernel name of the scheduler; empty for an import that compares something else.
    #[serde(default)]
    pub scheduler: String,
    /// Version of the scheduler.
    #[serde(default)]
    pub version: String,
    /// Tunables that were changed, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tunables: BTreeMap<String, String>,
}

/// The key of a run. It is unique in an experiment, and stored data is sorted by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    /// Index of the cell in [`Results::cells`].
    pub cell: usize,
    /// Block of the run, from 0.
    pub block: u32,
    /// Index of the treatment in [`Results::treatments`].
    pub treatment: usize,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The run finished normally.
    #[default]
    Done,
    /// The run ended early for this reason (for example a limit), but its values count.
    Early(String),
    /// The run reached its limit before its work was finished, for this reason. Its metric is not
    /// known. Only a lower bound of its time is known ([`Run::until`]).
    Censored(String),
    /// The run has no result, for this reason.
    Failed(String),
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Cell, block and treatment of the run.
    #[serde(flatten)]
    pub key: RunKey,
    /// Random position of the run in its block, from 0.
    pub place: u32,
    /// Seed of the run.
    pub seed: u64,
    /// [`RunSpec::hash`] of the specification; empty for imports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spec_hash: String,
    /// How the run ended.
    #[serde(default)]
    pub outcome: Outcome,
    /// The values of the run, the primary metric first. For a run that reached its limit, they are
    /// the values at that time.
    pub values: Vec<Value>,
    /// Kinds of tasks with at least one starved task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starved: Vec<Starved>,
    /// Start time in ns since 1970; `None` in a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_unix_ns: Option<u64>,
    /// Duration of the run in ns: simulated time in a simulation, otherwise real time.
    #[serde(default)]
    pub duration_ns: u64,
    /// Fraction of CPU time that other work took, 0 to 1. `None` if not known or simulated.
    /// [`settle`] moves it to [`Cell::busy`] and sets it to `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
    /// Value of `queue/wbt_lat_usec` in us; `None` if not known or not supported. [`settle`] moves
    /// it to [`Cell::throttled`] and sets it to `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wbt_lat_usec: Option<u64>,
    /// The primary value of each second. [`settle`] uses it to leave out the warm-up, and sets it
    /// to `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
}

impl Results {
    /// Makes these metrics the only deciding metrics of every cell that has one of them. If no run
    /// has one of the metrics, the error contains that metric and the names of the existing
    /// metrics.
    ///
    /// # Errors
    /// Returns an error if no run has one of the metrics.
    pub fn judged_by(&mut self, metrics: &[String]) -> Result<(), (String, Vec<String>)> {
        let mut found: Vec<Vec<MetricInfo>> = vec![Vec::new(); self.cells.len()];
        for metric in metrics {
            let (mut any, mut names) = (false, Vec::new());
            for run in &self.runs {
                for v in &run.values {
                    if !names.contains(&v.metric.name) {
                        names.push(v.metric.name.clone());
                    }
                    let own = found
                        .get_mut(run.key.cell)
                        .filter(|_| v.metric.name == *metric);
                    if let Some(own) = own {
                        any = true;
                        if own.iter().all(|m| m.name != *metric) {
                            own.push(MetricInfo::clone(&v.metric));
                        }
                    }
                }
            }
            if !any {
                return Err((metric.clone(), names));
            }
        }
        for (cell, found) in self.cells.iter_mut().zip(found) {
            let mut found = found.into_iter();
            if let Some(primary) = found.next() {
                (cell.primary, cell.rows) = (primary, found.collect());
                cell.checks.clear();
            }
        }
        Ok(())
    }
}

impl Run {
    /// Returns the value of a metric, or `None` if the run failed or reached its limit.
    pub fn value(&self, metric: &str) -> Option<f64> {
        match self.outcome {
            Outcome::Failed(_) | Outcome::Censored(_) => None,
            _ => self.find(metric),
        }
    }
    fn find(&self, metric: &str) -> Option<f64> {
        let mut all = self.values.iter();
        all.find(|v| v.metric.name == metric).map(|v| v.value)
    }
    /// Returns whether the run reached its limit.
    pub fn censored(&self) -> bool {
        matches!(self.outcome, Outcome::Censored(_))
    }
    /// Returns the duration of the work, or a lower bound if the run reached its limit. Returns
    /// `None` if the run failed or the time is not known.
    pub fn until(&self) -> Option<Until> {
        let known = !matches!(self.outcome, Outcome::Failed(_));
        let time_s = self.find(DURATION).filter(|t| known && *t > 0.0)?;
        Some(Until {
            time_s,
            censored: self.censored(),
        })
    }
}

/// The value of a metric in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The metric, shared by all runs ([`Interned`]).
    #[serde(flatten, with = "interned::one")]
    pub metric: Arc<MetricInfo>,
    /// The value of the metric in the run.
    pub value: f64,
    /// Number of operations that the value is based on; 0 if not known.
    #[serde(default)]
    pub n: u64,
}

/// An imported result that has only a mean and a spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the treatment.
    pub treatment: usize,
    /// The metric.
    pub metric: MetricInfo,
    /// Mean of the runs.
    pub mean: f64,
    /// Standard error of the mean, if known.
    pub se: Option<f64>,
    /// Standard deviation of the runs, if known.
    pub sd: Option<f64>,
    /// Number of runs, if known.
    pub n: Option<u32>,
    /// Unit of the last published digit of the mean, for example 0.01; `None` if it was not
    /// rounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_step: Option<f64>,
    /// Unit of the last published digit of the error; `None` if it was not rounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_step: Option<f64>,
}

impl From<&Metric> for MetricInfo {
    fn from(m: &Metric) -> Self {
        MetricInfo {
            name: m.name.clone(),
            unit: m.unit.clone(),
            higher_is_better: m.higher_is_better,
            step: None,
        }
    }
}

/// A finished run with everything that a store keeps of it.
pub struct Ended<'a> {
    /// The values of the run, or why it failed.
    pub run: &'a Run,
    /// The specification of the run.
    pub spec: &'a RunSpec,
    /// The complete record of the run; `None` if it failed.
    pub record: Option<&'a Record>,
}
