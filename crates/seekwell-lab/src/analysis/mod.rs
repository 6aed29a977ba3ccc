//! From results to what may be said of them: per cell and comparison the effect, its interval and
//! the verdict; flags; the overview of an experiment.
//!
//! The primary comparisons are those with the reference, corrected over all of the experiment. All
//! pairs are computed from the same data, corrected over all pairs of the experiment: who is ahead
//! of everybody is a question that looks at all of them. Other metrics are a family of their own.
//! The numbers are rounded to 12 digits, so that equal results give equal bytes on every machine.

mod cells;
mod comparison;
mod flags;
mod order;
mod overview;
pub mod single;
mod unpaired;
mod weights;
mod words;

pub use comparison::{AtLimit, Comparison, Test};
pub use flags::Flag;
pub use order::{ColumnOrder, column_order};
pub use overview::{Group, Score};
pub use weights::{Switch, Weights};
pub use words::{effect, half_width, may_still_happen, percent, round, size, span};

use crate::results::{Cell, CellEnd, Method, MetricInfo, Results, WarmUp};
use crate::stats::{self, Better};
use serde::{Deserialize, Serialize};

/// Version of the analysis as it is written; raised when a field changes its meaning.
pub const ANALYSIS_VERSION: u32 = 1;

/// What may be said of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// [`ANALYSIS_VERSION`].
    pub version: u32,
    /// How it was repeated and is judged.
    pub method: Method,
    /// Labels of the treatments, by place.
    pub treatments: Vec<String>,
    /// Primary comparisons that were tested, over all cells.
    pub comparisons: usize,
    /// By cell and row.
    pub cells: Vec<CellAnalysis>,
    /// Cells of one device and machine together, with all their rows.
    pub groups: Vec<Group>,
}

/// What may be said of one metric of a cell that decides: a row. Most cells have one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellAnalysis {
    /// The cell, by place in [`Results::cells`].
    #[serde(default)]
    pub cell: usize,
    /// Which of its rows, from 0.
    #[serde(default)]
    pub row: usize,
    /// How many rows it has.
    #[serde(default = "one_row")]
    pub rows: usize,
    /// Its name.
    pub name: String,
    /// Device, as tables call it.
    pub device: String,
    /// Workload, as tables call it.
    pub workload: String,
    /// Machine; empty: the usual one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The metric that decides.
    pub metric: MetricInfo,
    /// The reference, by place of the treatment.
    pub reference: usize,
    /// Blocks with at least one run.
    pub blocks: usize,
    /// How it ended.
    pub ended: CellEnd,
    /// No run depends on its seed: one number each, exactly.
    pub exact: bool,
    /// Each treatment on its own.
    pub sides: Vec<Side>,
    /// Each with the reference.
    pub comparisons: Vec<Comparison>,
    /// Each with each other, in the order of the cell's treatments.
    pub pairs: Vec<Comparison>,
    /// The treatment with the best mean, by place.
    pub best: Option<usize>,
    /// The one that is shown to be ahead of every other.
    pub winner: Option<usize>,
    /// Those that none is shown to be ahead of.
    pub not_beaten: Vec<usize>,
    /// All pairs are shown to differ by less than the margin.
    pub level: bool,
    /// Least relative difference from the reference that so many blocks see in four cases of five.
    pub visible: Option<f64>,
    /// What its values leave out at the start of timed runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Metrics that are no rows, and must agree all the same before it is said that nothing differs;
    /// of the first row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Signs of noise.
    pub flags: Vec<Flag>,
    /// Other metrics, each treatment with the reference.
    pub secondary: Vec<Secondary>,
    /// The answer in a sentence.
    pub sentence: String,
}

fn one_row() -> usize {
    1
}

/// A metric that must agree before it is said that nothing differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Which.
    pub metric: MetricInfo,
    /// Treatment, by place, with the geometric mean of its blocks.
    pub values: Vec<(usize, f64)>,
}

