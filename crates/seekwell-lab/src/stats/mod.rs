//! The statistical methods. All are pure functions of numbers.
//!
//! | task | function |
//! |---|---|
//! | describe several runs with one number each | [`describe`] |
//! | compare a treatment with the reference | [`paired`]: paired t on log ratios within blocks |
//! | estimate the effect in a typical run | [`signed_rank`], [`hodges_lehmann`] |
//! | decide how many blocks to run | [`Stopping`]; before the experiment: [`blocks_for_width`] |
//! | correct for many comparisons | [`holm`] |
//! | compare a difference with the margin | [`verdict`], with two one-sided tests |
//! | compare runs without blocks (imports) | [`welch_log`], [`welch_summary`] |
//! | compare runs that reached their limit | [`restricted`]: time for the same work, or the limit |
//! | combine several workloads | [`combine`], [`recommend`], [`switch_weight`] |
//! | compare two sessions | [`session_change`] |
//! | examine the series of one run | [`warm_up`], [`moving`] |
//! | show signs of noise | [`outliers`], [`two_modes`], [`trend`], [`carry_over`] |
//!
//! Conventions: logarithms are natural. Variances use n - 1. Intervals are two-sided 95 % unless
//! the name says otherwise. Undefined results are `None`, never NaN. A positive mean of log ratios
//! means that the value of the treatment is larger; [`Better`] says whether larger is better. No
//! value is dropped or trimmed because of its size.
//!
//! Each function has test vectors in `tests/vectors`. An independent program produced the vectors,
//! and they were checked against scipy and statsmodels. `tests/scipy` compares the functions with
//! results of scipy, and `tests/procedure.rs` simulates the whole procedure.

mod censored;
mod describe;
mod flags;
mod many;
mod paired;
mod plan;
mod ranks;
mod series;
mod sessions;
mod stop;
mod verdict;
mod welch;

pub use censored::{Until, restricted};
pub use describe::{DeltaMedian, Described, delta_median, describe};
pub use flags::{
    Carry, Followed, ModesSplit, Outliers, Trend, carry_over, outliers, sd_cutoff, trend, two_modes,
};
pub use many::{
    Against, CHANGE_ALPHA, Combined, Decision, Part, Recommendation, combine, recommend,
    switch_weight,
};
pub use paired::{Paired, Scale, holm, holm_steps, paired};
pub use plan::{blocks_for_width, detectable};
pub use ranks::{HodgesLehmann, SignedRank, hodges_lehmann, mann_kendall, signed_rank, theil_sen};
pub use seekwell_stats::{
    EQUAL, f_tail, normal_cdf, normal_quantile, t_lower, t_quantile, t_tail2,
};
pub(crate) use seekwell_stats::{deviation, mean, median, midranks, range};
pub use series::{Moving, WarmUp, frozen_warm_up, moving, warm_up};
pub use sessions::{Estimate, SessionChange, session_change};
pub use stop::{Look, StopComparison, Stopped, Stopping, anytime_multiplier};
pub use verdict::{IDENTICAL_BLOCKS, Judged, Verdict, VerdictInput, verdict};
pub(crate) use welch::satterthwaite;
pub use welch::{Summary, WelchLog, WelchSummary, welch_log, welch_summary};

/// Differences below this relative value do not matter: 2 %. On the log scale it is ln(1 + 2 %).
pub const MARGIN: f64 = 0.02;
/// Two-sided error probability of intervals and tests.
pub const ALPHA: f64 = 0.05;

/// Which direction of a metric is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Better {
    /// Larger values are better, for example throughput.
    #[default]
    Higher,
    /// Smaller values are better, for example times.
    Lower,
}

impl Better {
    /// Returns 1 if higher is better, -1 if lower is better.
    pub fn sign(self) -> f64 {
        match self {
            Better::Higher => 1.0,
            Better::Lower => -1.0,
        }
    }
}

/// Rounds to 12 significant digits. Printed and stored numbers then do not depend on the last bits
/// of a logarithm, which differ between platforms.
pub fn stored(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    format!("{x:.11e}").parse().unwrap_or(x)
}
