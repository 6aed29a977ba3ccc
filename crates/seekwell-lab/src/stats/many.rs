//! Combines several workloads on one device: scores, undefeated treatments, recommendation.

use super::welch::satterthwaite;
use super::{holm, holm_steps, t_quantile, t_tail2};

/// The contribution of one cell to a score: an independent estimate of a log ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Mean log ratio; positive is better.
    pub mean: f64,
    /// Standard error; `None` for a cell with one run.
    pub se: Option<f64>,
    /// Degrees of freedom of the standard error.
    pub df: Option<f64>,
}

/// A weighted geometric mean of ratios, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Combined {
    /// Weighted mean of the log ratios.
    pub mean: f64,
    /// exp of `mean`.
    pub ratio: f64,
    /// Standard error; `None` if a cell has no standard error.
    pub se: Option<f64>,
    /// Satterthwaite's degrees of freedom; `None` if all parts are exact.
    pub df: Option<f64>,
    /// 95 % confidence interval of `mean`.
    pub interval95: Option<(f64, f64)>,
    /// Upper end of the one-sided 95 % interval of `mean`.
    pub upper95: Option<f64>,
    /// Two-sided p value.
    pub p: Option<f64>,
}

/// Combines cells with the given weights, which need not add up to 1. Returns `None` unless their
/// sum is positive.
pub fn combine(parts: &[Part], weights: &[f64]) -> Option<Combined> {
    let sum: f64 = weights.iter().take(parts.len()).sum();
    if parts.is_empty() || parts.len() != weights.len() || sum <= 0.0 {
        return None;
    }
    let shares: Vec<f64> = weights.iter().map(|w| w / sum).collect();
    let mean: f64 = parts.iter().zip(&shares).map(|(p, w)| w * p.mean).sum();
    let all = parts.iter().all(|p| p.se.is_some());
    let scaled: Vec<(f64, f64)> = parts
        .iter()
        .zip(&shares)
        .map(|(p, w)| {
            let se = w * p.se.unwrap_or(0.0);
            (se * se, p.df.unwrap_or(f64::INFINITY))
        })
        .collect();
    let variance: f64 = scaled.iter().map(|s| s.0).sum();
    let se = all.then(|| libm::sqrt(variance));
    let df = satterthwaite(&scaled).filter(|_| all);
    let half = |q: f64| se.map(|se| df.map_or(0.0, |df| t_quantile(q, df)) * se);
    Some(Combined {
        mean,
        ratio: libm::exp(mean),
        se,
        df,
        interval95: half(0.975).map(|h| (mean - h, mean + h)),
        upper95: half(0.95).map(|h| mean + h),
        p: se.map(|se| match df {
            Some(df) => t_tail2(mean / se, df),
            None => f64::from(mean == 0.0),
        }),
    })
}

/// The score of one treatment against another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Against {
    /// Index of the first treatment.
    pub one: usize,
    /// Index of the treatment that `one` is compared with.
    pub other: usize,
    /// Difference of the two scores; positive if `one` is better.
    pub mean: f64,
    /// Two-sided p value before correction.
    pub p: Option<f64>,
}

/// What to do with the incumbent scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Another treatment is better than the incumbent by more than the margin.
    Change,
    /// All treatments are equivalent, or the incumbent is the best.
    Keep,
    /// More blocks are needed.
    CannotTell,
}

impl Decision {
    /// Returns the name used in files and test vectors.
    pub const fn word(self) -> &'static str {
        match self {
            Decision::Change => "change",
            Decision::Keep => "keep",
            Decision::CannotTell => "cannot_tell",
        }
    }
}

/// Two-sided error probability of the claim that a treatment is better than the incumbent.
pub const CHANGE_ALPHA: f64 = 0.02;

/// A recommendation with the data that supports it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// Undefeated treatments, in the given order.
    pub retained: Vec<usize>,
    /// Whether to change the scheduler.
    pub decision: Decision,
    /// The treatment to set.
    pub pick: usize,
    /// The treatment with the highest score.
    pub best: usize,
    /// For each treatment, the divisor of the error probability of its interval against the
    /// incumbent. With this divisor, the interval excludes 0 exactly if the treatment is shown to
    /// be ahead. It is 1 for treatments that are behind.
    pub divisors: Vec<f64>,
}

