//! Turns results into conclusions: the effect, interval and verdict of each comparison in each
//! cell, the signs of noise, and the overview of the experiment.
//!
//! There are three families of comparisons. The primary comparisons compare each treatment with the
//! reference. The second family compares all pairs of treatments with the same data. It is needed
//! because a scheduler is called "ahead of all others" only if it is ahead in all its pairs. The
//! third family compares the secondary metrics. In each family, the p values are corrected for the
//! number of comparisons in the whole experiment. Numbers are rounded to 12 digits, so that equal
//! results give equal bytes on every machine.

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

use crate::data::{Cell, CellEnd, Method, MetricInfo, Results, WarmUp};
use crate::stats::{self, Better};
use serde::{Deserialize, Serialize};

/// Version of the format of a stored analysis. It is raised when a field changes its meaning.
pub const ANALYSIS_VERSION: u32 = 1;

/// The conclusions of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// Always [`ANALYSIS_VERSION`].
    pub version: u32,
    /// The rules for repetitions and verdicts of the experiment.
    pub method: Method,
    /// Labels of the treatments, by index.
    pub treatments: Vec<String>,
    /// Number of primary comparisons that were tested, over all cells.
    pub comparisons: usize,
    /// One entry for each row of each cell.
    pub cells: Vec<CellAnalysis>,
    /// Groups of the cells with the same device and machine, with all their rows.
    pub groups: Vec<Group>,
}

/// Conclusions for one deciding metric of a cell (a row). Most cells have only one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellAnalysis {
    /// Index of the cell in [`Results::cells`].
    #[serde(default)]
    pub cell: usize,
    /// Index of the row within its cell, from 0.
    #[serde(default)]
    pub row: usize,
    /// Number of rows of the cell.
    #[serde(default = "one_row")]
    pub rows: usize,
    /// Name of the cell.
    pub name: String,
    /// Name of the device as printed in tables.
    pub device: String,
    /// Name of the workload as printed in tables.
    pub workload: String,
    /// Name of the machine; empty for the default machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The deciding metric.
    pub metric: MetricInfo,
    /// Index of the reference treatment.
    pub reference: usize,
    /// Number of blocks with at least one run.
    pub blocks: usize,
    /// Why no further blocks were run in the cell.
    pub ended: CellEnd,
    /// True if no run depends on its seed, so that each treatment has one exact value.
    pub exact: bool,
    /// Statistics of each treatment.
    pub sides: Vec<Side>,
    /// Comparisons of each treatment with the reference.
    pub comparisons: Vec<Comparison>,
    /// All pairs, in the order of the cell's treatments.
    pub pairs: Vec<Comparison>,
    /// Index of the treatment with the best mean.
    pub best: Option<usize>,
    /// Index of the treatment that is shown to be ahead of every other treatment.
    pub winner: Option<usize>,
    /// Undefeated treatments: no other treatment is shown to be ahead of them.
    pub not_beaten: Vec<usize>,
    /// True if all pairs are shown to differ by less than the margin.
    pub level: bool,
    /// Smallest relative difference from the reference that this number of blocks detects with a
    /// power of 80 %.
    pub visible: Option<f64>,
    /// Warm-up: the time at the start of a timed run that the values leave out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Metrics that have no row of their own. The analysis concludes that the treatments do not
    /// differ only if the treatments are equal in these metrics too. Only the first row contains
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Signs of noise.
    pub flags: Vec<Flag>,
    /// The secondary metrics, with comparisons of each treatment with the reference.
    pub secondary: Vec<Secondary>,
    /// The conclusion in one sentence.
    pub sentence: String,
}

fn one_row() -> usize {
    1
}

/// A metric in which the treatments must be equal before the analysis concludes that they do not
/// differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The metric.
    pub metric: MetricInfo,
    /// For each treatment, its index and the geometric mean of its blocks.
    pub values: Vec<(usize, f64)>,
}

impl Check {
    /// Returns how many times worse a treatment is than the best treatment, and the index of the
    /// best.
    pub fn behind(&self, treatment: usize) -> Option<(f64, usize)> {
        let sign = better(&self.metric).sign();
        let own = self.values.iter().find(|v| v.0 == treatment)?.1;
        let best = self.values.iter().copied();
        let best = best.reduce(|a, b| if sign * b.1 > sign * a.1 { b } else { a })?;
        let times = libm::exp(sign * (libm::log(best.1) - libm::log(own)));
        Some((times, best.0))
    }
    /// Returns the ratio between the best and the worst treatment, 1 or more.
    fn spread(&self) -> f64 {
        let behind = |v: &(usize, f64)| self.behind(v.0).map_or(1.0, |b| b.0);
        self.values.iter().map(behind).fold(1.0, f64::max)
    }
}

