//! Compares two sessions (for example two days, kernels or builds): the change of a treatment
//! relative to a control that both sessions contain.

use super::{Better, deviation, mean, t_quantile};

/// The change between two sessions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionChange {
    /// True if the new session is compared with the earlier sessions of `history`, and not with the
    /// old session.
    pub by_history: bool,
    /// Change of the log ratio of treatment to control.
    pub change: f64,
    /// exp of `change`.
    pub ratio: f64,
    /// Standard error. Includes the variation between sessions: the given `sigma`, or the spread of
    /// the history.
    pub se: f64,
    /// Degrees of freedom. `None` if the sessions have no spread; the error is then
    /// the given `sigma` alone, which is treated as known.
    pub df: Option<f64>,
    /// 95 % confidence interval of `change`.
    pub interval95: (f64, f64),
    /// True if the treatment is worse by more than the margin, and the one-sided 95 % interval
    /// excludes 0.
    pub regression: bool,
}

/// Number of earlier sessions that are needed to estimate the spread between sessions.
const HISTORY_MIN: usize = 5;

/// The mean log ratio of one session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean.
    pub mean: f64,
    /// Variance of the mean.
    pub variance: f64,
    /// Degrees of freedom of the variance; `None` if there is no spread.
    pub df: Option<f64>,
}

/// Computes the change from `old` to `new`. If `history` has at least five means, the change is
/// relative to the mean of the history instead.
pub fn session_change(
    old: &Estimate,
    new: &Estimate,
    history: &[f64],
    sigma: f64,
    better: Better,
    margin: f64,
) -> SessionChange {
    let by_history = history.len() >= HISTORY_MIN;
    let (change, se, df) = if by_history {
        let h = history.len() as f64;
        let se = deviation(history) * libm::sqrt(1.0 + 1.0 / h);
        (new.mean - mean(history), se, Some(h - 1.0))
    } else {
        let variance = old.variance + new.variance + 2.0 * sigma * sigma;
        let part = |e: &Estimate| e.df.map_or(0.0, |df| e.variance * e.variance / df);
        let measured = part(old) + part(new);
        let df = (measured > 0.0).then(|| variance * variance / measured);
        (new.mean - old.mean, libm::sqrt(variance), df)
    };
    let quantile = |q: f64| t_quantile(q, df.unwrap_or(f64::INFINITY));
    let half = quantile(0.975) * se;
    let gain = better.sign() * change;
    SessionChange {
        by_history,
        change,
        ratio: libm::exp(change),
        se,
        df,
        interval95: (change - half, change + half),
        regression: gain + quantile(0.95) * se < 0.0 && gain < -libm::log1p(margin),
    }
}
