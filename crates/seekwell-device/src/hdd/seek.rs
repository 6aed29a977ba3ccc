//! The seek time of the arm as a function of the distance in cylinders.
//!
//! The model supports four published formulas and converts each to a table. The table is exact for
//! the first 128 distances. Above that it has 64 points per octave, with linear interpolation
//! between them. The interpolation error is less than 0.1 us on a square-root curve. The table fits
//! into the first-level cache of a processor.

use super::{Ticks, ticks_ms};
use crate::error::ParamError;
use crate::preset::Preset;
use libm::{ceil, pow, sqrt};

/// A seek curve; times in ms, distances in cylinders.
#[derive(Debug, Clone, PartialEq)]
pub enum SeekForm {
    /// `track` for one cylinder, a + b*sqrt(d) up to a certain distance (the knee), and a straight
    /// line above. The parameters are chosen so that the longest seek takes `full`, and the mean
    /// over uniformly distributed pairs of cylinders is `average`.
    Fit3 {
        /// Seek time over one cylinder.
        track: f64,
        /// Value of the square-root part at distance 0.
        settle: f64,
        /// Mean seek time.
        average: f64,
        /// Seek time over all cylinders.
        full: f64,
    },
    /// Lee's three-point equation.
    Lee {
        /// Seek time over one cylinder.
        track: f64,
        /// Mean seek time.
        average: f64,
        /// Seek time over all cylinders.
        full: f64,
    },
    /// The formula of Ruemmler and Wilkes. V1 is the knee. The time is V2 + V3*sqrt(d) below the
    /// knee, V4 + V5*d from the knee on, and V6 for one cylinder.
    Hpl {
        /// V1 to V6.
        v: [f64; 6],
    },
    /// Measured points (distance, time) with linear interpolation. The last line is extended.
    Table(Vec<(f64, f64)>),
}

impl SeekForm {
    pub(super) fn from_preset(p: &Preset) -> Result<Self, ParamError> {
        let (track, average, full) = (
            p.num("seek_track")?,
            p.num("seek_average")?,
            p.num("seek_full")?,
        );
        let absent = |key| ParamError::new(key, format!("`{key}` is missing"), "add it");
        Ok(match p.word("seek_form") {
            "lee" => SeekForm::Lee {
                track,
                average,
                full,
            },
            "hpl" => match p.pairs("seek_hpl").ok_or_else(|| absent("seek_hpl"))? {
                &[(knee, one), (a, b), (c, d)] => SeekForm::Hpl {
                    v: [knee, a, b, c, d, one],
                },
                _ => {
                    return Err(ParamError::new(
                        "seek_hpl",
                        "the six values must be three pairs",
                        "write [[V1, V6], [V2, V3], [V4, V5]]",
                    ));
                }
            },
            "table" => {
                let rows = p.pairs("seek_table").ok_or_else(|| absent("seek_table"))?;
                let rising = rows.windows(2).all(|w| w[0].0 < w[1].0);
                if rows.len() < 2 || !rising || rows[0].0 < 1.0 || rows.iter().any(|r| r.1 < 0.0) {
                    return Err(ParamError::new(
                        "seek_table",
                        "a seek table needs at least two points with ascending distances from 1",
                        "sort it by distance and remove duplicates",
                    ));
                }
                SeekForm::Table(rows.to_vec())
            }
            _ => SeekForm::Fit3 {
                track,
                settle: p.num("seek_settle")?,
                average,
                full,
            },
        })
    }
}

/// A seek curve for a certain number of cylinders.
#[derive(Debug, Clone)]
pub struct SeekCurve {
    form: SeekForm,
    /// Coefficients of fit3: a, b, c, e and the knee.
    fit: [f64; 5],
}

/// Returns the coefficients of fit3 with knee `k` for `n` cylinders. Value and slope of the curve
/// are continuous at the knee.
fn coefficients(k: f64, n: f64, settle: f64, full: f64) -> [f64; 5] {
    let root = sqrt(k);
    let b = (full - settle) / (root / 2.0 + n / (2.0 * root));
    [settle, b, settle + b * root / 2.0, b / (2.0 * root), k]
}