impl Check {
    /// How many times worse than the best a treatment is, and who is the best.
    pub fn behind(&self, treatment: usize) -> Option<(f64, usize)> {
        let sign = better(&self.metric).sign();
        let own = self.values.iter().find(|v| v.0 == treatment)?.1;
        let best = self.values.iter().copied();
        let best = best.reduce(|a, b| if sign * b.1 > sign * a.1 { b } else { a })?;
        let times = libm::exp(sign * (libm::log(best.1) - libm::log(own)));
        Some((times, best.0))
    }
    /// How far apart the best and the worst are, times.
    fn spread(&self) -> f64 {
        let behind = |v: &(usize, f64)| self.behind(v.0).map_or(1.0, |b| b.0);
        self.values.iter().map(behind).fold(1.0, f64::max)
    }
}

/// A treatment in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Which, by place.
    pub treatment: usize,
    /// Runs with a value.
    pub n: usize,
    /// Runs that failed.
    pub failed: usize,
    /// Runs that reached their limit; such a side has no mean and no spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<Longer>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Geometric mean, where all values are positive.
    pub geometric_mean: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// Standard deviation of the runs.
    pub sd: Option<f64>,
    /// Standard error of the mean.
    pub se: Option<f64>,
    /// 95 % interval of the mean.
    pub interval95: Option<(f64, f64)>,
    /// Operations behind a value, at least; `None`: not known.
    pub operations: Option<u64>,
    /// Value of each block.
    pub values: Vec<Option<f64>>,
}

/// Runs of a side that reached their limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Longer {
    /// How many.
    pub runs: usize,
    /// Of so many.
    pub of: usize,
    /// Their work takes longer than this, s: the shortest time until a limit.
    pub than_s: f64,
}

/// Another metric of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Secondary {
    /// Which.
    pub metric: MetricInfo,
    /// Each treatment with the reference, corrected over all secondary comparisons.
    pub comparisons: Vec<Comparison>,
}

impl Analysis {
    /// The rows of a cell of the results.
    pub fn rows(&self, cell: usize) -> impl Iterator<Item = &CellAnalysis> {
        self.cells.iter().filter(move |c| c.cell == cell)
    }
    /// The cells of the results that a group's rows were measured in; a cell of several rows comes
    /// several times.
    pub fn measured<'a>(
        &self,
        results: &'a Results,
        group: &Group,
    ) -> impl Iterator<Item = &'a Cell> {
        let rows = group.cells.iter().filter_map(|i| self.cells.get(*i));
        rows.filter_map(|row| results.cells.get(row.cell))
    }
}

impl CellAnalysis {
    /// A name that no other row has: the cell, and the metric in all rows but the first.
    pub fn id(&self) -> String {
        match self.row {
            0 => self.name.clone(),
            _ => format!("{}, {}", self.name, self.metric.name),
        }
    }
    /// What its row is called: the workload, and the metric where the cell has several rows.
    pub fn title(&self) -> String {
        match self.rows {
            0 | 1 => self.workload.clone(),
            _ => format!("{}, {}", self.workload, self.metric.name),
        }
    }
    /// Which direction of its metric is good.
    pub fn better(&self) -> Better {
        better(&self.metric)
    }
    /// The comparison of two of its treatments, as it was made; the second is true where `one` is
    /// the other of it.
    pub fn pair(&self, one: usize, other: usize) -> Option<(&Comparison, bool)> {
        self.pairs.iter().find_map(|p| match (p.one, p.other) {
            pair if pair == (one, other) => Some((p, false)),
            pair if pair == (other, one) => Some((p, true)),
            _ => None,
        })
    }
    /// How many times better `one` is than `other`, with the interval that decides.
    pub fn times(&self, one: usize, other: usize) -> Option<(f64, Option<(f64, f64)>)> {
        let (pair, turned) = self.pair(one, other)?;
        let better = self.better();
        let (times, ends) = (pair.times_better(better)?, pair.better_deciding(better));
        Some(match turned {
            false => (times, ends),
            true => (1.0 / times, ends.map(|(l, h)| (1.0 / h, 1.0 / l))),
        })
    }
    /// Who is ahead.
    pub fn ahead(&self) -> Ahead {
        let Some(best) = self.best else {
            return Ahead::Open;
        };
        let level = |t: usize| t == best || self.pair(best, t).is_some_and(|(p, _)| p.near());
        let there = self.sides.iter();
        let there = there.filter(|s| s.n > 0 || s.censored.is_some());
        let (near, others): (Vec<usize>, Vec<usize>) =
            there.map(|s| s.treatment).partition(|t| level(*t));
        match others.iter().any(|t| self.beats(best, *t)) {
            _ if others.is_empty() => Ahead::Level,
            true => Ahead::Who(near),
            false => Ahead::Open,
        }
    }
    /// Is `one` shown to be ahead of `other`?
    pub fn beats(&self, one: usize, other: usize) -> bool {
        self.pair(one, other).is_some_and(|(p, turned)| {
            let ahead = p.mean.is_some_and(|m| m * self.better().sign() > 0.0);
            p.verdict.claims() && !p.level() && ahead != turned
        })
    }
}

