//! Two sittings (days, kernels, builds): what changed relative to a control in both.

use super::{Better, deviation, mean, t_quantile};

/// What is known of both sittings. Values by block; the shorter side of a pair ends it.
#[derive(Clone, Debug, Default)]
pub struct Sittings {
    /// The treatment, before.
    pub old_treatment: Vec<f64>,
    /// The control, before.
    pub old_control: Vec<f64>,
    /// The treatment, now.
    pub new_treatment: Vec<f64>,
    /// The control, now.
    pub new_control: Vec<f64>,
    /// Mean log ratios of earlier sittings of the same cell; they count from five on.
    pub history: Vec<f64>,
    /// Direction of the metric.
    pub better: Better,
    /// Assumed SD of how a sitting moves one scheduler against another, on the log scale.
    pub sigma: f64,
    /// Relative difference that matters.
    pub margin: f64,
}

/// A change between sittings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SittingChange {
    /// Measured against the history of the cell rather than the old sitting alone.
    pub by_history: bool,
    /// Change of the log ratio to the control.
    pub change: f64,
    /// exp of it.
    pub ratio: f64,
    /// Standard error, the sittings' allowance included.
    pub se: f64,
    /// Degrees of freedom; `None`: only the allowance is left, and it is taken for known.
    pub df: Option<f64>,
    /// 95 % interval of the change.
    pub interval95: (f64, f64),
    /// Worse by more than the margin, and the one-sided 95 % bound says worse.
    pub regression: bool,
}

/// Earlier sittings from which their own spread is taken.
const HISTORY_MIN: usize = 5;

/// `None` unless each sitting has two blocks of positive values.
pub fn diff_sittings(of: &Sittings) -> Option<SittingChange> {
    let logs = |t: &[f64], c: &[f64]| -> Option<Vec<f64>> {
        let pairs: Vec<_> = t.iter().zip(c).collect();
        let good = pairs.len() > 1 && pairs.iter().all(|(t, c)| **t > 0.0 && **c > 0.0);
        good.then(|| {
            let log = |(t, c): &(&f64, &f64)| libm::log(**t) - libm::log(**c);
            pairs.iter().map(log).collect()
        })
    };
    let new = logs(&of.new_treatment, &of.new_control)?;
    let by_history = of.history.len() >= HISTORY_MIN;
    let (change, se, df) = if by_history {
        let h = of.history.len() as f64;
        let se = deviation(&of.history) * libm::sqrt(1.0 + 1.0 / h);
        (mean(&new) - mean(&of.history), se, Some(h - 1.0))
    } else {
        let old = logs(&of.old_treatment, &of.old_control)?;
        let part = |l: &[f64]| {
            let sd = deviation(l);
            (sd * sd / l.len() as f64, l.len() as f64 - 1.0)
        };
        let (a, b) = (part(&old), part(&new));
        let variance = a.0 + b.0 + 2.0 * of.sigma * of.sigma;
        let measured = a.0 * a.0 / a.1 + b.0 * b.0 / b.1;
        let df = (measured > 0.0).then(|| variance * variance / measured);
        (mean(&new) - mean(&old), libm::sqrt(variance), df)
    };
    let quantile = |q: f64| t_quantile(q, df.unwrap_or(f64::INFINITY));
    let half = quantile(0.975) * se;
    let gain = of.better.sign() * change;
    Some(SittingChange {
        by_history,
        change,
        ratio: libm::exp(change),
        se,
        df,
        interval95: (change - half, change + half),
        regression: gain + quantile(0.95) * se < 0.0 && gain < -libm::log1p(of.margin),
    })
}
