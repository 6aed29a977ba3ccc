//! Compares a treatment with the reference: a paired t test on log ratios within blocks. Also
//! contains Holm's correction.

use super::{Better, EQUAL, deviation, mean, range, t_quantile, t_tail2};

/// The scale on which two treatments are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Logarithms of the ratios.
    Log,
    /// Differences of the values. Used if a value is 0 or negative, so that there is no ratio.
    Difference,
}

/// The comparison of two treatments over blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Paired {
    /// Number of blocks in which both treatments have a value.
    pub n: usize,
    /// Number of runs without a partner in their block.
    pub dropped: usize,
    /// The scale of the differences.
    pub scale: Scale,
    /// Mean of the differences; `None` if no block contains both treatments.
    pub mean: Option<f64>,
    /// Standard deviation of the differences; `None` for fewer than two blocks.
    pub sd: Option<f64>,
    /// Standard error. Includes the correction factor for the stopping rule where it applies.
    pub se: Option<f64>,
    /// Degrees of freedom.
    pub df: Option<f64>,
    /// Two-sided p value.
    pub p: Option<f64>,
    /// 95 % confidence interval of `mean`.
    pub interval95: Option<(f64, f64)>,
    /// 90 % confidence interval of `mean`; it corresponds to two one-sided tests at 5 %.
    pub interval90: Option<(f64, f64)>,
    /// Number of blocks in which the treatment is better.
    pub ahead: usize,
    /// Number of blocks in which both treatments are equal.
    pub equal: usize,
    /// Half-width that was added to the intervals because the steps of the metric are coarser than
    /// its spread.
    pub step_added: f64,
    /// Ratio treatment / reference: exp of the mean. `None` unless the scale is logarithmic.
    pub ratio: Option<f64>,
    /// 95 % confidence interval of `ratio`.
    pub ratio95: Option<(f64, f64)>,
    /// The difference of each block that contains both treatments.
    pub differences: Vec<f64>,
}

/// Compares two treatments over blocks. `None` in either slice is a missing run.
///
/// `corrected` means that this comparison delayed the stop: the stopping rule stopped the cell when
/// the spread of this comparison happened to be small. The plain interval would be too narrow, so
/// the standard error is multiplied by sqrt(1 + 4/n). `step` is the step size of a metric with
/// whole steps. If the standard deviation of a side is below half a step, the half-width of the
/// interval grows. It grows by the mean of the two relative steps.
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

/// Returns the half-width that is added for a metric with steps: the mean of the two relative
/// steps. Returns 0 unless the standard deviation of a side is below half a step.
fn added_by_step(pairs: &[(f64, f64)], step: f64) -> f64 {
    let (t, r): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let coarse = |side: &[f64]| deviation(side) < step / 2.0;
    if coarse(&t) || coarse(&r) {
        (step / mean(&t) + step / mean(&r)) / 2.0
    } else {
        0.0
    }
}

/// Returns the p values with Holm's correction, in the given order. Comparisons without a test
/// (`None`) stay `None` and do not count.
pub fn holm(p: &[Option<f64>]) -> Vec<Option<f64>> {
    let steps = holm_steps(p).into_iter();
    steps.map(|s| s.map(|(adjusted, _)| adjusted)).collect()
}

/// Returns the p values with Holm's correction, each with the divisor for the error probability of
/// its interval. With this divisor, the interval excludes 0 exactly if the corrected p value is
/// below the error probability.
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
