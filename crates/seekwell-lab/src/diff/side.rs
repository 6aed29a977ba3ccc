//! The estimate for a treatment from one session. An absolute estimate is the mean of the
//! logarithms of the treatment's values. The other estimate is the mean of its log ratios to a
//! control.

use crate::results::{Results, Summary};
use crate::stats::{self, satterthwaite};
use std::collections::BTreeMap;

/// An estimate on the log scale, with its uncertainty.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The mean.
    pub mean: f64,
    /// Variance of the mean; 0 if the runs do not differ, or if there is only one run.
    pub variance: f64,
    /// Degrees of freedom; `None` if there is no spread.
    pub df: Option<f64>,
    /// Number of runs, or of pairs of runs.
    pub n: usize,
    /// True if there are two or more runs, or a published error.
    pub measured: bool,
}

/// Returns the values of a treatment by block.
fn by_block(r: &Results, cell: usize, treatment: usize, metric: &str) -> BTreeMap<u32, f64> {
    let of = r
        .runs
        .iter()
        .filter(|x| x.key.cell == cell && x.key.treatment == treatment);
    of.filter_map(|x| Some((x.key.block, x.value(metric)?)))
        .collect()
}

fn logs(values: &[f64]) -> Option<Vec<f64>> {
    let good = !values.is_empty() && values.iter().all(|v| *v > 0.0 && v.is_finite());
    good.then(|| values.iter().map(|v| libm::log(*v)).collect())
}

fn of_logs(logs: &[f64]) -> Known {
    let n = logs.len();
    let sd = stats::deviation(logs);
    let variance = sd * sd / n as f64;
    Known {
        mean: stats::mean(logs),
        variance,
        df: (n > 1 && variance > 0.0).then(|| (n - 1) as f64),
        n,
        measured: n > 1,
    }
}

fn published(r: &Results, cell: usize, treatment: usize, metric: &str) -> Option<Known> {
    let is = |s: &&Summary| s.cell == cell && s.treatment == treatment && s.metric.name == metric;
    let s = r.summaries.iter().find(is)?;
    let plain = stats::Summary {
        mean: s.mean,
        se: s.se,
        sd: s.sd,
        n: s.n,
    };
    let relative = plain.error().map(|e| e / s.mean);
    (s.mean > 0.0).then(|| Known {
        mean: libm::log(s.mean),
        variance: relative.map_or(0.0, |e| e * e),
        df: relative
            .filter(|e| *e > 0.0)
            .map(|_| f64::from(s.n.unwrap_or(2).max(2) - 1)),
        n: s.n.unwrap_or(1) as usize,
        measured: relative.is_some(),
    })
}

/// Returns the mean of the logarithms of a treatment's values. Returns `None` without values, or if
/// a value is not positive.
pub fn absolute(r: &Results, cell: usize, treatment: usize, metric: &str) -> Option<Known> {
    let values: Vec<f64> = by_block(r, cell, treatment, metric).into_values().collect();
    match values.is_empty() {
        true => published(r, cell, treatment, metric),
        false => logs(&values).map(|l| of_logs(&l)),
    }
}

/// Returns the mean log ratio to the control. The ratios are taken within blocks if the blocks are
/// known; otherwise treatment and control are two samples.
pub fn log_ratio(
    r: &Results,
    cell: usize,
    (treatment, control): (usize, usize),
    metric: &str,
) -> Option<Known> {
    if r.about.paired {
        let control = by_block(r, cell, control, metric);
        let own = by_block(r, cell, treatment, metric);
        let pairs = own.iter().filter_map(|(b, v)| Some((*v, *control.get(b)?)));
        let (own, control): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let (own, control) = (logs(&own)?, logs(&control)?);
        let differences: Vec<f64> = own.iter().zip(&control).map(|(a, b)| a - b).collect();
        return Some(of_logs(&differences));
    }
    let a = absolute(r, cell, treatment, metric)?;
    let b = absolute(r, cell, control, metric)?;
    let parts = [
        (a.variance, a.df.unwrap_or(f64::INFINITY)),
        (b.variance, b.df.unwrap_or(f64::INFINITY)),
    ];
    Some(Known {
        mean: a.mean - b.mean,
        variance: a.variance + b.variance,
        df: satterthwaite(&parts),
        n: a.n.min(b.n),
        measured: a.measured && b.measured,
    })
}

/// Results, with the index of a cell in them.
type At<'a> = (&'a Results, usize);

/// Returns the values of the runs with the same seed in both results, as pairs of old and new.
pub fn by_seed(
    (old, old_cell): At<'_>,
    (new, new_cell): At<'_>,
    (old_treatment, new_treatment): (usize, usize),
    metric: &str,
) -> Vec<(f64, f64)> {
    let of = |r: &Results, cell: usize, treatment: usize| -> BTreeMap<u64, f64> {
        let runs = r.runs.iter();
        let own = runs.filter(|x| x.key.cell == cell && x.key.treatment == treatment);
        own.filter_map(|x| Some((x.seed, x.value(metric)?)))
            .collect()
    };
    let now = of(new, new_cell, new_treatment);
    let before = of(old, old_cell, old_treatment);
    let pairs = before
        .into_iter()
        .filter_map(|(seed, v)| Some((v, *now.get(&seed)?)));
    pairs.collect()
}
