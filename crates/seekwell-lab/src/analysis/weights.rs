//! The weights of the workloads, and the weights at which the choice would change.

use super::CellAnalysis;
use crate::stats::{stored, switch_weight};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Weights by workload or cell. A name that is missing has weight 1, or 0 if [`Weights::only`] is
/// set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    /// By the name of a workload or cell, above 0.
    pub named: BTreeMap<String, f64>,
    /// Only named workloads and cells count.
    pub only: bool,
}

impl Weights {
    /// Whether no weights were given, so that all have equal weight.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }
    /// The weight of a cell. A workload may be named with or without its parameters.
    pub fn of(&self, cell: &CellAnalysis) -> f64 {
        let plain = cell.workload.split([':', ' ', '[']).next();
        let names = [Some(&*cell.name), Some(&*cell.workload), plain];
        let own = names.into_iter().flatten().find_map(|n| self.named.get(n));
        own.copied().unwrap_or(if self.only { 0.0 } else { 1.0 })
    }
}

/// A weight at which the choice would change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// The cell whose weight changes, by index.
    pub cell: usize,
    /// Its current share of all weights.
    pub share: f64,
    /// The share at which the other treatment is level with the choice.
    pub at: f64,
    /// The treatment that is ahead beyond that share, by index.
    pub to: usize,
}

/// A share that differs from the current one by more than this factor is not reported.
const NEAR: f64 = 2.0;

/// For each cell, the nearest share at which another treatment overtakes `pick`, within a factor of
/// two of the current share. `logs` is indexed by cell and by position in `order`. Differences
/// below the margin do not count.
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