/// Who is ahead in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// These treatments, level with each other.
    Who(Vec<usize>),
    /// All are level.
    Level,
    /// It is not decided, or there is nothing to decide by.
    Open,
}

fn better(metric: &MetricInfo) -> Better {
    match metric.higher_is_better {
        true => Better::Higher,
        false => Better::Lower,
    }
}

/// Analyses results; over several workloads all count alike.
pub fn analyse(results: &Results) -> Analysis {
    analyse_weighted(results, &Weights::default())
}

/// Analyses results; over several workloads each counts with its weight.
pub fn analyse_weighted(results: &Results, weights: &Weights) -> Analysis {
    let method = &results.about.method;
    let mut cells = cells::all(results);
    let primary = corrected(cells.iter_mut().map(|c| &mut c.comparisons).collect());
    let pairs = corrected(cells.iter_mut().map(|c| &mut c.pairs).collect());
    let second: Vec<&mut Vec<Comparison>> = cells
        .iter_mut()
        .flat_map(|c| c.secondary.iter_mut().map(|s| &mut s.comparisons))
        .collect();
    let secondary = corrected(second);
    let names: Vec<String> = results.treatments.iter().map(|t| t.label.clone()).collect();
    for cell in &mut cells {
        cells::judge(cell, method, (primary, pairs, secondary));
        cells::conclude(cell, method, primary);
        flags::find(cell, results);
        cell.sentence = overview::sentence(cell, &names);
    }
    Analysis {
        version: ANALYSIS_VERSION,
        method: method.clone(),
        treatments: names,
        comparisons: primary,
        groups: overview::groups(&cells, results, weights),
        cells,
    }
}

/// Corrects p over all of them and within each; gives the size of the family.
fn corrected(mut families: Vec<&mut Vec<Comparison>>) -> usize {
    let all: Vec<Option<f64>> = families
        .iter()
        .flat_map(|f| f.iter().map(|c| c.p))
        .collect();
    let mut steps = stats::holm_steps(&all).into_iter();
    // Published figures: what is left of p once their digits may have been rounded.
    let rounded: Vec<Option<f64>> = families
        .iter()
        .flat_map(|f| f.iter().map(|c| c.p_rounded.or(c.p)))
        .collect();
    let mut rounded = stats::holm(&rounded).into_iter();
    for family in &mut families {
        let own = stats::holm(&family.iter().map(|c| c.p).collect::<Vec<_>>());
        for (c, p) in family.iter_mut().zip(own) {
            c.p_cell = p.map(stats::stored);
            let step = steps.next().flatten();
            c.p_adjusted = step.map(|s| stats::stored(s.0));
            c.divisor = step.map_or(1.0, |s| s.1);
            let rounded = rounded.next().flatten().map(stats::stored);
            c.p_rounded_adjusted = rounded.filter(|_| c.p_rounded.is_some());
        }
    }
    all.iter().flatten().count()
}

#[cfg(test)]
mod tests;