/// Returns the mean of fit3 over uniformly distributed pairs of cylinders. A distance x has the
/// probability density 2(n-x)/n^2.
fn mean([a, b, c, e, k]: [f64; 5], n: f64) -> f64 {
    let u = k / n;
    a * (2.0 * u - u * u)
        + b * sqrt(n) * (4.0 / 3.0 * pow(u, 1.5) - 4.0 / 5.0 * pow(u, 2.5))
        + c * (1.0 - u) * (1.0 - u)
        + e * n * (1.0 / 3.0 - u * u + 2.0 / 3.0 * u * u * u)
}

impl SeekCurve {
    /// Fits the curve to `cylinders`. Returns an error if no curve of this form has the given
    /// values.
    pub fn new(form: &SeekForm, cylinders: u32) -> Result<Self, ParamError> {
        let n = f64::from(cylinders.max(2));
        let mut fit = [0.0; 5];
        if let SeekForm::Fit3 {
            settle,
            average,
            full,
            track,
        } = *form
        {
            if !(track <= full && settle < average && average < full) {
                return Err(ParamError::new(
                    "seek_average",
                    format!(
                        "seek times {track}, {settle}, {average}, {full} ms are not in ascending \
                         order"
                    ),
                    "make seek_settle < seek_average < seek_full",
                ));
            }
            if (average - settle) / (full - settle) < 1.0 / 3.0 {
                return Err(ParamError::new(
                    "seek_average",
                    format!(
                        "a mean of {average} ms is too short for a full stroke of {full} ms: no \
                         concave curve has both"
                    ),
                    "check both: seek_average must be at least seek_settle + (seek_full - \
                     seek_settle) / 3",
                ));
            }
            // If `average` is more than 8/15 of `full`, no square-root curve with the given
            // intercept reaches this mean: even short seeks consist mostly of settling. Therefore
            // the intercept must be higher than the parameter.
            let least = (15.0 * average - 8.0 * full) / 7.0;
            let settle = settle.max(least);
            let (mut lo, mut hi) = (0.0, 1.0);
            for _ in 0..60 {
                let u = (lo + hi) / 2.0;
                if mean(coefficients(u * n, n, settle, full), n) < average {
                    lo = u;
                } else {
                    hi = u;
                }
            }
            fit = coefficients(hi * n, n, settle, full);
        }
        let curve = SeekCurve {
            form: form.clone(),
            fit: if let SeekForm::Lee {
                track,
                average,
                full,
            } = *form
            {
                let alpha = (-10.0 * track + 15.0 * average - 5.0 * full) / (3.0 * sqrt(n));
                let beta = (7.0 * track - 15.0 * average + 8.0 * full) / (3.0 * n);
                [track, alpha, beta, 0.0, 0.0]
            } else {
                fit
            },
        };
        Ok(curve)
    }

    /// Returns the time of a seek over `d` cylinders, in ms; never negative.
    pub fn ms(&self, d: u32) -> f64 {
        if d == 0 {
            return 0.0;
        }
        let x = f64::from(d);
        let t = match &self.form {
            SeekForm::Fit3 { track, .. } if d == 1 => *track,
            SeekForm::Fit3 { .. } => {
                let [a, b, c, e, knee] = self.fit;
                if x < knee { a + b * sqrt(x) } else { c + e * x }
            }
            SeekForm::Lee { .. } => {
                let [track, alpha, beta, ..] = self.fit;
                track + beta * (x - 1.0) + alpha * sqrt(x - 1.0)
            }
            SeekForm::Hpl { v } if d == 1 => v[5],
            SeekForm::Hpl { v } if x < v[0] => v[1] + v[2] * sqrt(x),
            SeekForm::Hpl { v } => v[3] + v[4] * x,
            SeekForm::Table(rows) => {
                let i = rows.partition_point(|r| r.0 <= x).clamp(1, rows.len() - 1);
                let ((x0, y0), (x1, y1)) = (rows[i - 1], rows[i]);
                y0 + (y1 - y0) * (x - x0) / (x1 - x0)
            }
        };
        t.max(0.0)
    }

    /// Returns the mean seek time over uniformly distributed pairs of cylinders, in ms. It is
    /// computed by summing the curve.
    pub fn mean_ms(&self, cylinders: u32) -> f64 {
        let n = f64::from(cylinders);
        let steps = cylinders.min(20_000);
        let (mut sum, mut weight) = (0.0, 0.0);
        for i in 0..steps {
            let d = ceil(f64::from(i) * n / f64::from(steps));
            let w = if d == 0.0 { n } else { 2.0 * (n - d) };
            sum += w * self.ms(d as u32);
            weight += w;
        }
        sum / weight
    }
}

