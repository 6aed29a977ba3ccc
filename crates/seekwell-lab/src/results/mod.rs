//! Results of an experiment: the comparisons, and the values of each run. The same form is used for
//! our own runs on every substrate and for imported figures.
//!
//! It holds only the numbers that statistics need. Histograms, series and events of a run stay in
//! its [`seekwell_core::result::Record`] and in the files of a results folder ([`Folder`]).

pub mod columns;
mod entry;
mod environment;
mod error;
pub mod export;
mod folder;
pub mod fuzz;
mod histograms;
mod hlog;
mod interned;
mod join;
mod journal;
mod listing;
mod pace;
mod plan;
mod reading;
mod rows;
mod tables;
mod throttled;

pub use entry::{Layer, OperationRow, QUANTILES, Series, SeriesRow};
pub use environment::{Environment, Sitting};
pub use error::StoreError;
pub use folder::{
    ENVIRONMENT, EXPERIMENT, EXPERIMENT_TEXT, Folder, HISTOGRAMS, JOURNAL, RESULTS, environment,
    read,
};
pub use histograms::{Buckets, histograms};
pub use interned::Interned;
pub use join::{Joined, join};
pub use listing::{Listed, State, is_folder, list, look};
pub use pace::{Busy, Moving, Pace, PaceOf, Paced, SECONDS_MIN, WarmUp, settle};
pub use reading::{batches, operations, records, series};
pub use throttled::Throttled;
pub(crate) use throttled::usec as throttled_usec;

use crate::conduct::DURATION;
use crate::stats::Until;
use seekwell_core::result::{Metric, Record, Starved};
use seekwell_core::spec::{RunSpec, Substrate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Version of stored results; it is raised when a field changes its meaning.
pub const RESULTS_VERSION: u32 = 1;

/// The results of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Description of the experiment, and how it is judged.
    pub about: About,
    /// Cells: device x workload x machine x parameter values.
    pub cells: Vec<Cell>,
    /// Schedulers with their settings.
    pub treatments: Vec<Treatment>,
    /// Runs in the order of cell, block and position in the block.
    pub runs: Vec<Run>,
    /// Imported figures with only a mean and a spread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summaries: Vec<Summary>,
}

/// Description of an experiment, and how it is judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Description in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How runs are repeated and judged.
    pub method: Method,
    /// Source of the figures: "experiment", or the format they were imported from.
    pub source: String,
    /// The blocks are known, so runs of one block form pairs. False for imports.
    pub paired: bool,
    /// Notes for the reader ("order unknown: drift cannot be excluded").
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The order of an experiment's runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Blocks with every treatment once, in random order.
    #[default]
    Interleaved,
    /// All runs of one treatment, then all runs of the next, as in most publications. It exists to
    /// show the damage that this order does.
    Sequential,
}

/// When a cell has enough repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopRule {
    /// When all intervals are narrow enough.
    #[default]
    Width,
    /// When the always-valid interval excludes 0 or lies inside the margin.
    Decided,
    /// After `repeats_max` blocks.
    Fixed,
}

/// How runs are repeated and judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// Relative difference that matters; 0.02 is 2 %.
    pub margin: f64,
    /// Two-sided error of intervals and tests (1 - confidence).
    pub alpha: f64,
    /// Blocks before the first look.
    pub repeats_min: u32,
    /// Largest number of blocks.
    pub repeats_max: u32,
    /// Relative half-width that ends a cell.
    pub target: f64,
    /// Alternatively, this fraction of the effect.
    pub fraction: f64,
    /// The rule that ends a cell.
    pub stop: StopRule,
    /// Order of runs.
    pub order: Order,
    /// Seed of the experiment. The order of runs and the runs' own seeds derive from it.
    pub seed: u64,
    /// Limit on wall-clock time, in seconds; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_s: Option<u64>,
    /// Seconds left out of each timed run; if absent, the first block determines them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_s: Option<f64>,
    /// The drive keeps its state from run to run.
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

/// Device x workload x machine x parameter values: where treatments are compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name, unique among the cells.
    pub name: String,
    /// Device, as tables print it.
    pub device: String,
    /// Workload, as tables print it.
    pub workload: String,
    /// Machine, as tables print it; empty for the default machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// Where the runs are made: "sim", "serve", "host" or "import".
    pub substrate: String,
    /// Values of the axes that the experiment varies, by name (`workload.clients`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub axes: BTreeMap<String, String>,
    /// The deciding metric.
    pub primary: MetricInfo,
    /// Further deciding metrics; each is judged as a row of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<MetricInfo>,
    /// Metrics without a row that must agree before the analysis says that nothing differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// Its treatments in printing order, as indices into [`Results::treatments`].
    pub treatments: Vec<usize>,
    /// The reference, as an index into [`Results::treatments`].
    pub reference: usize,
    /// How the cell ended; only for our own experiments.
    #[serde(default)]
    pub ended: CellEnd,
    /// The warm-up that its values leave out; `None` if its runs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Treatments during whose runs the host was busy with other work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<Busy>,
    /// Writeback throttling in the runs of its treatments; empty if unknown or not supported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<Throttled>,
}

