//! Estimates the number of blocks before a run.

use super::{chi2_quantile, normal_quantile, t_quantile};

/// A plan for one comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Blocks needed to detect the requested effect.
    pub n: u32,
    /// Relative effect that this number of blocks detects.
    pub detectable: f64,
}

/// z of error and power together, and z of the error alone.
fn quantiles(alpha: f64, power: f64) -> (f64, f64) {
    let z = normal_quantile(1.0 - alpha / 2.0);
    (z + normal_quantile(power), z)
}

/// Blocks for a relative effect; `sd` is that of a block's log ratio. At least `n_min`.
pub fn blocks_for(sd: f64, effect: f64, alpha: f64, power: f64, n_min: u32) -> u32 {
    let (both, z) = quantiles(alpha, power);
    let root = both * sd / libm::log1p(effect);
    let n = libm::ceil(root * root + z * z / 2.0);
    // Beyond a million blocks the number has no practical meaning.
    (n.clamp(0.0, 1e6) as u32).max(n_min)
}

/// Smallest relative effect that `n` blocks detect; `None` if they are too few for any effect.
pub fn detectable(sd: f64, n: u32, alpha: f64, power: f64) -> Option<f64> {
    let (both, z) = quantiles(alpha, power);
    let left = f64::from(n) - z * z / 2.0;
    (left > 0.0).then(|| libm::exp(both * sd / libm::sqrt(left)) - 1.0)
}

/// Number of blocks and detectable effect.
pub fn plan(sd: f64, effect: f64, alpha: f64, power: f64, n_min: u32) -> Plan {
    let n = blocks_for(sd, effect, alpha, power, n_min);
    Plan {
        n,
        detectable: detectable(sd, n, alpha, power).unwrap_or(f64::INFINITY),
    }
}

/// Upper 80 % limit of a standard deviation estimated from `n` blocks. Plans based on it reach
/// their power in 84 % of cases; plans based on the estimate itself in 47 %. `n` must be at least
/// 2.
pub fn sd_upper(sd: f64, n: u32) -> f64 {
    let df = f64::from(n.max(2)) - 1.0;
    sd * libm::sqrt(df / chi2_quantile(0.2, df))
}

/// Smallest number of blocks with a half-width (log scale) of at most `half`, including the
/// stopping rule's factor; at least `n_min`, at most `n_most`.
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
