//! Compares two treatments whose runs do not form blocks, for imported results.

use super::{deviation, mean, t_quantile, t_tail2};

/// The comparison of the single runs of two treatments, on logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WelchLog {
    /// Mean logarithm of the first treatment minus that of the second.
    pub mean: f64,
    /// exp of `mean`.
    pub ratio: f64,
    /// Standard error.
    pub se: Option<f64>,
    /// Satterthwaite's degrees of freedom.
    pub df: Option<f64>,
    /// Two-sided p value.
    pub p: Option<f64>,
    /// 95 % confidence interval of `mean`.
    pub interval95: Option<(f64, f64)>,
}

impl WelchLog {
    /// Returns the 95 % confidence interval of the ratio.
    pub fn ratio95(&self) -> Option<(f64, f64)> {
        let (low, high) = self.interval95?;
        Some((libm::exp(low), libm::exp(high)))
    }
}

/// Returns the degrees of freedom of a sum by Satterthwaite's formula. Each part is the variance of
/// a mean and its degrees of freedom. Parts without variance do not count.
pub(crate) fn satterthwaite(parts: &[(f64, f64)]) -> Option<f64> {
    let total: f64 = parts.iter().map(|p| p.0).sum();
    let below: f64 = parts
        .iter()
        .filter(|p| p.0 > 0.0)
        .map(|(v, df)| v * v / df)
        .sum();
    (below > 0.0).then(|| total * total / below)
}

/// Computes Welch's test on logarithms. Returns `None` if a sample is empty or contains a value
/// that is not positive.
pub fn welch_log(x: &[f64], y: &[f64]) -> Option<WelchLog> {
    let good = |s: &[f64]| !s.is_empty() && s.iter().all(|v| *v > 0.0 && v.is_finite());
    if !good(x) || !good(y) {
        return None;
    }
    let logs = |s: &[f64]| s.iter().map(|v| libm::log(*v)).collect::<Vec<_>>();
    let (a, b) = (logs(x), logs(y));
    let m = mean(&a) - mean(&b);
    let variance = |s: &[f64]| {
        let sd = deviation(s);
        sd * sd / s.len() as f64
    };
    let both = x.len() > 1 && y.len() > 1;
    let (va, vb) = (variance(&a), variance(&b));
    let se = both.then(|| libm::sqrt(va + vb));
    let df =
        satterthwaite(&[(va, x.len() as f64 - 1.0), (vb, y.len() as f64 - 1.0)]).filter(|_| both);
    let p = match (se, df) {
        (Some(se), Some(df)) => Some(t_tail2(m / se, df)),
        (Some(_), None) => Some(f64::from(m.abs() <= super::EQUAL)),
        _ => None,
    };
    let interval95 = se.zip(df).map(|(se, df)| {
        let half = t_quantile(0.975, df) * se;
        (m - half, m + half)
    });
    Some(WelchLog {
        mean: m,
        ratio: libm::exp(m),
        se,
        df,
        p,
        interval95,
    })
}

/// A published result: mean, error and number of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Mean.
    pub mean: f64,
    /// Standard error of the mean.
    pub se: Option<f64>,
    /// Standard deviation of the runs; used if `se` is missing.
    pub sd: Option<f64>,
    /// Number of runs.
    pub n: Option<u32>,
}

impl Summary {
    /// Returns the standard error, if an error was published and there are at least two runs.
    pub fn error(&self) -> Option<f64> {
        let n = self.n.filter(|n| *n > 1)?;
        self.se
            .or_else(|| self.sd.map(|sd| sd / libm::sqrt(f64::from(n))))
    }
}

/// The comparison of two published results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WelchSummary {
    /// First mean minus second mean.
    pub difference: f64,
    /// First mean divided by second mean; `None` unless both are positive.
    pub ratio: Option<f64>,
    /// Standard error of the difference.
    pub se: Option<f64>,
    /// t statistic.
    pub t: Option<f64>,
    /// Satterthwaite's degrees of freedom.
    pub df: Option<f64>,
    /// Two-sided p value. If both published errors are 0, the p value is 1 for equal means and 0
    /// for different means.
    pub p: Option<f64>,
    /// 95 % confidence interval of the difference.
    pub interval95: Option<(f64, f64)>,
    /// 95 % confidence interval of the ratio, by the delta method on the log scale.
    pub ratio95: Option<(f64, f64)>,
}

/// Computes Welch's test on the values themselves, from means and errors.
pub fn welch_summary(a: &Summary, b: &Summary) -> WelchSummary {
    let difference = a.mean - b.mean;
    let positive = a.mean > 0.0 && b.mean > 0.0;
    let ratio = positive.then(|| a.mean / b.mean);
    let errors = a.error().zip(b.error());
    let se = errors.map(|(x, y)| libm::sqrt(x * x + y * y));
    let df = errors.and_then(|(x, y)| {
        let of = |s: &Summary, e: f64| (e * e, f64::from(s.n.unwrap_or(2)) - 1.0);
        satterthwaite(&[of(a, x), of(b, y)])
    });
    let t = se.filter(|s| *s > 0.0).map(|s| difference / s);
    let p = match (t, df, se) {
        (Some(t), Some(df), _) => Some(t_tail2(t, df)),
        (None, _, Some(_)) => Some(f64::from(difference == 0.0)),
        _ => None,
    };
    let quantile = df.filter(|_| t.is_some()).map(|df| t_quantile(0.975, df));
    let interval95 = quantile
        .zip(se)
        .map(|(q, se)| (difference - q * se, difference + q * se));
    let ratio95 = quantile.zip(errors).zip(ratio).map(|((q, (x, y)), ratio)| {
        let relative = libm::sqrt((x / a.mean) * (x / a.mean) + (y / b.mean) * (y / b.mean));
        let (middle, half) = (libm::log(ratio), q * relative);
        (libm::exp(middle - half), libm::exp(middle + half))
    });
    WelchSummary {
        difference,
        ratio,
        se,
        t,
        df,
        p,
        interval95,
        ratio95,
    }
}