/// Recommends a treatment. `scores` are log ratios to the incumbent (0 for the incumbent), ordered
/// from the simplest to the most complex treatment. `upper95` holds their one-sided upper bounds;
/// `None` for the incumbent, or if there is no interval. `pairs` contains each pair once. Returns
/// `None` without treatments.
///
/// A treatment beats the incumbent if its p value is at most [`CHANGE_ALPHA`] after Holm's
/// correction. The correction covers only the treatments that are ahead of the incumbent. The
/// method was simulated for 2 to 8 treatments, 6 to 30 blocks and 1 to 6 workloads. The runs had a
/// spread of 3 to 20 %. If all treatments are equal, at most 1.3 % of the experiments recommend a
/// change (0.8 % with 5 treatments, 6 blocks and 6 workloads).
///
/// Three alternatives are worse. Holm's correction over all pairs has the same error, but 6
/// treatments that are behind reduce its power from 52 to 11 %. A [`CHANGE_ALPHA`] of 5 %
/// recommends a change in 3.2 % of the experiments. A global F test before the comparisons gives
/// 6.5 % if some treatments are far behind.
pub fn recommend(
    scores: &[f64],
    upper95: &[Option<f64>],
    incumbent: usize,
    pairs: &[Against],
    margin: f64,
) -> Option<Recommendation> {
    let mu = libm::log1p(margin);
    let shown = |p: Option<f64>, alpha: f64| p.is_some_and(|p| p <= alpha);
    // Defeats of all treatments but the incumbent are decided with a correction over all pairs.
    let adjusted = holm(&pairs.iter().map(|p| p.p).collect::<Vec<_>>());
    let mut beaten = vec![false; scores.len()];
    for (pair, _) in pairs
        .iter()
        .zip(&adjusted)
        .filter(|(_, p)| shown(**p, 0.05))
    {
        let loser = if pair.mean > 0.0 {
            pair.other
        } else {
            pair.one
        };
        *beaten.get_mut(loser)? = true;
    }
    // Treatments that are ahead of the incumbent, with their p values.
    let leader = |pair: &Against| match (pair.one == incumbent, pair.other == incumbent) {
        (true, _) if pair.mean < 0.0 => Some((pair.other, pair.p)),
        (_, true) if pair.mean > 0.0 => Some((pair.one, pair.p)),
        _ => None,
    };
    let leaders: Vec<(usize, Option<f64>)> = pairs.iter().filter_map(leader).collect();
    let steps = holm_steps(&leaders.iter().map(|l| l.1).collect::<Vec<_>>());
    let mut divisors = vec![1.0; scores.len()];
    let mut better = vec![false; scores.len()];
    for ((treatment, _), step) in leaders.iter().zip(steps) {
        if let Some((p, divisor)) = step {
            *divisors.get_mut(*treatment)? = divisor;
            better[*treatment] = shown(Some(p), CHANGE_ALPHA);
        }
    }
    *beaten.get_mut(incumbent)? = better.contains(&true);
    let retained: Vec<usize> = (0..scores.len()).filter(|i| !beaten[*i]).collect();
    // If several treatments have the same score, the simplest is chosen.
    let highest = |a: usize, b: usize| if scores[b] > scores[a] { b } else { a };
    let best = (0..scores.len()).reduce(highest)?;
    let own = *scores.get(incumbent)?;
    let small = |i: &usize| *i == incumbent || upper95[*i].is_some_and(|u| u < mu);
    let gains = |i: &usize| better[*i] && scores[*i] - own > mu;
    let (decision, pick) = if let Some(top) = (0..scores.len()).filter(gains).reduce(highest) {
        let near = |i: &usize| gains(i) && scores[top] - scores[*i] <= mu / 2.0;
        let simplest = retained.iter().copied().find(near);
        (Decision::Change, simplest.unwrap_or(top))
    } else if retained == [incumbent] || (0..scores.len()).all(|i| small(&i)) {
        (Decision::Keep, incumbent)
    } else {
        (Decision::CannotTell, incumbent)
    };
    Some(Recommendation {
        retained,
        decision,
        pick,
        best,
        divisors,
    })
}

/// Returns the weight of one workload at which `t` has the same score as `b`. `in_t` and `in_b` are
/// their scores in this workload; `others_t` and `others_b` are their mean scores in all other
/// workloads. Returns `None` if there is no such weight between 0 and 1.
pub fn switch_weight(in_t: f64, in_b: f64, others_t: f64, others_b: f64) -> Option<f64> {
    let others = others_t - others_b;
    let weight = others / (others - (in_t - in_b));
    (weight > 0.0 && weight < 1.0).then_some(weight)
}
