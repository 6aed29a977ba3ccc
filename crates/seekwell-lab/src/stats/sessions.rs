//! Compares two sessions (for example two days, kernels or builds): the change of a treatment
//! relative to a control that both sessions contain.

use super::{Better, deviation, mean, t_quantile};

/// The values of both sessions by block. In each session, the shorter of the two lists determines
/// the number of blocks.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// Values of the treatment in the old session.
    pub old_treatment: Vec<f64>,
    /// Values of the control in the old session.
    pub old_control: Vec<f64>,
    /// Values of the treatment in the new session.
    pub new_treatment: Vec<f64>,
    /// Values of the control in the new session.
    pub new_control: Vec<f64>,
    /// Mean log ratios of earlier sessions of the same cell. They are used if there are at least
    /// five.
    pub history: Vec<f64>,
    /// Direction of the metric.
    pub better: Better,
    /// Assumed standard deviation, over sessions, of the log ratio of two schedulers.
    pub sigma: f64,
    /// Relative difference that matters.
    pub margin: f64,
}

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
    /// Standard error. Includes the variation between sessions: [`Sessions::sigma`], or the spread
    /// of the history.
    pub se: f64,
    /// Degrees of freedom. `None` if the sessions have no spread; the error is then
    /// [`Sessions::sigma`] alone, which is treated as known.
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

/// Compares two sessions. Returns `None` unless each session has at least two blocks and all values
/// are positive. The old session is not used if there are at least five earlier sessions.
pub fn diff_sessions(of: &Sessions) -> Option<SessionChange> {
    let logs = |t: &[f64], c: &[f64]| -> Option<Estimate> {
        let pairs: Vec<_> = t.iter().zip(c).collect();
        let good = pairs.len() > 1 && pairs.iter().all(|(t, c)| **t > 0.0 && **c > 0.0);
        good.then(|| {
            let log = |(t, c): &(&f64, &f64)| libm::log(**t) - libm::log(**c);
            let all: Vec<f64> = pairs.iter().map(log).collect();
            let sd = deviation(&all);
            Estimate {
                mean: mean(&all),
                variance: sd * sd / all.len() as f64,
                df: Some(all.len() as f64 - 1.0),
            }
        })
    };
    let new = logs(&of.new_treatment, &of.new_control)?;
    let old = match of.history.len() >= HISTORY_MIN {
        true => new,
        false => logs(&of.old_treatment, &of.old_control)?,
    };
    Some(session_change(
        &old,
        &new,
        &of.history,
        of.sigma,
        of.better,
        of.margin,
    ))
}
