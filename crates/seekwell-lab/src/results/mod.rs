//! Results of an experiment: what was compared with what, and the numbers each run gave. One form
//! for our own runs, on every substrate, and for figures that were made elsewhere.
//!
//! Only numbers that statistics are made of are here; histograms, series and events of a run stay
//! in its [`seekwell_core::result::Record`] and in the files of a results folder ([`Folder`]).

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

/// Version of results as they are stored; raised when a field changes its meaning.
pub const RESULTS_VERSION: u32 = 1;

/// Everything that one experiment gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// What it was, and how it is judged.
    pub about: About,
    /// Cells: device x workload x machine x parameter values.
    pub cells: Vec<Cell>,
    /// Schedulers with their settings.
    pub treatments: Vec<Treatment>,
    /// Runs in the order of cell, block and place in the block.
    pub runs: Vec<Run>,
    /// Figures of which only mean and spread are known: imported ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summaries: Vec<Summary>,
}

/// What an experiment was, and how it is judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Its name.
    pub name: String,
    /// In a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How runs are repeated and judged.
    pub method: Method,
    /// Where the figures come from: "experiment", or the format they were imported from.
    pub source: String,
    /// The blocks are known, so that runs of one block are pairs. Not so for imports.
    pub paired: bool,
    /// What to keep in mind ("order unknown: drift cannot be excluded").
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// In which order the runs of an experiment are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// In blocks, every treatment once, in random order.
    #[default]
    Interleaved,
    /// All runs of one treatment, then all of the next: as most publications had it, so that the
    /// damage can be shown.
    Sequential,
}

/// When a cell has been repeated often enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopRule {
    /// When all intervals are narrow enough.
    #[default]
    Width,
    /// When the always-valid interval lies outside 0 or inside the margin.
    Decided,
    /// After `repeats_max` blocks.
    Fixed,
}

/// How runs are repeated and judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// Relative difference that matters, 0.02 is 2 %.
    pub margin: f64,
    /// Two-sided error of intervals and tests (1 - confidence).
    pub alpha: f64,
    /// Blocks before the first look.
    pub repeats_min: u32,
    /// Blocks at most.
    pub repeats_max: u32,
    /// Half-width that ends a cell, relative.
    pub target: f64,
    /// Or that share of the effect.
    pub fraction: f64,
    /// Which rule ends a cell.
    pub stop: StopRule,
    /// Order of runs.
    pub order: Order,
    /// Seed of the experiment: the order of runs, and the runs' own seeds by block.
    pub seed: u64,
    /// Wall time at most, seconds; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_s: Option<u64>,
    /// Seconds of a timed run that are left out; absent: found from the first block and frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_s: Option<f64>,
    /// The drive goes on from run to run as the last one left it.
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
    /// What it is called, unique among the cells.
    pub name: String,
    /// The device, as tables call it.
    pub device: String,
    /// The workload, as tables call it.
    pub workload: String,
    /// The machine, as tables call it; empty: the usual one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// Where it runs: "sim", "serve", "host" or "import".
    pub substrate: String,
    /// Values of the axes that the experiment varies, by name (`workload.clients`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub axes: BTreeMap<String, String>,
    /// The metric that decides.
    pub primary: MetricInfo,
    /// Other metrics that decide, each judged as a row of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<MetricInfo>,
    /// Metrics that are no rows, and must agree all the same before it is said that nothing differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// Its treatments, by place in [`Results::treatments`], in the order they are printed in.
    pub treatments: Vec<usize>,
    /// The one the others are compared with, by place in [`Results::treatments`].
    pub reference: usize,
    /// How it ended, for an experiment of ours.
    #[serde(default)]
    pub ended: CellEnd,
    /// What its values leave out at the start of timed runs; `None`: its runs have no warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Treatments of whose runs the host was busy with something else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<Busy>,
    /// Writeback throttling as the runs of its treatments had it; empty: not known, or of a layer
    /// without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<Throttled>,
}

/// How a cell ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellEnd {
    /// Not by the lab's doing: an import, or one that goes on.
    #[default]
    Open,
    /// The intervals were narrow enough after so many blocks.
    Met(u32),
    /// At the largest number of blocks.
    Most(u32),
    /// The budget or a signal ended it, after so many whole blocks.
    Cut(u32),
    /// Every run of its first so many blocks failed: it was given up.
    Failing(u32),
}

