//! Quantiles of one run's latencies.

/// A quantile of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantile {
    /// Smallest value with at least this fraction of operations at or below it; `None` if empty.
    pub value: Option<u64>,
    /// Number of operations.
    pub total: u64,
    /// Whether there are enough operations for this quantile: 10 / (1 - q).
    pub usable: bool,
}

/// Computes a quantile from (value, count) pairs, ascending by value. `q` is in 0..1.
pub fn quantile(counts: &[(u64, u64)], q: f64) -> Quantile {
    let total: u64 = counts.iter().map(|c| c.1).sum();
    // 0.999 of 20,000 must be 19,980 operations, even if rounding makes the product slightly
    // larger.
    let wanted = q * total as f64 * (1.0 - 1e-12);
    let mut sum = 0;
    let at = counts.iter().find(|c| {
        sum += c.1;
        c.1 > 0 && sum as f64 >= wanted
    });
    Quantile {
        value: at.map(|c| c.0),
        total,
        usable: total as f64 * (1.0 - q) >= 10.0 - 1e-6,
    }
}
