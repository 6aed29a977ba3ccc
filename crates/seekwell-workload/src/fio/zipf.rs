//! Ranks with the Zipf distribution.

use crate::machine::Machine;
use rand::Rng;

/// Number of terms that are added one by one. An integral approximates the rest of a sum.
const EXACT: u64 = 10_000;

/// The Zipf distribution of the ranks 0..n: rank k has weight 1/(k+1)^theta.
pub(super) struct Zipf {
    theta: f64,
    n: u64,
    /// The sums of the first weights.
    sums: Vec<f64>,
}

impl Zipf {
    /// Makes the distribution of `n` ranks.
    pub(super) fn new(n: u64, theta: f64) -> Self {
        let mut sum = 0.0;
        let term = |k: u64| libm::pow(k as f64, -theta);
        let sums = (1..=n.clamp(1, EXACT)).map(|k| {
            sum += term(k);
            sum
        });
        let sums = sums.collect();
        Zipf { theta, n, sums }
    }

    /// Returns the sum of the first `n` weights.
    fn sum(&self, n: u64) -> f64 {
        let last = self.sums.len() as u64;
        if n <= last {
            return self.sums[n.max(1) as usize - 1];
        }
        let theta = self.theta;
        let integral = |a: f64, b: f64| {
            if (theta - 1.0).abs() < 1e-9 {
                libm::log(b / a)
            } else {
                (libm::pow(b, 1.0 - theta) - libm::pow(a, 1.0 - theta)) / (1.0 - theta)
            }
        };
        self.sums[last as usize - 1] + integral(last as f64 + 0.5, n as f64 + 0.5)
    }

    /// Returns a random rank, found by bisection over the sums of the weights.
    pub(super) fn rank<M: Machine>(&self, m: &mut M) -> u64 {
        let u = m.rng().random::<f64>() * self.sum(self.n);
        let (mut lo, mut hi) = (0, self.n.max(1) - 1);
        while lo < hi {
            let mid = lo + (hi - lo) / 2;
            if self.sum(mid + 1) > u {
                hi = mid;
            } else {
                lo = mid + 1;
            }
        }
        lo
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_equal_the_weights_added_one_by_one() {
        for theta in [0.5, 1.0, 1.2, 2.5] {
            let zipf = Zipf::new(1 << 20, theta);
            let mut sum = 0.0;
            for k in 1..=1u64 << 20 {
                sum += libm::pow(k as f64, -theta);
                if k.is_power_of_two() {
                    assert!((zipf.sum(k) / sum - 1.0).abs() < 1e-6, "{theta} {k}");
                }
            }
        }
    }
}
