//! The comparison of two treatments in a cell: effect, confidence interval, tests, verdict.

use crate::data::MetricInfo;
use crate::stats::{self, Better, Paired, Scale, Verdict, VerdictInput, stored};
use serde::{Deserialize, Serialize};

/// The test that compared two treatments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Paired t test on log ratios within blocks.
    #[default]
    Paired,
    /// Paired t test on differences, for values that are 0 or negative and so have no logarithm.
    PairedDifferences,
    /// Welch's t test on logarithms, for runs whose blocks are not known.
    Welch,
    /// Welch's t test on means and standard errors, for results whose single runs are not known.
    WelchSummary,
}

/// Number of blocks in which runs of two treatments reached their time limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtLimit {
    /// Number of blocks in which only the run of the first treatment reached its time limit.
    pub one: usize,
    /// Number of blocks in which only the run of the second treatment reached its time limit.
    pub other: usize,
    /// Number of blocks in which the runs of both treatments reached their time limit.
    pub both: usize,
}

/// Why a difference without any spread is accepted after only three blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Exact {
    /// No reason: the difference has spread, or may have.
    #[default]
    No,
    /// Each side has the same value in all blocks, although other metrics of the runs differ.
    Value,
    /// No run depends on its seed.
    Run,
}

/// One treatment compared with another, in one cell and for one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Index of the compared treatment in the results.
    pub one: usize,
    /// Index of the treatment that `one` is compared with.
    pub other: usize,
    /// The test that was used.
    pub test: Test,
    /// Number of blocks that contain both treatments. Without blocks, the number of runs of the
    /// smaller side.
    pub n: usize,
    /// Number of runs without a partner in their block.
    pub dropped: usize,
    /// Mean log ratio one / other, or mean difference; `None` if no block contains both treatments.
    pub mean: Option<f64>,
    /// Standard deviation of the log ratios or differences.
    pub sd: Option<f64>,
    /// Standard error. Includes the correction factor for the stopping rule where it applies.
    pub se: Option<f64>,
    /// Degrees of freedom.
    pub df: Option<f64>,
    /// Half-width that was added to the interval because the metric has coarse steps.
    pub step_added: f64,
    /// True if the interval was widened for the stopping rule.
    pub corrected: bool,
    /// Ratio one / other.
    pub ratio: Option<f64>,
    /// 95 % confidence interval of `ratio`.
    pub ratio95: Option<(f64, f64)>,
    /// 95 % confidence interval of `mean`.
    pub interval95: Option<(f64, f64)>,
    /// Ratio of the arithmetic means of the same blocks.
    pub ratio_of_means: Option<f64>,
    /// Two-sided p value.
    pub p: Option<f64>,
    /// The p value if the published digits were rounded in the worst possible way; `None` if no
    /// value was rounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_rounded: Option<f64>,
    /// `p_rounded` after Holm's correction for all comparisons of the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_rounded_adjusted: Option<f64>,
    /// `p` after Holm's correction for all comparisons of the experiment.
    pub p_adjusted: Option<f64>,
    /// The interval of `mean` that decides the verdict. Its error probability is the part that
    /// Holm's correction leaves to this comparison, so the interval excludes 0 exactly if
    /// `p_adjusted` is small enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deciding95: Option<(f64, f64)>,
    /// The number by which Holm's correction divides the error probability of this comparison.
    #[serde(skip)]
    pub(super) divisor: f64,
    /// `p` after Holm's correction within the cell.
    pub p_cell: Option<f64>,
    /// p value of the null hypothesis that the difference is at least as large as the margin.
    pub p_margin: Option<f64>,
    /// Verdict after the correction for all comparisons of the experiment.
    pub verdict: Verdict,
    /// Verdict after the correction for the comparisons of the cell.
    pub verdict_cell: Verdict,
    /// Number of blocks in which `one` is better.
    pub ahead: usize,
    /// Number of blocks in which both treatments are equal.
    pub equal: usize,
    /// p value of Wilcoxon's signed rank test.
    pub p_rank: Option<f64>,
    /// Hodges-Lehmann estimate of the ratio or difference of a typical run.
    pub typical: Option<f64>,
    /// 95 % confidence interval of `typical`.
    pub typical95: Option<(f64, f64)>,
    /// Number of blocks in which runs reached their limit. If set, the comparison uses the time for
    /// the same work, and a time above the limit counts as the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_limit: Option<AtLimit>,
    /// True if the mean and the typical run disagree, because outliers drive the mean.
    pub tail_decides: bool,
    /// Number of blocks needed for an interval of the requested width; `None` if the interval is
    /// already narrow enough.
    pub blocks_needed: Option<u32>,
    /// The verdict in words, with `one` as its subject.
    pub words: String,
    #[serde(skip)]
    pub(super) exact: Exact,
}