/// What a metric is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricInfo {
    /// Name ("transactions", "fsync p99").
    pub name: String,
    /// Unit.
    pub unit: String,
    /// Larger is better.
    pub higher_is_better: bool,
    /// It comes in whole steps of that size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
}

/// A scheduler with what was set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Treatment {
    /// What tables call it, unique among the treatments.
    pub label: String,
    /// Kernel name; empty for an import that names something else.
    #[serde(default)]
    pub scheduler: String,
    /// Version.
    #[serde(default)]
    pub version: String,
    /// Tunables that were set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tunables: BTreeMap<String, String>,
}

/// Which run: unique in an experiment, and the order of everything stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    /// Cell, by place.
    pub cell: usize,
    /// Block, from 0.
    pub block: u32,
    /// Treatment, by place in [`Results::treatments`].
    pub treatment: usize,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Through.
    #[default]
    Done,
    /// Ended early in a way that its values count nevertheless (a limit): why.
    Early(String),
    /// Reached its limit before its work was done: why. Its metric is not known, only that the work
    /// takes longer ([`Run::until`]).
    Censored(String),
    /// Gave nothing: why.
    Failed(String),
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Which.
    #[serde(flatten)]
    pub key: RunKey,
    /// Place inside the block, from 0, as drawn.
    pub place: u32,
    /// Seed it ran with.
    pub seed: u64,
    /// [`RunSpec::hash`] of its specification; empty for imports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spec_hash: String,
    /// How it ended.
    #[serde(default)]
    pub outcome: Outcome,
    /// What it measured: the primary metric first. Of a censored run: what it had until its limit.
    pub values: Vec<Value>,
    /// Kinds of tasks of which some were starved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starved: Vec<Starved>,
    /// When it began on the wall clock, ns since 1970; `None` in simulation, where it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_unix_ns: Option<u64>,
    /// The run's own duration, ns.
    #[serde(default)]
    pub duration_ns: u64,
    /// Share of the processors' time that others took meanwhile, 0 to 1, until its cell is judged by
    /// it; `None`: not known, or simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
    /// What `queue/wbt_lat_usec` read, us, until its cell says it; `None`: not known, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wbt_lat_usec: Option<u64>,
    /// Seconds of its primary value, until the warm-up of its cell is known and left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
}

impl Results {
    /// Judges every cell that has one of these metrics by them alone. `Err`: no run has this one; the
    /// names that runs have.
    ///
    /// # Errors
    /// A metric that no run gives.
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
    /// A metric's value, if the run counts.
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
    /// Did it reach its limit?
    pub fn censored(&self) -> bool {
        matches!(self.outcome, Outcome::Censored(_))
    }
    /// How long its work took, or takes at least; `None`: it failed, or the time is not known.
    pub fn until(&self) -> Option<Until> {
        let known = !matches!(self.outcome, Outcome::Failed(_));
        let time_s = self.find(DURATION).filter(|t| known && *t > 0.0)?;
        Some(Until {
            time_s,
            censored: self.censored(),
        })
    }
}

/// A metric of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// Which: one for all runs that have it ([`Interned`]).
    #[serde(flatten, with = "interned::one")]
    pub metric: Arc<MetricInfo>,
    /// Its value.
    pub value: f64,
    /// Operations behind it; 0: not known.
    #[serde(default)]
    pub n: u64,
}

/// A figure of which only mean and spread are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Cell, by place.
    pub cell: usize,
    /// Treatment, by place.
    pub treatment: usize,
    /// Which metric.
    pub metric: MetricInfo,
    /// Mean.
    pub mean: f64,
    /// Standard error, if it is known.
    pub se: Option<f64>,
    /// Standard deviation, if it is known.
    pub sd: Option<f64>,
    /// Runs behind it.
    pub n: Option<u32>,
    /// Unit of the last digit that the mean was published with (0.01), where it was rounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_step: Option<f64>,
    /// The same of its error.
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

/// What a store is told of a run that ended: it keeps the whole record, or the failure.
pub struct Ended<'a> {
    /// Its numbers.
    pub run: &'a Run,
    /// What was asked for.
    pub spec: &'a RunSpec,
    /// What it gave; `None`: it failed.
    pub record: Option<&'a Record>,
}

/// Name of a substrate in results.
pub fn substrate(of: Substrate) -> String {
    of.name().to_owned()
}
