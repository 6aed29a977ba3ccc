//! Estimates the number of blocks before an experiment runs.

use super::{normal_quantile, t_quantile};

/// Returns two values. The first is the sum of the normal quantiles of `1 - alpha / 2` and `power`.
/// The second is the quantile of `1 - alpha / 2` alone.
fn quantiles(alpha: f64, power: f64) -> (f64, f64) {
    let z = normal_quantile(1.0 - alpha / 2.0);
    (z + normal_quantile(power), z)
}

/// Returns the smallest relative effect that `n` blocks detect; `None` if the blocks are too few
/// for any effect.
pub fn detectable(sd: f64, n: u32, alpha: f64, power: f64) -> Option<f64> {
    let (both, z) = quantiles(alpha, power);
    let left = f64::from(n) - z * z / 2.0;
    (left > 0.0).then(|| libm::exp(both * sd / libm::sqrt(left)) - 1.0)
}

/// Returns the smallest number of blocks with which the half-width of the interval (log scale) is
/// at most `half`. The correction factor for the stopping rule is included. The result is between
/// `n_min` and `n_most`.
pub fn blocks_for_width(sd: f64, half: f64, n_min: u32, n_most: u32) -> u32 {
    let wide = |n: u32| {
        let blocks = f64::from(n);
        let factor = if n <= n_min {
            1.0
        } else {
            libm::sqrt(1.0 + 4.0 / blocks)
        };
        t_quantile(0.975, blocks - 1.0) * sd * factor / libm::sqrt(blocks) > half
    };
    let mut n = n_min.max(2);
    while n < n_most && wide(n) {
        n += 1;
    }
    n
}
