//! The weights of the workloads, and the weights at which the decision would change.

use super::CellAnalysis;
use crate::stats::{stored, switch_weight};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Weights by name of the workload or cell. A name that is not listed has weight 1, or 0 if
/// [`Weights::only`] is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    /// The weight of each named workload or cell, above 0.
    pub named: BTreeMap<String, f64>,
    /// True if only the named workloads and cells count.
    pub only: bool,
}

impl Weights {
    /// Returns whether no weights were given, so that all workloads have equal weight.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }
    /// Returns the weight of a cell. The name of a workload can be given with or without its
    /// parameters.
    pub fn weight(&self, cell: &CellAnalysis) -> f64 {
        let plain = cell.workload.split([':', ' ', '[']).next();
        let names = [Some(&*cell.name), Some(&*cell.workload), plain];
        let own = names.into_iter().flatten().find_map(|n| self.named.get(n));
        own.copied().unwrap_or(if self.only { 0.0 } else { 1.0 })
    }
}

/// A weight at which the decision would change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// Index of the row of the cell whose weight changes.
    pub cell: usize,
    /// The current weight of the cell, as a fraction of the sum of all weights.
    pub share: f64,
    /// The fraction at which the other treatment has the same score as the treatment that is
    /// picked.
    pub at: f64,
    /// Index of the treatment that has the better score beyond that fraction.
    pub to: usize,
}

/// Largest factor between the current fraction and a reported fraction.
const NEAR: f64 = 2.0;

/// Finds, for each cell, the weight at which another treatment gets a better score than `pick`. The
/// weight is a fraction of all weights; the fraction closest to the current fraction is returned.
/// Only fractions from half to double the current fraction are searched. A treatment that differs
/// from `pick` by less than the margin, in this cell or in the mean of the others, is ignored.
/// `logs` holds log ratios to the reference, indexed by cell and by position in `order`.
pub(super) fn switches(
    used: &[usize],
    order: &[usize],
    logs: &[Vec<f64>],
    weights: &[f64],
    pick: usize,
    margin: f64,
) -> Vec<Switch> {
    let mu = libm::log1p(margin);
    let sum: f64 = weights.iter().sum();
    let mut out = Vec::new();
    for (j, cell) in used.iter().enumerate() {
        let share = weights[j] / sum;
        if used.len() < 2 || share <= 0.0 || share >= 1.0 {
            continue;
        }
        let rest = |t: usize| {
            let others = (0..used.len()).filter(|k| *k != j);
            others.map(|k| weights[k] * logs[k][t]).sum::<f64>() / (sum - weights[j])
        };
        let mut nearest: Option<Switch> = None;
        for t in (0..order.len()).filter(|t| *t != pick) {
            let inside = logs[j][t] - logs[j][pick];
            let outside = rest(t) - rest(pick);
            if inside.abs() <= mu || outside.abs() <= mu {
                continue;
            }
            let Some(at) = switch_weight(logs[j][t], logs[j][pick], rest(t), rest(pick)) else {
                continue;
            };
            let far = |x: f64| libm::log(x / share).abs();
            if far(at) <= libm::log(NEAR) && nearest.is_none_or(|n| far(at) < far(n.at)) {
                nearest = Some(Switch {
                    cell: *cell,
                    share: stored(share),
                    at: stored(at),
                    to: order[t],
                });
            }
        }
        out.extend(nearest);
    }
    out
}