/// Statistics of one treatment in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Treatment index.
    pub treatment: usize,
    /// Number of runs with a value.
    pub n: usize,
    /// Number of runs that failed.
    pub failed: usize,
    /// Runs that reached their time limit. If there are any, the treatment has no mean and no
    /// standard deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<Longer>,
    /// Arithmetic mean of the runs.
    pub mean: Option<f64>,
    /// Geometric mean of the runs, if all values are positive.
    pub geometric_mean: Option<f64>,
    /// Median of the runs.
    pub median: Option<f64>,
    /// Standard deviation of the runs.
    pub sd: Option<f64>,
    /// Standard error of the mean.
    pub se: Option<f64>,
    /// 95 % confidence interval of the mean.
    pub interval95: Option<(f64, f64)>,
    /// Smallest number of operations from which the value of a run was computed. `None` if unknown.
    pub operations: Option<u64>,
    /// One value per block.
    pub values: Vec<Option<f64>>,
}

/// The runs of a treatment that reached their time limit before the work was finished.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Longer {
    /// Number of runs that reached their time limit.
    pub runs: usize,
    /// Number of all runs of the treatment.
    pub of: usize,
    /// The work takes longer than this time, in s. It is the duration of the shortest run that
    /// reached its time limit.
    pub than_s: f64,
}

/// A metric that does not decide which treatment is ahead, with its comparisons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Secondary {
    /// The metric.
    pub metric: MetricInfo,
    /// Comparisons of each treatment with the reference, corrected over all secondary comparisons.
    pub comparisons: Vec<Comparison>,
}

impl Analysis {
    /// Returns the rows of one cell of the results.
    pub fn rows(&self, cell: usize) -> impl Iterator<Item = &CellAnalysis> {
        self.cells.iter().filter(move |c| c.cell == cell)
    }
    /// Returns the cell of each row of a group. If several rows belong to the same cell, the cell
    /// is returned once for each of these rows.
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
    /// Returns a name that no other row has: the name of the cell, followed by the metric except
    /// for the first row.
    pub fn id(&self) -> String {
        match self.row {
            0 => self.name.clone(),
            _ => format!("{}, {}", self.name, self.metric.name),
        }
    }
    /// Returns the title of the row: the workload, followed by the metric if the cell has several
    /// rows.
    pub fn title(&self) -> String {
        match self.rows {
            0 | 1 => self.workload.clone(),
            _ => format!("{}, {}", self.workload, self.metric.name),
        }
    }
    /// Returns which direction of the metric is better.
    pub fn better(&self) -> Better {
        better(&self.metric)
    }
    /// Returns the comparison of two treatments. The second value is true if the comparison was
    /// made in the opposite direction.
    pub fn pair(&self, one: usize, other: usize) -> Option<(&Comparison, bool)> {
        self.pairs.iter().find_map(|p| match (p.one, p.other) {
            pair if pair == (one, other) => Some((p, false)),
            pair if pair == (other, one) => Some((p, true)),
            _ => None,
        })
    }
    /// Returns how many times better `one` is than `other`, with the deciding interval.
    pub fn times(&self, one: usize, other: usize) -> Option<(f64, Option<(f64, f64)>)> {
        let (pair, turned) = self.pair(one, other)?;
        let better = self.better();
        let (times, ends) = (pair.times_better(better)?, pair.better_deciding(better));
        Some(match turned {
            false => (times, ends),
            true => (1.0 / times, ends.map(|(l, h)| (1.0 / h, 1.0 / l))),
        })
    }
    /// Returns the treatments that are ahead in this row.
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
    /// Returns whether `one` is shown to be ahead of `other`.
    pub fn beats(&self, one: usize, other: usize) -> bool {
        self.pair(one, other).is_some_and(|(p, turned)| {
            let ahead = p.mean.is_some_and(|m| m * self.better().sign() > 0.0);
            p.verdict.claims() && !p.level() && ahead != turned
        })
    }
}

/// Which treatments of a cell are ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// These treatments are ahead of all others, and level with each other.
    Who(Vec<usize>),
    /// All treatments are level.
    Level,
    /// The data does not decide the cell, or there is no data.
    Open,
}

fn better(metric: &MetricInfo) -> Better {
    match metric.higher_is_better {
        true => Better::Higher,
        false => Better::Lower,
    }
}

/// Analyses results with equal weights for all workloads.
pub fn analyse(results: &Results) -> Analysis {
    analyse_weighted(results, &Weights::default())
}

/// Analyses results with the given weight for each workload.
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

/// Corrects the p values over all families together and within each family. Returns the total
/// number of comparisons.
fn corrected(mut families: Vec<&mut Vec<Comparison>>) -> usize {
    let all: Vec<Option<f64>> = families
        .iter()
        .flat_map(|f| f.iter().map(|c| c.p))
        .collect();
    let mut steps = stats::holm_steps(&all).into_iter();
    // For published values, also corrects the p value under the worst possible rounding of the
    // digits.
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
