//! Compares a treatment with the reference: paired t test on log ratios within blocks, Holm's
//! correction.

use super::{Better, EQUAL, deviation, mean, range, t_quantile, t_tail2};

/// The kind of differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Logarithms of ratios.
    Log,
    /// Plain differences: a value is 0 or negative, so there is no ratio.
    Difference,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Paired {
    /// Blocks in which both ran.
    pub n: usize,
    /// Runs without a partner in their block.
    pub dropped: usize,
    /// The kind of differences.
    pub scale: Scale,
    /// Mean difference; `None` if no block has both.
    pub mean: Option<f64>,
    /// Standard deviation of the differences; `None` below two blocks.
    pub sd: Option<f64>,
    /// Standard error, including the stopping rule's factor where it applies.
    pub se: Option<f64>,
    /// Degrees of freedom.
    pub df: Option<f64>,
    /// Two-sided p.
    pub p: Option<f64>,
    /// 95 % interval of `mean`.
    pub interval95: Option<(f64, f64)>,
    /// 90 % interval: two one-sided tests at 5 %.
    pub interval90: Option<(f64, f64)>,
    /// Blocks in which the treatment is better.
    pub ahead: usize,
    /// Blocks in which both are equal.
    pub equal: usize,
    /// Half-width added because the metric has whole steps that are coarser than its spread.
    pub step_added: f64,
    /// exp of the mean, on the log scale.
    pub ratio: Option<f64>,
    /// exp of both ends of the interval.
    pub ratio95: Option<(f64, f64)>,
    /// The differences, block by block.
    pub differences: Vec<f64>,
}

/// Compares two treatments over blocks. `None` in a side marks a missing run.
///
/// `corrected`: this comparison delayed the stop, so the stopping rule ended the cell when its
/// spread happened to be small. Plain intervals are then too narrow, so the standard error is
/// multiplied by sqrt(1 + 4/n). `step`: the metric has whole steps of this size. If a side's
/// standard deviation is below half a step, the interval grows by the mean relative step.
pub fn paired(
    treatment: &[Option<f64>],
    reference: &[Option<f64>],
    better: Better,
    corrected: bool,
    step: Option<f64>,
) -> Paired {
    let blocks = treatment.len().max(reference.len());
    let at = |side: &[Option<f64>], b: usize| side.get(b).copied().flatten();
    let pairs: Vec<(f64, f64)> = (0..blocks)
        .filter_map(|b| at(treatment, b).zip(at(reference, b)))
        .collect();
    let alone = |b: &usize| at(treatment, *b).is_some() != at(reference, *b).is_some();
    let dropped = (0..blocks).filter(alone).count();
    let n = pairs.len();
    let log = pairs.iter().all(|(t, r)| *t > 0.0 && *r > 0.0);
    let scale = if log { Scale::Log } else { Scale::Difference };
    let differences: Vec<f64> = pairs
        .iter()
        .map(|(t, r)| {
            if log {
                libm::log(*t) - libm::log(*r)
            } else {
                t - r
            }
        })
        .collect();
    let m = mean(&differences);
    let (low, high) = range(&differences);
    let sd = (n > 1).then(|| {
        if high - low <= EQUAL {
            0.0
        } else {
            deviation(&differences)
        }
    });
    let factor = if corrected {
        libm::sqrt(1.0 + 4.0 / n as f64)
    } else {
        1.0
    };
    let se = sd.map(|s| s / libm::sqrt(n as f64) * factor);
    let df = sd.map(|_| (n - 1) as f64);
    let p = se
        .zip(df)
        .map(|(se, df)| match (se == 0.0, m.abs() <= EQUAL) {
            (true, true) => 1.0,
            (true, false) => 0.0,
            _ => t_tail2(m / se, df),
        });
    let step_added = match step.filter(|s| *s > 0.0 && log && n > 0) {
        Some(step) => added_by_step(&pairs, step),
        None => 0.0,
    };
    let interval = |q: f64| {
        se.zip(df).map(|(se, df)| {
            let half = t_quantile(q, df) * se + step_added;
            (m - half, m + half)
        })
    };
    let interval95 = interval(0.975);
    let sign = better.sign();
    Paired {
        n,
        dropped,
        scale,
        mean: (n > 0).then_some(m),
        sd,
        se,
        df,
        p,
        interval95,
        interval90: interval(0.95),
        ahead: differences.iter().filter(|d| sign * **d > EQUAL).count(),
        equal: differences.iter().filter(|d| d.abs() <= EQUAL).count(),
        step_added,
        ratio: (log && n > 0).then(|| libm::exp(m)),
        ratio95: interval95
            .filter(|_| log)
            .map(|(l, h)| (libm::exp(l), libm::exp(h))),
        differences,
    }
}

/// Half the sum of the relative steps, if one side's runs vary by hardly a step.
fn added_by_step(pairs: &[(f64, f64)], step: f64) -> f64 {
    let (t, r): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let coarse = |side: &[f64]| deviation(side) < step / 2.0;
    if coarse(&t) || coarse(&r) {
        (step / mean(&t) + step / mean(&r)) / 2.0
    } else {
        0.0
    }
}

/// Holm's adjusted p values, in the given order. Untestable comparisons (`None`) stay `None` and do
/// not count.
pub fn holm(p: &[Option<f64>]) -> Vec<Option<f64>> {
    let steps = holm_steps(p).into_iter();
    steps.map(|s| s.map(|(adjusted, _)| adjusted)).collect()
}

/// Holm's adjusted p values, and divisors for the error of the intervals. With its divisor, an
/// interval excludes 0 exactly where the adjusted p value is below that error.
pub fn holm_steps(p: &[Option<f64>]) -> Vec<Option<(f64, f64)>> {
    let mut order: Vec<usize> = (0..p.len()).filter(|i| p[*i].is_some()).collect();
    order.sort_by(|a, b| {
        let of = |i: &usize| p[*i].unwrap_or(1.0);
        of(a).total_cmp(&of(b)).then(a.cmp(b))
    });
    let mut out = vec![None; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        let (own, factor) = (p[i].unwrap_or(1.0), (order.len() - rank) as f64);
        largest = largest.max(factor * own);
        let divisor = if own > 0.0 { largest / own } else { factor };
        out[i] = Some((largest.min(1.0), divisor));
    }
    out
}
