//! Rank methods: signed rank test, Hodges-Lehmann estimate, Mann-Kendall test, Theil-Sen slope.

use super::{median, midranks, normal_cdf};

/// Result of Wilcoxon's signed rank test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRank {
    /// Number of non-zero differences.
    pub n: usize,
    /// Sum of the ranks of the positive differences.
    pub w: f64,
    /// Two-sided p value. Up to 50 differences it is exact over all combinations of signs,
    /// including ties. For more differences it is a normal approximation.
    pub p: f64,
}

/// Largest number of differences for which the exact distribution is used.
const EXACT_MAX: usize = 50;

/// Computes Wilcoxon's signed rank test. Differences of 0 are left out, and ties share their mean
/// rank.
pub fn signed_rank(differences: &[f64]) -> SignedRank {
    let kept: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let n = kept.len();
    let sizes: Vec<f64> = kept.iter().map(|d| d.abs()).collect();
    let ranks = midranks(&sizes);
    let positive = kept.iter().zip(&ranks).filter(|(d, _)| **d > 0.0);
    let w: f64 = positive.map(|(_, r)| r).sum();
    if n == 0 {
        return SignedRank { n, w, p: 1.0 };
    }
    let total: f64 = ranks.iter().sum();
    let p = if n <= EXACT_MAX {
        // Doubled ranks are integers even if there are ties.
        let doubled: Vec<usize> = ranks.iter().map(|r| (r * 2.0) as usize).collect();
        let chance = flips(&doubled);
        let at = (w * 2.0) as usize;
        let below: f64 = chance[..=at].iter().sum();
        let above: f64 = chance[at..].iter().sum();
        (2.0 * below.min(above)).min(1.0)
    } else {
        let squares: f64 = ranks.iter().map(|r| r * r).sum();
        let z = ((w - total / 2.0).abs() - 0.5).max(0.0) / libm::sqrt(squares / 4.0);
        (2.0 * normal_cdf(-z)).min(1.0)
    };
    SignedRank { n, w, p }
}

/// Returns the probability of each rank sum if each sign is positive with probability 1/2. It is
/// computed by convolution.
fn flips(ranks: &[usize]) -> Vec<f64> {
    let mut chance = vec![0.0; ranks.iter().sum::<usize>() + 1];
    chance[0] = 1.0;
    let mut top = 0;
    for &r in ranks {
        for s in (0..=top).rev() {
            let half = chance[s] / 2.0;
            chance[s] = half;
            chance[s + r] += half;
        }
        top += r;
    }
    chance
}

/// The Hodges-Lehmann estimate of the effect in a typical run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HodgesLehmann {
    /// Median of the Walsh averages (the means of all pairs of differences).
    pub estimate: f64,
    /// 95 % confidence interval; `None` for fewer than six differences.
    pub interval95: Option<(f64, f64)>,
}

/// Returns the Hodges-Lehmann estimate; `None` without differences.
pub fn hodges_lehmann(differences: &[f64]) -> Option<HodgesLehmann> {
    let n = differences.len();
    let mut walsh = Vec::with_capacity(n * (n + 1) / 2);
    for (i, a) in differences.iter().enumerate() {
        walsh.extend(differences[i..].iter().map(|b| (a + b) / 2.0));
    }
    walsh.sort_by(f64::total_cmp);
    let estimate = median(&walsh)?;
    // Without ties, the distribution is that of the ranks 1 to n. Ties are ignored here.
    let interval95 = if n < 6 {
        None
    } else if n <= EXACT_MAX {
        let chance = flips(&(1..=n).collect::<Vec<_>>());
        let mut sum = 0.0;
        let from_end = chance
            .iter()
            .take_while(|p| {
                sum += **p;
                sum <= 0.025
            })
            .count();
        ends(&walsh, from_end)
    } else {
        let n = n as f64;
        let sd = libm::sqrt(n * (n + 1.0) * (2.0 * n + 1.0) / 24.0);
        let low = n * (n + 1.0) / 4.0 - 1.959_963_984_540_054 * sd;
        ends(&walsh, low.max(0.0) as usize)
    };
    Some(HodgesLehmann {
        estimate,
        interval95,
    })
}

/// Returns the `c`-th smallest and the `c`-th largest value, counted from 1.
fn ends(sorted: &[f64], c: usize) -> Option<(f64, f64)> {
    let low = *sorted.get(c.checked_sub(1)?)?;
    let high = *sorted.get(sorted.len().checked_sub(c)?)?;
    Some((low, high))
}

/// Returns S of the Mann-Kendall test and its two-sided p value. The p value is exact for at most
/// ten values without ties.
pub fn mann_kendall(values: &[f64]) -> (i64, f64) {
    let n = values.len();
    let mut s = 0_i64;
    let mut tied = false;
    for (i, a) in values.iter().enumerate() {
        for b in &values[i + 1..] {
            tied |= a == b;
            s += i64::from(b > a) - i64::from(b < a);
        }
    }
    if n < 2 {
        return (0, 1.0);
    }
    if n <= 10 && !tied {
        return (s, exact_kendall(n, s));
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let term = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let groups = sorted.chunk_by(|a, b| a == b);
    let ties: f64 = groups.map(|g| term(g.len() as f64)).sum();
    let variance = (term(n as f64) - ties) / 18.0;
    if variance <= 0.0 {
        return (s, 1.0);
    }
    let z = (s.unsigned_abs() as f64 - 1.0).max(0.0) / libm::sqrt(variance);
    (s, (2.0 * normal_cdf(-z)).min(1.0))
}

/// Returns the fraction of all orders of `n` values whose rises minus falls are at least as far
/// from 0 as `s`.
fn exact_kendall(n: usize, s: i64) -> f64 {
    // Counts the orders by their number of inversions: the k-th value adds 0 to k - 1 inversions.
    let mut count = vec![1.0_f64];
    for k in 2..=n {
        let mut next = vec![0.0; count.len() + k - 1];
        for (i, c) in count.iter().enumerate() {
            for slot in &mut next[i..i + k] {
                *slot += c;
            }
        }
        count = next;
    }
    let pairs = (n * (n - 1) / 2) as i64;
    let all: f64 = count.iter().sum();
    let extreme = count.iter().enumerate();
    let extreme = extreme.filter(|(i, _)| (pairs - 2 * *i as i64).abs() >= s.abs());
    (extreme.map(|(_, c)| c).sum::<f64>() / all).min(1.0)
}

/// Returns the median slope per step over all pairs of values; `None` for fewer than two values.
pub fn theil_sen(values: &[f64]) -> Option<f64> {
    let mut slopes = Vec::new();
    for (i, a) in values.iter().enumerate() {
        let later = values[i + 1..].iter().enumerate();
        slopes.extend(later.map(|(k, b)| (b - a) / (k + 1) as f64));
    }
    median(&slopes)
}