impl Comparison {
    /// Returns how many times better `one` is than `other`; below 1, `one` is worse. The direction
    /// of the metric is taken into account. Returns `None` if there is no ratio.
    pub fn times_better(&self, better: Better) -> Option<f64> {
        self.ratio
            .map(|r| if better == Better::Higher { r } else { 1.0 / r })
    }
    /// Returns the 95 % interval of [`Self::times_better`], lower end first.
    pub fn better95(&self, better: Better) -> Option<(f64, f64)> {
        let (low, high) = self.ratio95?;
        Some(match better {
            Better::Higher => (low, high),
            Better::Lower => (1.0 / high, 1.0 / low),
        })
    }
    /// Returns whether the comparison supports the conclusion "the scheduler makes no difference".
    /// It does if the treatments are near, or if the estimate lies within the margin and its 90 %
    /// interval within twice the margin.
    pub(super) fn agrees(&self, margin: f64) -> bool {
        let mu = libm::log1p(margin);
        let small = || {
            let ((low, high), df) = (self.interval95?, self.df?);
            let narrower = stats::t_quantile(0.95, df) / stats::t_quantile(0.975, df);
            let half = ((high - low) / 2.0 - self.step_added) * narrower + self.step_added;
            let log = self.ratio.is_some() && !self.unbelieved();
            let mean = self.mean?.abs();
            Some(log && mean <= mu && mean + half <= 2.0 * mu)
        };
        self.near() || small().unwrap_or(false)
    }
    /// Returns the deciding interval of [`Self::times_better`], lower end first.
    pub fn better_deciding(&self, better: Better) -> Option<(f64, f64)> {
        let (low, high) = self.deciding95.filter(|_| self.ratio.is_some())?;
        let (low, high) = (libm::exp(low), libm::exp(high));
        Some(match better {
            Better::Higher => (low, high),
            Better::Lower => (1.0 / high, 1.0 / low),
        })
    }
    /// Returns the interval of `mean` at the error probability that the correction leaves to this
    /// comparison.
    fn widened(&self, alpha: f64) -> Option<(f64, f64)> {
        let ((low, high), df) = (self.interval95?, self.df?);
        let (usual, own) = (
            stats::t_quantile(0.975, df),
            stats::t_quantile(1.0 - alpha / self.divisor / 2.0, df),
        );
        let half = ((high - low) / 2.0 - self.step_added).max(0.0) * own / usual + self.step_added;
        let middle = (low + high) / 2.0;
        Some(both((middle - half, middle + half)))
    }
    /// Returns whether only one of the two treatments reached its limit. That treatment is then
    /// worse by at least the ratio.
    pub fn at_least(&self) -> bool {
        self.at_limit
            .is_some_and(|l| l.both == 0 && (l.one == 0) != (l.other == 0))
    }
    /// Returns whether the two treatments are shown to differ by less than the margin.
    pub fn level(&self) -> bool {
        use Verdict::{Identical, NoDifference, RealButSmall};
        matches!(self.verdict, Identical | NoDifference | RealButSmall)
    }

    /// Returns whether the two treatments are level, or equal in every block so far (which does not
    /// prove equality).
    pub fn near(&self) -> bool {
        self.level() || (self.n > 1 && self.equal == self.n)
    }

    /// Returns the verdict for a comparison in which some times are lower bounds. Such a verdict
    /// never claims equality.
    fn of_bounds(&self, v: Verdict, better: bool) -> Verdict {
        match v {
            Verdict::RealButSmall if self.at_least() && better => Verdict::BetterMaybeSmall,
            Verdict::RealButSmall if self.at_least() => Verdict::WorseMaybeSmall,
            Verdict::Identical
            | Verdict::IdenticalSoFar
            | Verdict::NoDifference
            | Verdict::RealButSmall => Verdict::CannotTell,
            v => v,
        }
    }

    /// Builds the comparison of paired runs.
    pub(super) fn paired(
        one: usize,
        other: usize,
        p: &Paired,
        corrected: bool,
        exact: Exact,
        means: Option<f64>,
    ) -> Self {
        let log = p.scale == Scale::Log;
        let scaled = |x: f64| stored(if log { libm::exp(x) } else { x });
        let rank = (p.n >= 2).then(|| stats::signed_rank(&p.differences));
        let typical = stats::hodges_lehmann(&p.differences);
        Comparison {
            test: if log {
                Test::Paired
            } else {
                Test::PairedDifferences
            },
            n: p.n,
            dropped: p.dropped,
            mean: p.mean.map(stored),
            sd: p.sd.map(stored),
            se: p.se.map(stored),
            df: p.df,
            step_added: stored(p.step_added),
            corrected,
            ratio: p.ratio.map(stored),
            ratio95: p.ratio95.map(both),
            interval95: p.interval95.map(both),
            ratio_of_means: means.map(stored),
            p: p.p.map(stored),
            ahead: p.ahead,
            equal: p.equal,
            p_rank: rank.map(|r| stored(r.p)),
            typical: typical.map(|t| scaled(t.estimate)),
            typical95: typical
                .and_then(|t| t.interval95)
                .map(|(l, h)| (scaled(l), scaled(h))),
            exact,
            ..Comparison::empty(one, other)
        }
    }