/// Number of exact entries.
const EXACT: u32 = 128;
/// Base-2 logarithm of the number of points per octave above them.
const STEP_BITS: u32 = 6;

/// The seek curve as a table of times in ticks.
#[derive(Debug, Clone)]
pub(super) struct SeekTable {
    /// (time at the point, increase up to the next point).
    points: Vec<(Ticks, i64)>,
}

/// Number of intervals of the longest seek time in [`Reach`].
const SHARES: u32 = 512;

/// The inverse of the seek curve: the maximum distance that the arm can move in a given time.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    /// Per interval of the longest seek time: the maximum distance of a seek that ends in this
    /// interval or earlier.
    within: Vec<u32>,
    /// Base-2 logarithm of the ticks per interval.
    shift: u32,
}

impl Reach {
    /// Returns an upper bound of the number of cylinders that the arm can cross in less than `t`.
    #[inline]
    pub(super) fn cylinders(&self, t: Ticks) -> u32 {
        let share = (t >> self.shift) as usize;
        self.within.get(share).copied().unwrap_or(u32::MAX)
    }
}

impl SeekTable {
    pub(super) fn new(curve: &SeekCurve, cylinders: u32) -> Self {
        let at = |d: u64| ticks_ms(curve.ms(d.min(u64::from(u32::MAX)) as u32));
        let mut points: Vec<(Ticks, i64)> = (0..u64::from(EXACT)).map(|d| (at(d), 0)).collect();
        let mut shift = 1;
        while (1u64 << (STEP_BITS + shift)) <= u64::from(cylinders) {
            for m in (1u64 << STEP_BITS)..(2u64 << STEP_BITS) {
                let (a, b) = (at(m << shift), at((m + 1) << shift));
                points.push((a, b as i64 - a as i64));
            }
            shift += 1;
        }
        SeekTable { points }
    }
    /// Returns the first distance to which a point of the table applies.
    fn distance(index: u32) -> u32 {
        if index < EXACT {
            return index;
        }
        let (octave, m) = ((index - EXACT) >> STEP_BITS, (index - EXACT) & 63);
        ((1 << STEP_BITS) + m) << (octave + 1)
    }
    /// Returns the inverse of the table, for seeks that take at least `factor` / 1024 of the times
    /// in the table.
    pub(super) fn reach(&self, factor: u64) -> Reach {
        let mut least = Ticks::MAX;
        // For each point, the shortest seek time from this point on. A measured curve may decrease.
        let mut from: Vec<(u32, Ticks)> = (0..self.points.len())
            .rev()
            .map(|i| {
                let (base, rise) = self.points[i];
                least = least.min(base).min(base.wrapping_add_signed(rise));
                (Self::distance(i as u32), (least * factor) >> 10)
            })
            .collect();
        from.reverse();
        let longest = from.last().map_or(1, |f| f.1.max(1));
        let shift = (longest / u64::from(SHARES)).max(1).ilog2() + 1;
        let within = (0..=longest >> shift)
            .map(|share| {
                let end = (share + 1) << shift;
                let first = from.partition_point(|f| f.1 < end);
                from.get(first).map_or(u32::MAX, |f| f.0.saturating_sub(1))
            })
            .collect();
        Reach { within, shift }
    }
    /// Returns the seek time over `d` cylinders, in ticks. `d` must be less than the number of
    /// cylinders.
    #[inline]
    pub(super) fn ticks(&self, d: u32) -> Ticks {
        if d < EXACT {
            return self.points[d as usize].0;
        }
        let shift = d.ilog2() - STEP_BITS;
        let index = (EXACT + ((shift - 1) << STEP_BITS) + (d >> shift)) - (1 << STEP_BITS);
        let (base, rise) = self.points[index as usize];
        let rest = i64::from(d & ((1 << shift) - 1));
        base.wrapping_add_signed((rise * rest) >> shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit3(track: f64, settle: f64, average: f64, full: f64, n: u32) -> SeekCurve {
        let form = SeekForm::Fit3 {
            track,
            settle,
            average,
            full,
        };
        SeekCurve::new(&form, n).unwrap()
    }

    #[test]
    fn fit3_curve_meets_its_three_parameters() {
        let n = 97_898;
        let c = fit3(1.0, 1.5, 10.0, 18.0, n);
        assert_eq!((c.ms(0), c.ms(1)), (0.0, 1.0));
        assert!((c.ms(n) - 18.0).abs() < 1e-9);
        assert!((c.mean_ms(n) - 10.0).abs() < 0.01, "{}", c.mean_ms(n));
        let knee = c.fit[4] as u32;
        assert!((c.ms(knee) - c.ms(knee - 1)).abs() < 1e-3);
    }

    #[test]
    fn settle_time_too_low_for_the_mean_is_raised() {
        // The Travelstar 7K320 has 1.0, 12 and 20 ms. These values need an intercept of 2.86 ms.
        let c = fit3(1.0, 1.5, 12.0, 20.0, 100_000);
        assert!((c.fit[0] - 20.0 / 7.0).abs() < 1e-9);
        assert!((c.mean_ms(100_000) - 12.0).abs() < 0.01);
    }

    #[test]
    fn inconsistent_seek_times_are_rejected() {
        let form = SeekForm::Fit3 {
            track: 1.0,
            settle: 2.0,
            average: 6.0,
            full: 20.0,
        };
        assert_eq!(SeekCurve::new(&form, 1000).unwrap_err().key, "seek_average");
    }

    #[test]
    fn lee_and_hpl_curves_follow_their_formulas() {
        let lee = SeekForm::Lee {
            track: 1.0,
            average: 8.5,
            full: 16.0,
        };
        let c = SeekCurve::new(&lee, 10_000).unwrap();
        assert!((c.mean_ms(10_000) - 8.5).abs() < 0.05);
        let hpl = SeekForm::Hpl {
            v: [383.0, 3.24, 0.4, 8.0, 0.008, 1.0],
        };
        let c = SeekCurve::new(&hpl, 1962).unwrap();
        assert_eq!(c.ms(1), 1.0);
        assert!((c.ms(100) - 7.24).abs() < 1e-12);
        assert!((c.ms(383) - 11.064).abs() < 1e-12);
    }

    #[test]
    fn seek_tables_are_interpolated_and_keep_their_dips() {
        let t = SeekForm::Table(vec![(1.0, 1.0), (10.0, 1.531), (12.0, 1.515), (100.0, 4.0)]);
        let c = SeekCurve::new(&t, 200).unwrap();
        assert!(c.ms(12) < c.ms(10));
        assert!((c.ms(11) - 1.523).abs() < 1e-9);
        assert!(c.ms(188) > 6.4, "extended past its end: {}", c.ms(188));
    }

    #[test]
    fn reach_bounds_the_cylinders_that_a_seek_can_cross_in_a_given_time() {
        let n = 97_898;
        let form = SeekForm::Table(vec![
            (1.0, 1.0),
            (10.0, 1.531),
            (12.0, 1.515),
            (9000.0, 7.0),
            (9500.0, 6.0),
            (90_000.0, 15.0),
        ]);
        let dips = SeekCurve::new(&form, n).unwrap();
        for curve in [fit3(1.0, 1.5, 10.0, 18.0, n), dips] {
            for factor in [1024, 700, 1400] {
                let table = SeekTable::new(&curve, n);
                let reach = table.reach(factor);
                let took = |d| (table.ticks(d) * factor) >> 10;
                for ms in (0..240).map(|i| f64::from(i) / 10.0) {
                    let t = ticks_ms(ms);
                    let within = reach.cylinders(t);
                    let beyond = within.saturating_add(1)..n;
                    assert!(beyond.clone().all(|d| took(d) >= t), "{ms} ms: {within}");
                    // The bound is tight. It is at most the distance that the arm moves in one more
                    // interval.
                    let later = t + (1 << reach.shift);
                    let near = (0..n).rev().find(|&d| took(d) < later).unwrap_or(0);
                    assert!(
                        within.min(n) <= near + n / 64 + 2,
                        "{ms} ms: {near} {within}"
                    );
                }
            }
        }
    }

    #[test]
    fn tick_table_equals_the_seek_curve() {
        let n = 509_550;
        let c = fit3(0.6, 0.9, 8.0, 15.0, n);
        let t = SeekTable::new(&c, n);
        for d in (0..300).chain((300..n).step_by(997)).chain([n - 1]) {
            let off = t.ticks(d).abs_diff(ticks_ms(c.ms(d)));
            assert!(off <= 1024 * 300, "{d}: off by {off} ticks");
        }
    }
}
