//! Ranks the schedulers of an arena by the measures of their runs.

use super::Figures;
use crate::experiment::Experiment;
use crate::results::RunKey;
use crate::stats::{describe, mean, stored};
use serde::Serialize;
use std::collections::BTreeMap;

/// One of the three measures by which schedulers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Figure {
    /// The metric of the workload.
    Throughput,
    /// 99th percentile of the latency of the workload's main kind of operation.
    P99,
    /// Jain's index of the bytes that each process moved.
    Fairness,
}

impl Figure {
    /// All three measures, in the order of [`Figures`].
    pub const ALL: [Figure; 3] = [Figure::Throughput, Figure::P99, Figure::Fairness];
}

/// A mean over the seeds with its 95 % interval. It is a factor relative to other schedulers: 1.1
/// is 10 % better than the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// The mean factor.
    pub factor: f64,
    /// The 95 % interval of the factor; `None` for fewer than two seeds.
    pub interval95: Option<(f64, f64)>,
}

impl Mean {
    fn from_logarithms(logs: &[f64]) -> Option<Self> {
        let all: Vec<Option<f64>> = logs.iter().copied().map(Some).collect();
        let d = describe(&all);
        let factor = |x: f64| stored(libm::exp(x));
        Some(Mean {
            factor: factor(d.mean?),
            interval95: d.low.zip(d.high).map(|(l, h)| (factor(l), factor(h))),
        })
    }
}

/// The means of one scheduler.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// Name of the scheduler as printed in tables.
    pub scheduler: String,
    /// Factor of each measure relative to the mean of all schedulers, over all cells, in the order
    /// of [`Figure::ALL`]. `None` if no cell has the measure.
    pub means: [Option<Mean>; 3],
    /// True if no other scheduler is at least as good in all measures and better in one of them.
    pub front: bool,
}

/// A cell in which the examined scheduler is behind a rival.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Behind {
    /// Name of the cell.
    pub cell: String,
    /// The measure in which the examined scheduler is behind.
    pub figure: Figure,
    /// Name of the rival that is furthest ahead in this cell.
    pub rival: String,
    /// The examined scheduler relative to the rival; 0.5 is half as good.
    pub mean: Mean,
    /// Number of seeds for which both schedulers have a value.
    pub seeds: usize,
}

/// The result of an arena.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// All schedulers, in the order of the experiment. The examined scheduler is the first.
    pub places: Vec<Place>,
    /// Cells in which the examined scheduler is significantly behind, the largest difference first.
    pub behind: Vec<Behind>,
    /// Number of cells.
    pub cells: usize,
    /// Number of seeds for which every scheduler has a throughput in at least one cell.
    pub seeds: usize,
}

/// Values of one measure, by cell and seed, then by scheduler.
type Of = BTreeMap<(usize, u32), BTreeMap<usize, f64>>;

fn of_figure(all: &BTreeMap<RunKey, Figures>, which: usize) -> Of {
    let mut out = Of::new();
    for (key, figures) in all {
        if let Some(v) = figures[which] {
            let of = out.entry((key.cell, key.block)).or_default();
            of.insert(key.treatment, v);
        }
    }
    out
}

/// Returns the log ratio of each scheduler to the geometric mean of all schedulers, by scheduler
/// and seed. The log ratios of the cells are averaged. A seed counts in a cell only if every
/// scheduler has a value there.
fn distances(of: &Of, n: usize) -> Vec<Vec<f64>> {
    let mut by_seed: BTreeMap<u32, Vec<Vec<f64>>> = BTreeMap::new();
    for ((_, seed), values) in of.iter().filter(|v| v.1.len() == n) {
        let mean = values.values().sum::<f64>() / n as f64;
        let all = by_seed.entry(*seed).or_insert_with(|| vec![Vec::new(); n]);
        for (out, v) in all.iter_mut().zip(values.values()) {
            out.push(v - mean);
        }
    }
    let mut out = vec![Vec::new(); n];
    for all in by_seed.values() {
        for (out, cells) in out.iter_mut().zip(all) {
            out.push(cells.iter().sum::<f64>() / cells.len() as f64);
        }
    }
    out
}

/// Returns whether `one` is at least as good in all measures and better in one of them.
fn beats(one: &[Option<Mean>; 3], other: &[Option<Mean>; 3]) -> bool {
    let pairs = || {
        let both = one.iter().zip(other);
        both.filter_map(|(a, b)| Some((a.as_ref()?.factor, b.as_ref()?.factor)))
    };
    pairs().all(|(a, b)| a >= b) && pairs().any(|(a, b)| a > b)
}

/// Ranks all schedulers of an experiment whose first treatment is the examined scheduler.
pub fn standing(experiment: &Experiment, all: &BTreeMap<RunKey, Figures>) -> Standing {
    let n = experiment.treatments.len();
    let figures: Vec<Of> = (0..3).map(|f| of_figure(all, f)).collect();
    let distances: Vec<Vec<Vec<f64>>> = figures.iter().map(|of| distances(of, n)).collect();
    let mut places: Vec<Place> = experiment
        .treatments
        .iter()
        .enumerate()
        .map(|(t, treatment)| Place {
            scheduler: treatment.label.clone(),
            means: [0, 1, 2].map(|f| Mean::from_logarithms(&distances[f][t])),
            front: false,
        })
        .collect();
    let means: Vec<[Option<Mean>; 3]> = places.iter().map(|p| p.means).collect();
    for (place, own) in places.iter_mut().zip(&means) {
        place.front = !means.iter().any(|other| beats(other, own));
    }
    let mut behind = Vec::new();
    for (of, figure) in figures.iter().zip(Figure::ALL) {
        for (c, plan) in experiment.cells.iter().enumerate() {
            behind.extend(worst(of, c, n).map(|(rival, logs)| Behind {
                cell: plan.cell.name.clone(),
                figure,
                rival: experiment.treatments[rival].label.clone(),
                seeds: logs.len(),
                mean: Mean::from_logarithms(&logs).unwrap_or(Mean {
                    factor: 1.0,
                    interval95: None,
                }),
            }));
        }
    }
    // A difference that can be due to chance is not listed.
    behind.retain(|b| b.mean.interval95.is_some_and(|i| i.1 < 1.0));
    behind.sort_by(|a, b| a.mean.factor.total_cmp(&b.mean.factor));
    Standing {
        seeds: distances[0].first().map_or(0, Vec::len),
        places,
        behind,
        cells: experiment.cells.len(),
    }
}

/// Finds the rival that is furthest ahead of the examined scheduler (index 0) in a cell. Returns
/// the index of the rival and, for each seed, the log ratio of the examined scheduler to the rival.
/// Returns `None` if no rival is ahead on average.
fn worst(of: &Of, cell: usize, n: usize) -> Option<(usize, Vec<f64>)> {
    let seeds: Vec<&BTreeMap<usize, f64>> = of
        .range((cell, 0)..=(cell, u32::MAX))
        .map(|s| s.1)
        .collect();
    let against = |rival: usize| -> Vec<f64> {
        let both = seeds
            .iter()
            .filter_map(|s| Some((s.get(&0)?, s.get(&rival)?)));
        both.map(|(own, his)| own - his).collect()
    };
    let all = (1..n).map(|r| (r, against(r)));
    let all = all.filter(|(_, logs)| !logs.is_empty());
    let most = all.min_by(|a, b| mean(&a.1).total_cmp(&mean(&b.1)))?;
    (mean(&most.1) < 0.0).then_some(most)
}
