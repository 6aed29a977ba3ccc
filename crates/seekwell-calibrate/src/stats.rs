//! Statistics for the estimators: fractions of a circle, straight lines, the distance between two
//! distributions.

use seekwell_stats::{mean, t_quantile};

/// Returns the median, or NaN for an empty list. With NaN every comparison is false.
pub fn median(v: &[f64]) -> f64 {
    seekwell_stats::median(v).unwrap_or(f64::NAN)
}

/// Returns the quantile `q`, from 0 to 1, or NaN for an empty list.
pub fn quantile(v: &[f64], q: f64) -> f64 {
    seekwell_stats::quantile(v, q).unwrap_or(f64::NAN)
}

/// Returns the quantile `q` of sorted values, or NaN for an empty list.
pub fn quantile_sorted(s: &[f64], q: f64) -> f64 {
    seekwell_stats::quantile_sorted(s, q).unwrap_or(f64::NAN)
}

/// Returns the half-width of the 95 % confidence interval of the mean, by Student's t. It is
/// infinite with fewer than two values.
pub fn half_width(v: &[f64]) -> f64 {
    seekwell_stats::half_width(v).unwrap_or(f64::INFINITY)
}

/// Returns the fractional part, in [0, 1).
pub fn frac(x: f64) -> f64 {
    let f = x - libm::floor(x);
    if f < 1.0 { f } else { 0.0 }
}

/// A straight line by least squares. The half-widths are those of 95 % confidence intervals by
/// Student's t with n - 2 degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Value at 0.
    pub intercept: f64,
    /// Slope.
    pub slope: f64,
    /// Half-width of the confidence interval of the intercept.
    pub intercept_pm: f64,
    /// Half-width of the confidence interval of the slope.
    pub slope_pm: f64,
}

/// Fits a line. Returns `None` with fewer than three points, or if all points have the same x.
pub fn line(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let (mx, my) = (
        points.iter().map(|p| p.0).sum::<f64>() / n,
        points.iter().map(|p| p.1).sum::<f64>() / n,
    );
    let sxx: f64 = points.iter().map(|p| (p.0 - mx) * (p.0 - mx)).sum();
    if sxx <= 0.0 {
        return None;
    }
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    let slope = sxy / sxx;
    let intercept = my - slope * mx;
    let sse: f64 = points
        .iter()
        .map(|p| {
            let r = p.1 - intercept - slope * p.0;
            r * r
        })
        .sum();
    let s2 = sse / (n - 2.0);
    let t = t_quantile(0.975, n - 2.0);
    Some(Line {
        intercept,
        slope,
        intercept_pm: t * libm::sqrt(s2 * (1.0 / n + mx * mx / sxx)),
        slope_pm: t * libm::sqrt(s2 / sxx),
    })
}

/// Returns the root mean square of the horizontal distance between two latency distributions, as a
/// fraction of the mean of the first. This is the demerit figure of Ruemmler and Wilkes (1994).
pub fn demerit(measured: &[f64], model: &[f64]) -> f64 {
    let (mut a, mut b) = (measured.to_vec(), model.to_vec());
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let n = 200;
    let sum: f64 = (0..n)
        .map(|i| {
            let q = (f64::from(i) + 0.5) / f64::from(n);
            let d = quantile_sorted(&a, q) - quantile_sorted(&b, q);
            d * d
        })
        .sum();
    libm::sqrt(sum / f64::from(n)) / mean(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_fit_intervals_use_student_t_for_few_points() {
        let l = line(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]).unwrap();
        assert!((l.intercept - 1.0).abs() < 1e-12 && (l.slope - 2.0).abs() < 1e-12);
        assert_eq!(line(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
        // scipy.stats.linregress([0, 1, 2], [0, 2, 1]) with t.ppf(0.975, 1) = 12.706.
        let l = line(&[(0.0, 0.0), (1.0, 2.0), (2.0, 1.0)]).unwrap();
        assert!((l.slope - 0.5).abs() < 1e-12 && (l.intercept - 0.5).abs() < 1e-12);
        assert!((l.slope_pm - 12.706_204_736 * 0.866_025_404).abs() < 1e-6);
        assert!((l.intercept_pm - 12.706_204_736 * 1.118_033_989).abs() < 1e-6);
    }

    #[test]
    fn interval_of_two_values_uses_student_t() {
        assert!((half_width(&[1.0, 3.0]) - 12.706_204_736).abs() < 1e-6);
        assert_eq!(half_width(&[1.0]), f64::INFINITY);
        assert!(median(&[]).is_nan() && quantile(&[], 0.9).is_nan());
    }

    #[test]
    fn demerit_of_a_constant_shift_equals_the_shift() {
        let a: Vec<f64> = (0..100).map(|i| 10.0 + f64::from(i)).collect();
        let b: Vec<f64> = a.iter().map(|x| x + 5.0).collect();
        assert!((demerit(&a, &b) - 5.0 / mean(&a)).abs() < 1e-9);
        assert_eq!(demerit(&a, &a), 0.0);
    }
}
