//! Estimates the number of blocks before an experiment runs.

use super::{chi2_quantile, normal_quantile, t_quantile};

/// A plan for one comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Number of blocks that are needed to detect the requested effect.
    pub n: u32,
    /// Relative effect that this number of blocks detects.
    pub detectable: f64,
}

/// Returns two values. The first is the sum of the normal quantiles of `1 - alpha / 2` and `power`.
/// The second is the quantile of `1 - alpha / 2` alone.
fn quantiles(alpha: f64, power: f64) -> (f64, f64) {
    let z = normal_quantile(1.0 - alpha / 2.0);
    (z + normal_quantile(power), z)
}

/// Returns the number of blocks that detect a relative effect, at least `n_min`. `sd` is the
/// standard deviation of the log ratio within a block.
pub fn blocks_for(sd: f64, effect: f64, alpha: f64, power: f64, n_min: u32) -> u32 {
    let (both, z) = quantiles(alpha, power);
    let root = both * sd / libm::log1p(effect);
    let n = libm::ceil(root * root + z * z / 2.0);
    // More than a million blocks are not practical.
    (n.clamp(0.0, 1e6) as u32).max(n_min)
}

/// Returns the smallest relative effect that `n` blocks detect; `None` if the blocks are too few
/// for any effect.
pub fn detectable(sd: f64, n: u32, alpha: f64, power: f64) -> Option<f64> {
    let (both, z) = quantiles(alpha, power);
    let left = f64::from(n) - z * z / 2.0;
    (left > 0.0).then(|| libm::exp(both * sd / libm::sqrt(left)) - 1.0)
}

/// Returns the number of blocks for an effect, and the effect that this number detects.
pub fn plan(sd: f64, effect: f64, alpha: f64, power: f64, n_min: u32) -> Plan {
    let n = blocks_for(sd, effect, alpha, power, n_min);
    Plan {
        n,
        detectable: detectable(sd, n, alpha, power).unwrap_or(f64::INFINITY),
    }
}

/// Returns the upper 80 % confidence limit of a standard deviation that was estimated from `n`
/// blocks. Plans based on this limit reach their power in 84 % of cases. Plans based on the
/// estimate itself reach their power in 47 %. An `n` below 2 counts as 2.
pub fn sd_upper(sd: f64, n: u32) -> f64 {
    let df = f64::from(n.max(2)) - 1.0;
    sd * libm::sqrt(df / chi2_quantile(0.2, df))
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
