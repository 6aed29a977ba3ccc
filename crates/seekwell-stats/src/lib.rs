//! Basic statistics for all crates, for example mean, median, quantile and 95 % confidence
//! interval. Each is defined here only once. The tests and experiment designs that use them are in
//! `seekwell_lab::stats`.
//!
//! Conventions: variances divide by n - 1. An interval is a two-sided 95 % confidence interval. The
//! median of an even number of values is the mean of the two middle values. Quantiles are
//! interpolated linearly between the order statistics (type 7 of Hyndman and Fan, the default of R
//! and numpy). A function returns `None` if its result is undefined, unless its description says
//! otherwise.

mod dist;

pub use dist::{f_tail, normal_cdf, normal_quantile, t_lower, t_quantile, t_tail2};

use statrs::distribution::{Binomial, DiscreteCDF};

/// Values count as equal if their range is at most this. Logarithms of equal ratios can differ in
/// the last bits.
pub const EQUAL: f64 = 1e-12;

/// Returns the arithmetic mean. Returns 0 for no values, so that sums stay defined.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sample standard deviation (n - 1). Returns 0 for fewer than two values, or if the
/// values are equal within a relative difference of [`EQUAL`], because rounding errors are not
/// spread.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let (low, high) = range(values);
    if high - low <= EQUAL * high.abs().max(low.abs()).max(1.0) {
        return 0.0;
    }
    let m = mean(values);
    let squares: f64 = values.iter().map(|v| (v - m) * (v - m)).sum();
    libm::sqrt(squares / (values.len() - 1) as f64)
}

/// Returns the smallest and the largest value; both are 0 for no values.
pub fn range(values: &[f64]) -> (f64, f64) {
    let mut all = values.iter().copied();
    let Some(first) = all.next() else {
        return (0.0, 0.0);
    };
    all.fold((first, first), |(l, h), v| (l.min(v), h.max(v)))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    v
}

/// Returns the middle value, or the mean of the two middle values for an even number; `None` for no
/// values.
pub fn median(values: &[f64]) -> Option<f64> {
    let v = sorted(values);
    let n = v.len();
    match (n, n % 2) {
        (0, _) => None,
        (_, 1) => Some(v[n / 2]),
        _ => Some((v[n / 2 - 1] + v[n / 2]) / 2.0),
    }
}

/// Returns the quantile `q` (0 to 1); `None` for no values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    quantile_sorted(&sorted(values), q)
}

/// Returns the quantile `q` (0 to 1) of values in ascending order; `None` for no values.
pub fn quantile_sorted(ascending: &[f64], q: f64) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let place = q.clamp(0.0, 1.0) * last as f64;
    let low = place as usize;
    let high = (low + 1).min(last);
    Some(ascending[low] + (ascending[high] - ascending[low]) * (place - low as f64))
}

/// Returns half the width of the 95 % interval of the mean, from Student's t with n - 1 degrees of
/// freedom. Returns `None` for fewer than two values. For n = 2 the half-width is 12.7 standard
/// errors, not 1.96.
pub fn half_width(values: &[f64]) -> Option<f64> {
    let n = values.len();
    (n > 1).then(|| t_quantile(0.975, (n - 1) as f64) * deviation(values) / libm::sqrt(n as f64))
}

/// Returns the 95 % interval of the median, from the k-th smallest to the k-th largest value. k is
/// the largest number for which the interval contains the median with a probability of at least 95
/// %, for every distribution. Returns `None` for fewer than six values, because no k satisfies
/// this.
pub fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    let v = sorted(values);
    let n = v.len();
    let below = Binomial::new(0.5, n as u64).ok()?;
    // Bisection for k. The interval does not contain the median if fewer than k values are on one
    // side of the median. The probability of this may be at most 2.5 % for each side.
    let (mut from_end, mut too_many) = (0, n / 2 + 1);
    while from_end + 1 < too_many {
        let k = (from_end + too_many) / 2;
        match below.cdf(k as u64 - 1) <= 0.025 {
            true => from_end = k,
            false => too_many = k,
        }
    }
    let low = *v.get(from_end.checked_sub(1)?)?;
    Some((low, v[n - from_end]))
}

/// Returns the rank of each value, starting with 1 for the smallest. Equal values share their mean
/// rank.
pub fn midranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut i = 0;
    while i < order.len() {
        let mut j = i;
        while j + 1 < order.len() && values[order[j + 1]] == values[order[i]] {
            j += 1;
        }
        let shared = (i + j) as f64 / 2.0 + 1.0;
        for &k in &order[i..=j] {
            ranks[k] = shared;
        }
        i = j + 1;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: Option<f64>, b: f64) {
        let a = a.expect("a value");
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn median_of_an_even_count_is_the_mean_of_the_middle_two() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[4.0, 1.0, 9.0]), Some(4.0));
    }

    #[test]
    fn quantiles_equal_those_of_r_and_numpy() {
        let v = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&v, 0.0), Some(1.0));
        assert_eq!(quantile(&v, 1.0), Some(4.0));
        near(quantile(&v, 0.1), 1.3);
        near(quantile(&v, 0.9), 3.7);
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[7.0], 0.3), Some(7.0));
    }

    /// The expected values are from scipy.stats.t.interval(0.95, n - 1, scale=scipy.stats.sem(v)).
    #[test]
    fn intervals_of_few_values_use_student_t() {
        assert_eq!(half_width(&[1.0]), None);
        near(half_width(&[1.0, 3.0]), 12.706_204_736_174_698);
        near(half_width(&[1.0, 2.0, 3.0]), 2.484_137_711_750_33);
        near(half_width(&[1.0, 2.0, 3.0, 4.0]), 2.054_260_256_760_52);
        assert_eq!(half_width(&[5.0, 5.0, 5.0]), Some(0.0));
    }

    /// The expected order statistics are those of the tables of the sign test. From 6 values on
    /// they are the first from each end, from 9 the second, for 20 the sixth, and for 100 the 40th.
    #[test]
    fn interval_of_a_median_is_exact() {
        let of = |n: u32| {
            let v: Vec<f64> = (1..=n).map(f64::from).collect();
            median_interval(&v)
        };
        assert_eq!(of(0), None);
        assert_eq!(of(5), None);
        assert_eq!(of(6), Some((1.0, 6.0)));
        assert_eq!(of(8), Some((1.0, 8.0)));
        assert_eq!(of(9), Some((2.0, 8.0)));
        assert_eq!(of(20), Some((6.0, 15.0)));
        assert_eq!(of(100), Some((40.0, 61.0)));
    }

    #[test]
    fn ties_share_their_mean_rank() {
        assert_eq!(midranks(&[5.0, 5.0]), [1.5, 1.5]);
        assert_eq!(midranks(&[3.0, 1.0, 3.0, 9.0]), [2.5, 1.0, 2.5, 4.0]);
    }
}
