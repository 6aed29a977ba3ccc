//! How much each workload counts, and at which weight the choice would be another.

use super::CellAnalysis;
use crate::stats::{stored, switch_weight};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Weights by workload or by cell. What is not named counts 1, or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    /// By the name of a workload or cell, above 0.
    pub named: BTreeMap<String, f64>,
    /// Only those count that are named.
    pub only: bool,
}

impl Weights {
    /// Nothing was said: all count alike.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }
    /// Of a cell; a workload may be named with its parameters or without.
    pub fn of(&self, cell: &CellAnalysis) -> f64 {
        let plain = cell.workload.split([':', ' ', '[']).next();
        let names = [Some(&*cell.name), Some(&*cell.workload), plain];
        let own = names.into_iter().flatten().find_map(|n| self.named.get(n));
        own.copied().unwrap_or(if self.only { 0.0 } else { 1.0 })
    }
}

/// Where the choice would be another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// Cell whose weight it is about, by place.
    pub cell: usize,
    /// Its share of all weights today.
    pub share: f64,
    /// At which share the other is level with the choice.
    pub at: f64,
    /// Which treatment, by place, is ahead beyond it.
    pub to: usize,
}

/// A share farther than this factor from today's is no news.
const NEAR: f64 = 2.0;

/// For each cell the nearest share at which another treatment overtakes `pick`, within a factor of
/// two of today's. `logs`: by cell and treatment of `order`. Differences below the margin overtake
/// nothing.
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
