//! Quantiles of the latencies of one run.

/// A quantile of the operations of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantile {
    /// Smallest value such that at least this fraction of the operations is at or below it; `None`
    /// without operations.
    pub value: Option<u64>,
    /// Number of operations.
    pub total: u64,
    /// True if there are enough operations for this quantile: at least 10 / (1 - q).
    pub usable: bool,
}

/// Returns the quantile `q` (0 to 1) from pairs of value and count, in ascending order of the
/// value.
pub fn quantile(counts: &[(u64, u64)], q: f64) -> Quantile {
    let total: u64 = counts.iter().map(|c| c.1).sum();
    // For example, 0.999 of 20,000 operations must be 19,980, even if rounding makes the product
    // slightly larger.
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
