//! Predictions, and the rule that scores them by the interval of a measurement.

use crate::analysis::CellAnalysis;
use serde::{Deserialize, Serialize};

/// Largest factor between a predicted ratio and the nearest end of the measured interval. A
/// prediction beyond it is wrong, whatever its sign: 21x is not what 1.08x confirms.
pub const SIZE_LIMIT: f64 = 2.0;

/// How the first scheduler of a pair compares with the second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Claim {
    /// The first scheduler is better.
    Ahead,
    /// The first scheduler is worse.
    Behind,
    /// The difference is at most the margin.
    Level,
}

/// The simulated or measured ratio of two schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// How many times better the first scheduler is than the second.
    pub times: f64,
    /// 95 % confidence interval of `times`, for this pair alone. `None` for a single run.
    pub interval: Option<(f64, f64)>,
}

/// The score of a prediction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The measurement confirms the claim and does not refute the size.
    Right,
    /// The measurement refutes the claim or its size.
    Wrong,
    /// The measurement is too uncertain to decide.
    #[serde(rename = "not testable")]
    NotTestable,
}

impl Outcome {
    /// Returns the word for tables.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Right => "right",
            Outcome::Wrong => "WRONG",
            Outcome::NotTestable => "not testable",
        }
    }
}

impl Ratio {
    /// Returns the ratio of two treatments of a cell.
    pub fn of(c: &CellAnalysis, one: usize, other: usize) -> Option<Ratio> {
        let (times, _) = c.times(one, other)?;
        let (pair, turned) = c.pair(one, other)?;
        let interval = pair.better95(c.better()).map(|(low, high)| match turned {
            false => (low, high),
            true => (1.0 / high, 1.0 / low),
        });
        (times.is_finite() && times > 0.0).then_some(Ratio { times, interval })
    }
    /// Returns whether a predicted ratio is more than [`SIZE_LIMIT`] times beyond the interval.
    pub fn refutes(&self, predicted: f64) -> bool {
        self.interval.is_some_and(|(low, high)| {
            predicted > high * SIZE_LIMIT || predicted < low / SIZE_LIMIT
        })
    }
}

/// Returns what a simulation claims about two treatments: the sign of the mean, or that they are
/// level if the mean is within the margin. The probability says how far to trust the claim.
pub fn claim(c: &CellAnalysis, one: usize, other: usize, margin: f64) -> Option<Claim> {
    let ratio = Ratio::of(c, one, other)?;
    let level = c.pair(one, other).is_some_and(|p| p.0.level());
    Some(match libm::log(ratio.times) {
        d if level || d.abs() <= libm::log1p(margin) => Claim::Level,
        d if d > 0.0 => Claim::Ahead,
        _ => Claim::Behind,
    })
}

/// Returns what a measured interval shows, or `None` if it does not decide. An interval within the
/// margin shows that the two are level, even if it excludes 1. Each prediction is scored alone, so
/// the interval is not corrected for the number of comparisons.
pub fn shown(live: &Ratio, margin: f64) -> Option<Claim> {
    let (low, high) = live.interval?;
    let most = 1.0 + margin;
    if low >= 1.0 / most && high <= most {
        Some(Claim::Level)
    } else if low > 1.0 {
        Some(Claim::Ahead)
    } else if high < 1.0 {
        Some(Claim::Behind)
    } else {
        None
    }
}

/// Scores a claim by what the measurement shows and by its interval.
pub fn judge(claim: Claim, predicted: f64, shown: Option<Claim>, live: &Ratio) -> Outcome {
    match shown {
        _ if live.refutes(predicted) => Outcome::Wrong,
        None => Outcome::NotTestable,
        Some(s) if s == claim => Outcome::Right,
        Some(_) => Outcome::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Claim::{Ahead, Behind, Level};
    use Outcome::{NotTestable, Right, Wrong};

    #[test]
    fn the_live_interval_decides() {
        for (claim, predicted, live, interval, shown, is) in [
            // A huge prediction against a level or uncertain measurement is wrong.
            (Ahead, 21.0, 1.08, (0.95, 1.22), None, Wrong),
            (Ahead, 21.0, 1.08, (1.05, 1.11), Some(Ahead), Wrong),
            (Ahead, 1.3, 1.2, (1.1, 1.3), Some(Ahead), Right),
            (Ahead, 1.3, 1.0, (0.99, 1.01), Some(Level), Wrong),
            (Ahead, 1.3, 0.8, (0.7, 0.9), Some(Behind), Wrong),
            (Ahead, 1.3, 1.1, (0.9, 1.3), None, NotTestable),
            (Level, 1.0, 1.0, (0.99, 1.01), Some(Level), Right),
            (Level, 1.0, 1.5, (1.4, 1.6), Some(Ahead), Wrong),
            (Level, 1.0, 1.0, (0.5, 2.0), None, NotTestable),
            (Behind, 0.1, 0.9, (0.8, 1.1), None, Wrong),
            (Behind, 0.5, 0.9, (0.8, 1.1), None, NotTestable),
        ] {
            let ratio = Ratio {
                times: live,
                interval: Some(interval),
            };
            let found = judge(claim, predicted, shown, &ratio);
            assert_eq!(
                found, is,
                "{claim:?} {predicted} against {live} {interval:?}"
            );
        }
    }

    #[test]
    fn an_interval_shows_a_sign_or_that_both_are_level() {
        for (interval, is) in [
            (Some((1.01, 1.30)), Some(Ahead)),
            (Some((0.70, 0.99)), Some(Behind)),
            (Some((0.99, 1.019)), Some(Level)),
            (Some((1.001, 1.019)), Some(Level)),
            (Some((0.9, 1.1)), None),
            (None, None),
        ] {
            let ratio = Ratio {
                times: 1.0,
                interval,
            };
            assert_eq!(shown(&ratio, 0.02), is, "{interval:?}");
        }
    }

    #[test]
    fn a_single_run_tests_nothing() {
        let one = Ratio {
            times: 1.0,
            interval: None,
        };
        assert_eq!(judge(Ahead, 21.0, None, &one), NotTestable);
    }
}
