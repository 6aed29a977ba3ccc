//! Derives a verdict from an estimate and its interval.

use super::t_lower;
use super::{Better, EQUAL, t_quantile};
use serde::{Deserialize, Serialize};

/// The verdict on one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The treatments are equal in every block, and there are enough blocks.
    Identical,
    /// The treatments are equal in every block so far, but there are too few blocks.
    IdenticalSoFar,
    /// The treatment is ahead by more than the margin.
    Better,
    /// The treatment is behind by more than the margin.
    Worse,
    /// The treatment is ahead, but possibly by less than the margin.
    BetterMaybeSmall,
    /// The treatment is behind, but possibly by less than the margin.
    WorseMaybeSmall,
    /// There is a difference, but it is below the margin.
    RealButSmall,
    /// The difference is shown to be smaller than the margin.
    NoDifference,
    /// The interval excludes 0, but the difference is not significant after the correction for the
    /// number of comparisons.
    Hint,
    /// The data supports none of the other verdicts.
    CannotTell,
}

impl Verdict {
    /// Returns the name used in files and test vectors.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Identical => "identical",
            Verdict::IdenticalSoFar => "identical_so_far",
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::BetterMaybeSmall => "better_maybe_small",
            Verdict::WorseMaybeSmall => "worse_maybe_small",
            Verdict::RealButSmall => "real_but_small",
            Verdict::NoDifference => "no_difference",
            Verdict::Hint => "hint",
            Verdict::CannotTell => "cannot_tell",
        }
    }
    /// Returns whether the verdict claims a difference after the correction.
    pub const fn claims(self) -> bool {
        matches!(
            self,
            Verdict::Better
                | Verdict::Worse
                | Verdict::BetterMaybeSmall
                | Verdict::WorseMaybeSmall
                | Verdict::RealButSmall
        )
    }
}

/// The values that a verdict is derived from.
#[derive(Clone, Copy, Debug)]
pub struct VerdictInput {
    /// Mean log ratio of treatment to reference.
    pub mean: f64,
    /// Standard error; `None` for a single run.
    pub se: Option<f64>,
    /// Degrees of freedom; infinite if the normal distribution applies.
    pub df: Option<f64>,
    /// p value after the correction for the comparisons of the family; `None` if no test was
    /// possible.
    pub p_adjusted: Option<f64>,
    /// Direction of the metric.
    pub better: Better,
    /// Half-width that is added because the metric has coarse steps.
    pub extra: f64,
    /// True if every treatment has a single value in all blocks, so that there is no randomness.
    pub runs_identical: bool,
    /// Relative difference that matters.
    pub margin: f64,
    /// Largest corrected p value that is significant.
    pub alpha: f64,
}

impl Default for VerdictInput {
    fn default() -> Self {
        VerdictInput {
            mean: 0.0,
            se: None,
            df: None,
            p_adjusted: None,
            better: Better::Higher,
            extra: 0.0,
            runs_identical: false,
            margin: super::MARGIN,
            alpha: super::ALPHA,
        }
    }
}

/// A verdict, with the p value of the test against the margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// p value of two one-sided tests; the null hypothesis is |effect| >= ln(1 + margin).
    pub p_tost: Option<f64>,
}

/// Number of blocks in which two treatments must be equal to be called identical, if their runs
/// vary. An event that occurs in a tenth of the seeds is missed with a probability of 12 % (53 %
/// with 6 blocks).
pub const IDENTICAL_BLOCKS: u32 = 20;
/// The same number if no run varies at all.
const EXACT_BLOCKS: f64 = 3.0;

/// Returns the first verdict whose conditions are satisfied.
pub fn verdict(of: &VerdictInput) -> Judged {
    let mu = libm::log1p(of.margin);
    let (Some(se), Some(df)) = (of.se, of.df) else {
        return Judged {
            verdict: Verdict::CannotTell,
            p_tost: None,
        };
    };
    let m = of.mean;
    // The extra half-width is not a multiple of the standard error, so it moves the bounds of the
    // test instead.
    let edge = mu - of.extra;
    let tost = |t: f64| {
        if se > 0.0 {
            t_lower(t / se, df)
        } else {
            f64::from(t >= 0.0)
        }
    };
    let p_tost = if se > 0.0 || of.extra > 0.0 {
        tost(m - edge).max(tost(-m - edge))
    } else {
        f64::from(m.abs() >= mu)
    };
    let judged = |verdict| Judged {
        verdict,
        p_tost: Some(p_tost),
    };
    let ahead = of.better.sign() * m > 0.0;
    let or = |good, bad| if ahead { good } else { bad };
    let half = |q: f64| t_quantile(q, df) * se + of.extra;
    if se == 0.0 && of.extra == 0.0 {
        let enough = if of.runs_identical {
            EXACT_BLOCKS
        } else {
            f64::from(IDENTICAL_BLOCKS)
        };
        let settled = df + 1.0 >= enough;
        return judged(match (m.abs() <= EQUAL, settled) {
            (true, true) => Verdict::Identical,
            (true, false) => Verdict::IdenticalSoFar,
            (false, false) => Verdict::CannotTell,
            (false, true) if m.abs() < mu => Verdict::RealButSmall,
            (false, true) => or(Verdict::Better, Verdict::Worse),
        });
    }
    let (h95, h90) = (half(0.975), half(0.95));
    let (low, high) = (m - h95, m + h95);
    let excludes = low > 0.0 || high < 0.0;
    let significant = of.p_adjusted.is_some_and(|p| p <= of.alpha);
    let inside90 = m - h90 > -mu && m + h90 < mu;
    judged(if significant && excludes && inside90 {
        Verdict::RealButSmall
    } else if significant && (low > mu || high < -mu) {
        or(Verdict::Better, Verdict::Worse)
    } else if significant && excludes {
        or(Verdict::BetterMaybeSmall, Verdict::WorseMaybeSmall)
    } else if inside90 {
        Verdict::NoDifference
    } else if excludes {
        Verdict::Hint
    } else {
        Verdict::CannotTell
    })
}
