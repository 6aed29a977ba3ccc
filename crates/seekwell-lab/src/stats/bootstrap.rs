//! BCa (bias-corrected and accelerated) bootstrap intervals for statistics that have no other
//! interval. They need at least twenty blocks.

use super::{EQUAL, mean, median, normal_cdf, normal_quantile};
use rand::Rng;
use rand_pcg::Pcg64Mcg;

/// The statistic that is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// Median.
    Median,
}

impl Statistic {
    fn compute(self, values: &[f64]) -> f64 {
        match self {
            Statistic::Mean => mean(values),
            Statistic::Median => median(values).unwrap_or(0.0),
        }
    }
}

/// A bias-corrected and accelerated interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bca {
    /// Bias correction: the normal quantile of the fraction of replicates below the estimate.
    pub z0: f64,
    /// Acceleration, computed by the jackknife.
    pub a: f64,
    /// 95 % confidence interval of the statistic.
    pub interval95: (f64, f64),
    /// Number of replicates.
    pub replicates: usize,
    /// Mean of the replicates.
    pub mean_of_replicates: f64,
}

/// Smallest number of values. With fewer values, the real coverage of a bootstrap interval is too
/// low (75 % for 3 values, 90 % for 10).
pub const BOOTSTRAP_MIN: usize = 20;
/// Number of replicates that are drawn.
const REPLICATES: usize = 9_999;

/// Returns the bootstrap interval of block values, with random numbers from `seed`; `None` below
/// [`BOOTSTRAP_MIN`] values.
pub fn bootstrap(values: &[f64], statistic: Statistic, seed: u64) -> Option<Bca> {
    if values.len() < BOOTSTRAP_MIN {
        return None;
    }
    let mut rng = Pcg64Mcg::new(u128::from(seed) << 64 | 0xb007_57a9);
    let mut sample = values.to_vec();
    let replicates = (0..REPLICATES).map(|_| {
        for slot in &mut sample {
            *slot = values[rng.random_range(0..values.len())];
        }
        statistic.compute(&sample)
    });
    let replicates = replicates.collect();
    bca_from(values, statistic, replicates)
}

/// Returns the interval from all n^n possible resamples, for checks with few values; `None` above
/// seven values.
pub fn complete(values: &[f64], statistic: Statistic) -> Option<Bca> {
    let n = values.len();
    if n > 7 {
        return None;
    }
    let total = n.pow(n as u32);
    let replicates = (0..total).map(|mut code| {
        let sample: Vec<f64> = (0..n)
            .map(|_| {
                let v = values[code % n];
                code /= n;
                v
            })
            .collect();
        statistic.compute(&sample)
    });
    let replicates = replicates.collect();
    bca_from(values, statistic, replicates)
}

/// Computes the interval from the given replicates; `None` without values or without replicates.
pub fn bca_from(values: &[f64], statistic: Statistic, mut replicates: Vec<f64>) -> Option<Bca> {
    if values.is_empty() || replicates.is_empty() {
        return None;
    }
    replicates.sort_by(f64::total_cmp);
    let estimate = statistic.compute(values);
    let near = EQUAL * estimate.abs().max(1.0);
    let ties = replicates.iter().filter(|r| (**r - estimate).abs() <= near);
    let below = replicates.iter().filter(|r| **r < estimate - near);
    let count = replicates.len() as f64;
    let share = (below.count() as f64 + ties.count() as f64 / 2.0) / count;
    let z0 = normal_quantile(share);
    let left_out: Vec<f64> = (0..values.len())
        .map(|i| {
            let rest: Vec<f64> = [&values[..i], &values[i + 1..]].concat();
            statistic.compute(&rest)
        })
        .collect();
    let middle = mean(&left_out);
    let squares: f64 = left_out.iter().map(|x| (middle - x) * (middle - x)).sum();
    let cubes: f64 = left_out
        .iter()
        .map(|x| (middle - x) * (middle - x) * (middle - x))
        .sum();
    let a = if squares > 0.0 {
        cubes / (6.0 * squares * libm::sqrt(squares))
    } else {
        0.0
    };
    let end = |z: f64| {
        let shifted = z0 + (z0 + z) / (1.0 - a * (z0 + z));
        let q = normal_cdf(shifted);
        let index = (libm::ceil(q * count) as usize).clamp(1, replicates.len());
        replicates[index - 1]
    };
    let z = normal_quantile(0.975);
    Some(Bca {
        z0,
        a,
        interval95: (end(-z), end(z)),
        replicates: replicates.len(),
        mean_of_replicates: mean(&replicates),
    })
}
