//! Comparisons without blocks, for imported results: the order of the runs and their pairs are not
//! known.
//!
//! If single runs are known, Welch's test on logarithms is used. If only means with their errors
//! were published, Welch's test on the values is used, with Satterthwaite's degrees of freedom. The
//! interval of the ratio then comes from the delta method on the log scale. If a side has one run
//! or no error, only the ratio is reported. Runs are not paired even if both sides have equally
//! many.
//!
//! Claims about published values must hold for every possible rounding of their digits. So the test
//! reduces the difference by half a unit of the last digit of each mean. It also enlarges each
//! error by half a unit of its last digit ([`Comparison::p_rounded`]).

use super::comparison::{Comparison, Test};
use crate::data::{MetricInfo, Summary};
use crate::stats::{self, describe, satterthwaite, stored, t_tail2};

impl Comparison {
    /// Compares two samples whose blocks are not known. Returns `None` if a sample is empty.
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
            // A value is 0 or negative and has no logarithm, so the test uses the difference, in
            // the unit of the metric.
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
            // If all values are equal, there is no spread, and the degrees of freedom are not
            // defined.
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

    /// Compares two published means with their errors.
    pub(super) fn summaries(a: &Summary, b: &Summary, metric: &MetricInfo) -> Self {
        let (x, y) = (plain(a), plain(b));
        let w = stats::welch_summary(&x, &y);
        let worst = Worst::between(a, b);
        // If both published errors are 0, the true errors are at most half a unit of their last
        // digit.
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

/// Reduces runs to a mean with its error, as in a publication.
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

/// The comparison of two published results under the worst possible rounding of their digits.
struct Worst {
    p: f64,
    errors: (f64, f64),
    df: Option<f64>,
}

impl Worst {
    /// Returns `None` if the number of digits is not known, or if no errors were published.
    fn between(a: &Summary, b: &Summary) -> Option<Self> {
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

/// Returns the half-width that is added to the interval for a metric with steps. It is 0 unless the
/// spread of a side is finer than half a step.
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
