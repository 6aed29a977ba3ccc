//! Quantiles of one run's latencies.

/// One number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantile {
    /// Smallest value with at least that share of operations at or below it; `None` of nothing.
    pub value: Option<u64>,
    /// Operations.
    pub total: u64,
    /// Enough operations for this quantile: 10 / (1 - q).
    pub usable: bool,
}

/// Of (value, count) pairs, ascending by value. `q` in 0..1.
pub fn quantile(counts: &[(u64, u64)], q: f64) -> Quantile {
    let total: u64 = counts.iter().map(|c| c.1).sum();
    // 0.999 of 20,000 is 19,980 operations, also where the product has a last bit too much.
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
