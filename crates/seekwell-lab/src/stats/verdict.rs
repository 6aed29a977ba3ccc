//! Turns an estimate and its interval into a verdict.

use super::t_lower;
use super::{Better, EQUAL, t_quantile};
use serde::{Deserialize, Serialize};

/// The verdict on one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Equal in every block, and there are enough blocks.
    Identical,
    /// Equal in every block so far, but runs differ between blocks and there are too few.
    IdenticalSoFar,
    /// Ahead by more than the margin.
    Better,
    /// Behind by more than the margin.
    Worse,
    /// Ahead, perhaps by less than the margin.
    BetterMaybeSmall,
    /// Behind, perhaps by less than the margin.
    WorseMaybeSmall,
    /// There is a difference, but it is below the margin.
    RealButSmall,
    /// No difference as large as the margin.
    NoDifference,
    /// The interval excludes 0, but not after correction for the number of comparisons.
    Hint,
    /// None of the others applies.
    CannotTell,
}

impl Verdict {
    /// Name in files and test vectors.
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
    /// Whether it claims a difference after correction.
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

/// Input of a verdict.
#[derive(Clone, Copy, Debug)]
pub struct VerdictInput {
    /// Mean log ratio, treatment / reference.
    pub mean: f64,
    /// Standard error; `None` for one run.
    pub se: Option<f64>,
    /// Degrees of freedom; infinite for a normal quantile.
    pub df: Option<f64>,
    /// p value after correction in the family; `None` if no test was possible.
    pub p_adjusted: Option<f64>,
    /// Direction of the metric.
    pub better: Better,
    /// Half-width added because of a coarse metric.
    pub extra: f64,
    /// Every treatment gave a single value in all blocks: there is no randomness.
    pub runs_identical: bool,
    /// Relative difference that matters.
    pub margin: f64,
    /// Error of the corrected test.
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

/// A verdict, and the p value of "the difference is as large as the margin".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// p value of two one-sided tests; the null hypothesis is |effect| >= ln(1 + margin).
    pub p_tost: Option<f64>,
}

/// Blocks in which pairs of varying runs must be equal before they are called identical. An event
/// that occurs in a tenth of the seeds is missed with a risk of 12 % (53 % at 6 blocks).
pub const IDENTICAL_BLOCKS: u32 = 20;
/// The number of blocks if no run varies at all.
const EXACT_BLOCKS: f64 = 3.0;

/// Returns the first verdict whose rule holds.
pub fn verdict(of: &VerdictInput) -> Judged {
    let mu = libm::log1p(of.margin);
    let (Some(se), Some(df)) = (of.se, of.df) else {
        return Judged {
            verdict: Verdict::CannotTell,
            p_tost: None,
        };
    };
    let m = of.mean;
    // The extra half-width already includes an unknown t quantile, so it shifts the bounds instead.
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
