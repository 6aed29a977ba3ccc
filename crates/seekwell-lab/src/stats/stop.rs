//! The stopping rule. It depends on the width of intervals, never on p values.

use super::{Better, Paired, paired, t_quantile};

/// The stopping rule of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stopping {
    /// Requested half-width, on the log scale.
    pub target: f64,
    /// Alternatively, this fraction of the effect: an effect known to a quarter is known well
    /// enough.
    pub fraction: f64,
    /// Blocks before the first look.
    pub n_min: usize,
    /// Largest number of blocks.
    pub n_max: usize,
}

impl Stopping {
    /// Rule for a real machine.
    pub const HOST: Stopping = Stopping {
        target: 0.01,
        fraction: 0.25,
        n_min: 6,
        n_max: 30,
    };
    /// Rule for simulations, where effects are often zero in most seeds and large in a few.
    pub const SIMULATION: Stopping = Stopping {
        n_min: 10,
        n_max: 60,
        ..Stopping::HOST
    };

    /// Whether one comparison is narrow enough.
    fn met(&self, differences: &[f64]) -> bool {
        let n = differences.len();
        if n < 2 {
            return false;
        }
        let factor = if n <= self.n_min {
            1.0
        } else {
            libm::sqrt(1.0 + 4.0 / n as f64)
        };
        let mean = super::mean(differences);
        let se = super::deviation(differences) / libm::sqrt(n as f64);
        let half = t_quantile(0.975, (n - 1) as f64) * se * factor;
        half <= self.target.max(self.fraction * mean.abs())
    }

    /// Looks at the intervals after some blocks. `comparisons` holds log ratios by block, each from
    /// the blocks in which both ran.
    pub fn look(&self, comparisons: &[&[f64]]) -> Look {
        let met: Vec<bool> = comparisons.iter().map(|c| self.met(c)).collect();
        let n = comparisons.iter().map(|c| c.len()).max().unwrap_or(0);
        Look {
            stop: n >= self.n_min && met.iter().all(|m| *m),
            met,
        }
    }
}

/// Result of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether the rule ends the cell.
    pub stop: bool,
    /// Which comparisons are narrow enough.
    pub met: Vec<bool>,
}

/// A comparison of a finished cell.
#[derive(Clone, Debug, PartialEq)]
pub struct StopComparison {
    /// Its interval is widened because the comparison delayed the stop.
    pub corrected: bool,
    /// The comparison.
    pub paired: Paired,
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopped {
    /// Blocks used.
    pub n: usize,
    /// The rule ended it (not n_max, the budget or a lack of blocks).
    pub met: bool,
    /// Comparisons by treatment.
    pub comparisons: Vec<StopComparison>,
}

impl Stopping {
    /// Applies the rule block by block to complete data, and stops where the rule says so. `ends`
    /// gives the number of blocks for cells that a budget ended. Missing runs are `None`.
    pub fn walk(
        &self,
        treatments: &[&[Option<f64>]],
        reference: &[Option<f64>],
        better: Better,
        step: Option<f64>,
    ) -> Stopped {
        let blocks = reference.len().min(self.n_max);
        let upto = |n: usize| -> Vec<Paired> {
            let cut = |v: &[Option<f64>]| v[..n.min(v.len())].to_vec();
            treatments
                .iter()
                .map(|t| paired(&cut(t), &cut(reference), better, false, step))
                .collect()
        };
        let look = |n: usize| {
            let all = upto(n);
            let differences: Vec<&[f64]> = all.iter().map(|p| &p.differences[..]).collect();
            self.look(&differences)
        };
        let mut before: Option<Look> = None;
        let mut at = blocks;
        let mut met = false;
        for n in self.n_min.min(blocks)..=blocks {
            let now = look(n);
            if n >= self.n_min && now.stop {
                (at, met) = (n, true);
                break;
            }
            before = Some(now);
        }
        let bound = |i: usize| before.as_ref().is_some_and(|b| !b.met[i]);
        let cut = |v: &[Option<f64>]| v[..at.min(v.len())].to_vec();
        let comparisons = treatments.iter().enumerate().map(|(i, t)| {
            let corrected = met && at > self.n_min && bound(i);
            StopComparison {
                corrected,
                paired: paired(&cut(t), &cut(reference), better, corrected, step),
            }
        });
        Stopped {
            n: at,
            met,
            comparisons: comparisons.collect(),
        }
    }
}

/// Multiplier of s / sqrt(n) for an interval that may be looked at after every block (a t mixture
/// with prior variance 1). At alpha 5 %, 2.8 % of sequences ever leave the interval, and the
/// multiplier is infinite (`None`) below five blocks.
pub fn anytime_multiplier(n: usize, alpha: f64) -> Option<f64> {
    let blocks = n as f64;
    let wide = 1.0 + blocks;
    let k = libm::pow(libm::sqrt(wide) / alpha, 2.0 / blocks);
    (n >= 2 && k < wide).then(|| libm::sqrt((blocks - 1.0) * (k - 1.0) / (1.0 - k / wide)))
}
