//! Describes one sample, or compares values with the median of all treatments.

use super::{Better, deviation, mean, median, range, t_quantile};

/// The statistics of the runs of one treatment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Described {
    /// Number of runs with a value.
    pub n: usize,
    /// Number of runs without a value.
    pub missing: usize,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// Sample standard deviation (n - 1).
    pub sd: Option<f64>,
    /// Standard error of the mean.
    pub se: Option<f64>,
    /// Coefficient of variation: standard deviation divided by the mean. `None` unless the mean is
    /// positive.
    pub cv: Option<f64>,
    /// Minimum.
    pub min: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
    /// Lower end of the 95 % t interval of the mean.
    pub low: Option<f64>,
    /// Upper end of the 95 % t interval of the mean.
    pub high: Option<f64>,
    /// Geometric mean, if all values are positive.
    pub geometric_mean: Option<f64>,
}

/// Returns the statistics of a sample. `None` in `values` is a run without a value.
pub fn describe(values: &[Option<f64>]) -> Described {
    let have: Vec<f64> = values.iter().flatten().copied().collect();
    let n = have.len();
    let some = n > 0;
    let m = some.then(|| mean(&have));
    let sd = (n > 1).then(|| deviation(&have));
    let se = sd.map(|s| s / libm::sqrt(n as f64));
    let half = se.map(|s| t_quantile(0.975, (n - 1) as f64) * s);
    let (least, largest) = range(&have);
    let positive = some && have.iter().all(|v| *v > 0.0);
    let logs: Vec<f64> = have.iter().map(|v| libm::log(*v)).collect();
    Described {
        n,
        missing: values.len() - n,
        mean: m,
        median: median(&have),
        sd,
        se,
        cv: m.filter(|m| *m > 0.0).and_then(|m| sd.map(|s| s / m)),
        min: some.then_some(least),
        max: some.then_some(largest),
        low: m.zip(half).map(|(m, h)| m - h),
        high: m.zip(half).map(|(m, h)| m + h),
        geometric_mean: positive.then(|| libm::exp(mean(&logs))),
    }
}

/// The values of the treatments relative to their median, as in published phone benchmarks.
#[derive(Clone, Debug, PartialEq)]
pub struct DeltaMedian {
    /// Median of the values of all treatments.
    pub median: f64,
    /// Difference of each treatment from the median, in percent; positive is better.
    pub delta: Vec<f64>,
    /// Each value in percent of the median, without regard to the direction of the metric.
    pub percent_of_median: Vec<f64>,
}

/// Compares each treatment with the median of all. This is for display only, because verdicts
/// compare with the reference. Returns `None` without treatments, or if the median or a value is 0.
pub fn delta_median(values: &[f64], better: Better) -> Option<DeltaMedian> {
    let middle = median(values).filter(|m| *m != 0.0)?;
    let gain = |x: &f64| match better {
        Better::Higher => 100.0 * (x / middle - 1.0),
        Better::Lower => 100.0 * (middle / x - 1.0),
    };
    let delta: Vec<f64> = values.iter().map(gain).collect();
    delta.iter().all(|d| d.is_finite()).then(|| DeltaMedian {
        median: middle,
        percent_of_median: values.iter().map(|x| 100.0 * x / middle).collect(),
        delta,
    })
}