/// How a cell ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellEnd {
    /// The cell did not end: it is imported or still running.
    #[default]
    Open,
    /// The intervals were narrow enough after this many blocks.
    Met(u32),
    /// It reached the largest number of blocks.
    Most(u32),
    /// The budget or a signal ended it after this many complete blocks.
    Cut(u32),
    /// Every run of this many first blocks failed, so the cell was given up.
    Failing(u32),
}

/// Description of a metric.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricInfo {
    /// Name ("transactions", "fsync p99").
    pub name: String,
    /// Unit.
    pub unit: String,
    /// True if larger is better.
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
    /// Kernel name; empty for an import that names something else.
    #[serde(default)]
    pub scheduler: String,
    /// Version.
    #[serde(default)]
    pub version: String,
    /// Tunables that were changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tunables: BTreeMap<String, String>,
}

/// Key of a run: unique in an experiment; stored data is sorted by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    /// Cell index.
    pub cell: usize,
    /// Block, from 0.
    pub block: u32,
    /// Treatment, as an index into [`Results::treatments`].
    pub treatment: usize,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It finished normally.
    #[default]
    Done,
    /// It ended early, but its values count (a limit); the text gives the reason.
    Early(String),
    /// It reached its limit before its work was done; the text gives the reason. Its metric is not
    /// known, only a lower bound of its time ([`Run::until`]).
    Censored(String),
    /// It has no result; the text gives the reason.
    Failed(String),
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its key.
    #[serde(flatten)]
    pub key: RunKey,
    /// Random position in the block, from 0.
    pub place: u32,
    /// Its seed.
    pub seed: u64,
    /// [`RunSpec::hash`] of its specification; empty for imports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spec_hash: String,
    /// How it ended.
    #[serde(default)]
    pub outcome: Outcome,
    /// Its values, the primary metric first. For a censored run, the values at its limit.
    pub values: Vec<Value>,
    /// Kinds of tasks with at least one starved task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starved: Vec<Starved>,
    /// Start time in ns since 1970; `None` in simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_unix_ns: Option<u64>,
    /// Duration of the run in its own time, in ns.
    #[serde(default)]
    pub duration_ns: u64,
    /// Share of processor time that other work took, 0 to 1. `None` if not known or simulated, and
    /// after the cell has used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
    /// Value of `queue/wbt_lat_usec` in us. `None` if not known or absent, and after the cell has
    /// used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wbt_lat_usec: Option<u64>,
    /// Its primary value per second. `None` after the warm-up has been removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
}

impl Results {
    /// Judges every cell that has one of these metrics by these metrics alone. If no run has a
    /// metric, the error contains that metric and the metrics that exist.
    ///
    /// # Errors
    /// A metric that no run has.
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
    /// The value of a metric, if the run counts.
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
    /// Whether the run reached its limit.
    pub fn censored(&self) -> bool {
        matches!(self.outcome, Outcome::Censored(_))
    }
    /// How long its work took; a lower bound at a limit. `None` if it failed or the time is
    /// unknown.
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
    /// Its value.
    pub value: f64,
    /// Number of operations behind the value; 0 if not known.
    #[serde(default)]
    pub n: u64,
}

/// A figure with only a mean and a spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Cell index.
    pub cell: usize,
    /// Treatment index.
    pub treatment: usize,
    /// The metric.
    pub metric: MetricInfo,
    /// Mean.
    pub mean: f64,
    /// Standard error, if known.
    pub se: Option<f64>,
    /// Standard deviation, if known.
    pub sd: Option<f64>,
    /// Number of runs.
    pub n: Option<u32>,
    /// Unit of the last published digit of the mean (0.01), if it was rounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_step: Option<f64>,
    /// Unit of the last published digit of its error.
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

/// A finished run for a store, which keeps the complete record or the failure.
pub struct Ended<'a> {
    /// Its values.
    pub run: &'a Run,
    /// Its specification.
    pub spec: &'a RunSpec,
    /// Its record; `None` if it failed.
    pub record: Option<&'a Record>,
}

/// Name of a substrate in results.
pub fn substrate(of: Substrate) -> String {
    of.name().to_owned()
}
