//! The stopping rule. It uses the width of confidence intervals, never p values.

use super::{Better, Paired, paired, t_quantile};

/// The rule that decides when a cell has enough blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stopping {
    /// Largest half-width of the interval, on the log scale, at which a comparison is precise
    /// enough.
    pub target: f64,
    /// Alternative to `target`: the half-width may be this fraction of the effect. With a quarter,
    /// a large effect needs no more blocks than are useful.
    pub fraction: f64,
    /// Number of blocks before the interval is looked at for the first time.
    pub n_min: usize,
    /// Largest number of blocks.
    pub n_max: usize,
}

impl Stopping {
    /// The rule for a real machine.
    pub const HOST: Stopping = Stopping {
        target: 0.01,
        fraction: 0.25,
        n_min: 6,
        n_max: 30,
    };
    /// Returns whether the interval of one comparison is narrow enough.
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

    /// Looks at the intervals after some blocks. `comparisons` holds the log ratios of each
    /// comparison, from the blocks that contain both treatments.
    pub fn look(&self, comparisons: &[&[f64]]) -> Look {
        let met: Vec<bool> = comparisons.iter().map(|c| self.met(c)).collect();
        let n = comparisons.iter().map(|c| c.len()).max().unwrap_or(0);
        Look {
            stop: n >= self.n_min && met.iter().all(|m| *m),
            met,
        }
    }
}

/// Result of one look at the intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// True if the cell can stop.
    pub stop: bool,
    /// For each comparison, whether its interval is narrow enough.
    pub met: Vec<bool>,
}

/// The comparison of a treatment with the reference, after the cell stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct StopComparison {
    /// True if the interval was widened because this comparison delayed the stop.
    pub corrected: bool,
    /// The comparison with its interval.
    pub paired: Paired,
}

/// How a cell stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopped {
    /// Number of blocks that were used.
    pub n: usize,
    /// True if the rule stopped the cell. False if the cell reached `n_max` or had no more blocks.
    pub met: bool,
    /// One comparison for each treatment.
    pub comparisons: Vec<StopComparison>,
}

impl Stopping {
    /// Applies the rule to finished data, one block after another, and returns the comparisons at
    /// the block where the rule stops. `None` in the data is a missing run.
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

/// Returns the multiplier of s / sqrt(n) for an interval that may be checked after every block (a
/// mixture of t statistics with prior variance 1). With an alpha of 5 %, the true value leaves the
/// interval at any block in only 2.8 % of the experiments. Returns `None` (infinite) below five
/// blocks for this alpha.
pub fn anytime_multiplier(n: usize, alpha: f64) -> Option<f64> {
    let blocks = n as f64;
    let wide = 1.0 + blocks;
    let k = libm::pow(libm::sqrt(wide) / alpha, 2.0 / blocks);
    (n >= 2 && k < wide).then(|| libm::sqrt((blocks - 1.0) * (k - 1.0) / (1.0 - k / wide)))
}
