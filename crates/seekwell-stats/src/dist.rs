//! Probability distributions. The functions wrap `statrs` and keep its arguments in the range in
//! which it is reliable.
//!
//! `statrs` 0.19 computes t quantiles with an error of at most 1e-8 in the tail probability. This
//! holds for 1 to 5,000 degrees of freedom and p up to 1 - 1e-8. Above 20,000 degrees of freedom
//! the normal distribution is more accurate. For p below 1e-50, the inverse of the incomplete beta
//! function in `statrs` may not terminate. So p is kept between 1e-12 and 1 - 1e-12.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

/// From this number of degrees of freedom on, the normal distribution replaces Student's t.
const NORMAL_FROM: f64 = 20_000.0;
/// The smallest tail probability that is used.
const TAIL_MIN: f64 = 1e-12;

fn clamped(p: f64) -> f64 {
    p.clamp(TAIL_MIN, 1.0 - TAIL_MIN)
}

/// Returns the quantile `p` of the standard normal distribution.
pub fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(clamped(p))
}

/// Returns P(Z <= z) for the standard normal distribution.
pub fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// Returns the quantile `p` of Student's t. For `df` of 20,000 or more, or NaN, it is the normal
/// quantile. `df` must be positive.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    if df >= NORMAL_FROM || df.is_nan() {
        return normal_quantile(p);
    }
    StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |t| t.inverse_cdf(clamped(p)))
}

/// Returns P(T <= t) for Student's t. For a negative t this is the one-sided p value.
pub fn t_lower(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        return if t > 0.0 { 1.0 } else { 0.0 };
    }
    if df >= NORMAL_FROM || df.is_nan() {
        return normal_cdf(t);
    }
    StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |d| d.cdf(t))
}

/// Returns the two-sided p value of a t statistic. It is computed from the tail, so that small p
/// values keep their precision.
pub fn t_tail2(t: f64, df: f64) -> f64 {
    (2.0 * t_lower(-t.abs(), df)).min(1.0)
}

/// Returns P(F > f).
pub fn f_tail(f: f64, df1: f64, df2: f64) -> f64 {
    if f.is_infinite() {
        return 0.0;
    }
    FisherSnedecor::new(df1, df2).map_or(f64::NAN, |d| d.sf(f))
}
