//! Comparisons without blocks: results from elsewhere, with unknown order and unknown pairs.
//!
//! If single runs are known, Welch's test on logarithms is used. If only means with their errors
//! were published, Welch's test runs on the raw scale with Satterthwaite's degrees of freedom. The
//! ratio's interval then comes from the delta method on the log scale. With one run, or no error,
//! only the ratio is reported. Equal numbers of runs do not make pairs.
//!
//! Claims about published figures must survive the rounding of those figures. The test reduces the
//! difference by half a unit of both last digits and enlarges the errors by half a unit
//! ([`Comparison::p_rounded`]).

use super::comparison::{Comparison, Test};
use crate::results::{MetricInfo, Summary};
use crate::stats::{self, describe, satterthwaite, stored, t_tail2};

impl Comparison {
    /// Compares two samples whose blocks are not known; `None` if one sample is empty.
    pub(super) fn welch(
        one: usize,
        other: usize,
        x: &[f64],
        y: &[f64],
        metric: &MetricInfo,
    ) -> Option<Self> {
        if x.is_empty() || y.is_empty() {
            return None;
        }
        let Some(w) = stats::welch_log(x, y) else {
            // A value has no logarithm, so the difference is used, in the metric's unit.
            let (a, b) = (summed(one, x, metric), summed(other, y, metric));
            let w = stats::welch_summary(&plain(&a), &plain(&b));
            let c = Comparison {
                mean: Some(stored(w.difference)),
                se: w.se.map(stored),
                interval95: w.interval95.map(both),
                step_added: 0.0,
                ratio: None,
                ratio95: None,
                ratio_of_means: None,
                ..Comparison::summaries(&a, &b, metric)
            };
            return Some(c);
        };
        let (a, b) = (summed(one, x, metric), summed(other, y, metric));
        Some(Comparison {
            test: Test::Welch,
            n: x.len().min(y.len()),
            mean: Some(stored(w.mean)),
            se: w.se.map(stored),
            // Equal numbers on both sides have no spread and no degrees of freedom.
            df: w
                .df
                .or(w.se.map(|_| (x.len().min(y.len()) - 1) as f64))
                .map(stored),
            step_added: coarse(metric, &a, &b),
            ratio: Some(stored(w.ratio)),
            ratio95: w
                .interval95
                .map(|(l, h)| (stored(libm::exp(l)), stored(libm::exp(h)))),
            interval95: w.interval95.map(both),
            ratio_of_means: (a.mean * b.mean > 0.0).then(|| stored(a.mean / b.mean)),
            p: w.p.map(stored),
            ..Comparison::empty(one, other)
        })
    }

    /// Compares published means and errors.
    pub(super) fn summaries(a: &Summary, b: &Summary, metric: &MetricInfo) -> Self {
        let (x, y) = (plain(a), plain(b));
        let w = stats::welch_summary(&x, &y);
        let worst = Worst::of(a, b);
        // If the errors were rounded to 0, only half a unit of the last digit is known.
        let zero = w.se == Some(0.0);
        let (ex, ey) = match worst.as_ref().filter(|_| zero) {
            Some(worst) => (Some(worst.errors.0), Some(worst.errors.1)),
            None => (x.error(), y.error()),
        };
        let relative = ex.zip(ey).filter(|_| w.ratio.is_some());
        let relative = relative.map(|(ex, ey)| (ex / x.mean, ey / y.mean));
        let least = f64::from(a.n.unwrap_or(2).min(b.n.unwrap_or(2)).max(2) - 1);
        let df = w.df.or(worst.as_ref().and_then(|r| r.df)).unwrap_or(least);
        Comparison {
            test: Test::WelchSummary,
            n: a.n.unwrap_or(1).min(b.n.unwrap_or(1)) as usize,
            mean: Some(stored(w.ratio.map_or(w.difference, libm::log))),
            se: relative
                .map(|(ex, ey)| stored(libm::sqrt(ex * ex + ey * ey)))
                .or(w.se),
            df: w.se.map(|_| stored(df)),
            step_added: coarse(metric, a, b),
            ratio: w.ratio.map(stored),
            ratio95: w.ratio95.map(both),
            interval95: match w.ratio95 {
                Some((l, h)) => Some((stored(libm::log(l)), stored(libm::log(h)))),
                None => w.interval95.map(both),
            },
            ratio_of_means: w.ratio.map(stored),
            p: w.p.map(stored),
            p_rounded: w.p.zip(worst).map(|(p, worst)| stored(worst.p.max(p))),
            ..Comparison::empty(a.treatment, b.treatment)
        }
    }
}

fn both((low, high): (f64, f64)) -> (f64, f64) {
    (stored(low), stored(high))
}

fn plain(s: &Summary) -> stats::Summary {
    stats::Summary {
        mean: s.mean,
        se: s.se,
        sd: s.sd,
        n: s.n,
    }
}

/// Summarises runs as a publication would.
pub(super) fn summed(treatment: usize, runs: &[f64], metric: &MetricInfo) -> Summary {
    let d = describe(&runs.iter().map(|v| Some(*v)).collect::<Vec<_>>());
    Summary {
        treatment,
        metric: metric.clone(),
        mean: d.mean.unwrap_or(0.0),
        se: d.se,
        sd: d.sd,
        n: u32::try_from(runs.len()).ok(),
        ..Summary::default()
    }
}

/// Two published rows with the worst possible rounding.
struct Worst {
    p: f64,
    errors: (f64, f64),
    df: Option<f64>,
}

impl Worst {
    /// `None` unless the number of digits is known and errors were published.
    fn of(a: &Summary, b: &Summary) -> Option<Self> {
        let raised = |s: &Summary| {
            let half = s.error_step? / 2.0;
            let raised = stats::Summary {
                se: s.se.map(|e| e + half),
                sd: s.sd.map(|e| e + half),
                ..plain(s)
            };
            raised.error()
        };
        let (ea, eb) = (raised(a)?, raised(b)?);
        let d = (a.mean - b.mean).abs() - a.mean_step? / 2.0 - b.mean_step? / 2.0;
        let d = d.max(0.0);
        let part = |e: f64, s: &Summary| (e * e, f64::from(s.n.unwrap_or(2).max(2) - 1));
        let df = satterthwaite(&[part(ea, a), part(eb, b)]);
        let se = libm::sqrt(ea * ea + eb * eb);
        Some(Worst {
            p: df.map_or(f64::from(d == 0.0), |df| t_tail2(d / se, df)),
            errors: (ea, eb),
            df,
        })
    }
}

/// Half-width added for a metric with steps, if a side's spread is finer than half a step.
fn coarse(metric: &MetricInfo, a: &Summary, b: &Summary) -> f64 {
    let Some(step) = metric.step.filter(|_| a.mean > 0.0 && b.mean > 0.0) else {
        return 0.0;
    };
    let sd = |s: &Summary| match (plain(s).error(), s.n) {
        (Some(se), Some(n)) => se * libm::sqrt(f64::from(n)),
        _ => 0.0,
    };
    match sd(a) < step / 2.0 || sd(b) < step / 2.0 {
        true => (step / a.mean + step / b.mean) / 2.0,
        false => 0.0,
    }
}