    pub(super) fn empty(one: usize, other: usize) -> Self {
        Comparison {
            one,
            other,
            test: Test::Paired,
            n: 0,
            dropped: 0,
            mean: None,
            sd: None,
            se: None,
            df: None,
            step_added: 0.0,
            corrected: false,
            ratio: None,
            ratio95: None,
            interval95: None,
            ratio_of_means: None,
            p: None,
            p_rounded: None,
            p_rounded_adjusted: None,
            p_adjusted: None,
            deciding95: None,
            divisor: 1.0,
            p_cell: None,
            p_margin: None,
            verdict: Verdict::CannotTell,
            verdict_cell: Verdict::CannotTell,
            ahead: 0,
            equal: 0,
            p_rank: None,
            typical: None,
            typical95: None,
            at_limit: None,
            tail_decides: false,
            blocks_needed: None,
            words: String::new(),
            exact: Exact::No,
        }
    }

    /// Returns whether the blocks are too few to believe that there is no spread. A standard error
    /// of 0 then has no meaning.
    pub(super) fn unbelieved(&self) -> bool {
        self.se == Some(0.0) && self.verdict == Verdict::CannotTell
    }

    /// Returns whether a claim for the whole experiment fails only because the published digits are
    /// rounded.
    pub fn lost_to_rounding(&self, alpha: f64) -> bool {
        let holds = |p: Option<f64>| p.is_some_and(|p| p <= alpha);
        holds(self.p_adjusted) && self.p_rounded.is_some() && !holds(self.p_rounded_adjusted)
    }

    /// Returns the margin on the scale of `mean`: a log ratio, or a difference in the unit of the
    /// metric. `level` is the mean of the reference side.
    fn mu(&self, margin: f64, level: f64) -> f64 {
        match self.ratio {
            Some(_) => libm::log1p(margin),
            None => margin * level.abs(),
        }
    }

    /// Sets the verdicts; the p values of all families must be known. `level` is the mean of the
    /// reference side and is used if there is no ratio.
    pub(super) fn judge(&mut self, of: &Judge<'_>, level: f64) {
        let Some(mean) = self.mean else {
            // If no block contains both treatments, there is nothing to compare.
            self.words = super::words::describe_comparison(self, of);
            return;
        };
        let mu = self.mu(of.margin, level);
        let input = |p_adjusted| VerdictInput {
            mean,
            se: self.se,
            df: self.df,
            p_adjusted,
            better: of.better,
            extra: self.step_added,
            runs_identical: self.exact != Exact::No,
            margin: libm::expm1(mu),
            alpha: of.alpha,
        };
        let mut judged = stats::verdict(&input(self.p_adjusted));
        if self.lost_to_rounding(of.alpha) {
            judged = stats::verdict(&input(self.p_rounded_adjusted));
        }
        self.verdict_cell = stats::verdict(&input(self.p_cell)).verdict;
        (self.verdict, self.p_margin) = (judged.verdict, judged.p_tost.map(stored));
        self.deciding95 = self.widened(of.alpha);
        if self.at_limit.is_some() {
            let better = self.mean.is_some_and(|m| m * of.better.sign() > 0.0);
            let least = |v| self.of_bounds(v, better);
            (self.verdict, self.verdict_cell) = (least(self.verdict), least(self.verdict_cell));
        }
        let log_typical = match self.ratio {
            Some(_) => self.typical.map(libm::log),
            None => self.typical,
        };
        let apart = log_typical.is_some_and(|t| (mean - t).abs() > mu / 2.0);
        let disagree = match (self.p, self.p_rank) {
            (Some(t), Some(r)) => t.min(r) < 0.05 && t.max(r) > 0.2,
            _ => false,
        };
        // With fewer than six blocks the p value of a rank test cannot be below 5 %.
        self.tail_decides = self.n >= 6 && (apart || disagree);
        if let (Some(sd), Some((low, high))) = (self.sd, self.interval95) {
            let half = (high - low) / 2.0;
            if half > of.target.max(of.fraction * mean.abs()) && self.ratio.is_some() {
                self.blocks_needed = Some(stats::blocks_for_width(sd, of.target, 6, BLOCKS_MOST));
            }
        }
        if self.unbelieved() && self.step_added == 0.0 && self.n > 1 {
            self.blocks_needed = Some(stats::IDENTICAL_BLOCKS);
        }
        self.words = super::words::describe_comparison(self, of);
    }
}

/// Upper limit of an estimated number of blocks; a larger number is printed as "thousands".
pub(super) const BLOCKS_MOST: u32 = 10_000;

/// The inputs of a verdict.
pub(super) struct Judge<'a> {
    pub better: Better,
    pub margin: f64,
    pub alpha: f64,
    pub target: f64,
    pub fraction: f64,
    /// Number of comparisons in the family, over the whole experiment.
    pub family: usize,
    pub metric: &'a MetricInfo,
}

fn both((low, high): (f64, f64)) -> (f64, f64) {
    (stored(low), stored(high))
}
