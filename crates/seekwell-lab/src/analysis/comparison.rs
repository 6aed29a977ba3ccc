//! Two treatments in a cell: effect, interval, tests, verdict.

use crate::results::MetricInfo;
use crate::stats::{self, Better, Paired, Scale, Verdict, VerdictInput, stored};
use serde::{Deserialize, Serialize};

/// How two treatments were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Paired t on log ratios within blocks.
    #[default]
    Paired,
    /// Paired t on differences: a value was 0 or negative, and has no log.
    PairedDifferences,
    /// Welch's t on logs: blocks are not known.
    Welch,
    /// Welch's t on means and errors: runs are not known.
    WelchSummary,
}

/// Blocks of a comparison in which runs reached their limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtLimit {
    /// Of the one treatment alone.
    pub one: usize,
    /// Of the other alone.
    pub other: usize,
    /// Of both.
    pub both: usize,
}

/// Why a difference without any spread may be believed after three blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Exact {
    /// It has spread, or may have.
    #[default]
    No,
    /// Both sides gave one value in all blocks; other figures of the runs differ.
    Value,
    /// No run depends on its seed.
    Run,
}

/// A treatment against another in one cell and metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Which treatment, by place in the results.
    pub one: usize,
    /// Against which.
    pub other: usize,
    /// By what test.
    pub test: Test,
    /// Blocks with both, or the runs of the smaller side where there are no blocks.
    pub n: usize,
    /// Runs that lost their partner.
    pub dropped: usize,
    /// Mean of the logs of one / other, or of the differences; `None`: no block has both.
    pub mean: Option<f64>,
    /// Their standard deviation.
    pub sd: Option<f64>,
    /// Standard error, with the stopping rule's factor where it is due.
    pub se: Option<f64>,
    /// Degrees of freedom.
    pub df: Option<f64>,
    /// Half-width that a metric in whole steps adds.
    pub step_added: f64,
    /// The stopping rule widened the interval.
    pub corrected: bool,
    /// one / other.
    pub ratio: Option<f64>,
    /// Its 95 % interval.
    pub ratio95: Option<(f64, f64)>,
    /// 95 % interval of `mean`.
    pub interval95: Option<(f64, f64)>,
    /// Ratio of the arithmetic means over the same blocks.
    pub ratio_of_means: Option<f64>,
    /// Two-sided p.
    pub p: Option<f64>,
    /// p with the rounding of published digits at its worst; `None`: nothing was rounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_rounded: Option<f64>,
    /// The same after Holm over the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_rounded_adjusted: Option<f64>,
    /// p after Holm over the experiment.
    pub p_adjusted: Option<f64>,
    /// The interval of `mean` that decides: at the error that Holm's correction leaves to this
    /// comparison, so that it excludes 0 exactly where `p_adjusted` is small enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deciding95: Option<(f64, f64)>,
    /// What Holm's correction divides the error of this comparison by.
    #[serde(skip)]
    pub(super) divisor: f64,
    /// p after Holm within the cell.
    pub p_cell: Option<f64>,
    /// p of "the difference is as large as the margin".
    pub p_margin: Option<f64>,
    /// Verdict over the experiment.
    pub verdict: Verdict,
    /// Verdict within the cell.
    pub verdict_cell: Verdict,
    /// Blocks in which one is better.
    pub ahead: usize,
    /// Blocks in which they are equal.
    pub equal: usize,
    /// p of the signed rank test.
    pub p_rank: Option<f64>,
    /// Hodges-Lehmann: ratio of the typical run, or difference.
    pub typical: Option<f64>,
    /// Its 95 % interval.
    pub typical95: Option<(f64, f64)>,
    /// Runs that reached their limit; then the ratio is of the time for the same work, which
    /// counts as the limit at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_limit: Option<AtLimit>,
    /// Mean and typical run disagree: a few runs decide.
    pub tail_decides: bool,
    /// Blocks that an interval of the wanted width needs, where this one is wider.
    pub blocks_needed: Option<u32>,
    /// Verdict in words, of `one`.
    pub words: String,
    #[serde(skip)]
    pub(super) exact: Exact,
}

impl Comparison {
    /// How many times better `one` is, of the direction that is good; below 1: worse. `None` where
    /// there is no ratio.
    pub fn times_better(&self, better: Better) -> Option<f64> {
        self.ratio
            .map(|r| if better == Better::Higher { r } else { 1.0 / r })
    }
    /// Ends of its interval in the same direction, the lower first.
    pub fn better95(&self, better: Better) -> Option<(f64, f64)> {
        let (low, high) = self.ratio95?;
        Some(match better {
            Better::Higher => (low, high),
            Better::Lower => (1.0 / high, 1.0 / low),
        })
    }
    /// Does it agree with "it does not matter": is it level, or is its estimate within the margin and
    /// its 90 % interval within twice the margin?
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
    /// The same of the interval that decides.
    pub fn better_deciding(&self, better: Better) -> Option<(f64, f64)> {
        let (low, high) = self.deciding95.filter(|_| self.ratio.is_some())?;
        let (low, high) = (libm::exp(low), libm::exp(high));
        Some(match better {
            Better::Higher => (low, high),
            Better::Lower => (1.0 / high, 1.0 / low),
        })
    }
    /// The interval at the error that the correction leaves to it.
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
    /// Is `one` shown to be better, over the experiment?
    pub fn wins(&self, better: Better) -> bool {
        self.verdict.claims() && self.mean.is_some_and(|m| m * better.sign() > 0.0)
    }
    /// Only one of the two reached limits: it is behind by at least the ratio.
    pub fn at_least(&self) -> bool {
        self.at_limit
            .is_some_and(|l| l.both == 0 && (l.one == 0) != (l.other == 0))
    }
    /// Is it shown that they differ by less than the margin?
    pub fn level(&self) -> bool {
        use Verdict::{Identical, NoDifference, RealButSmall};
        matches!(self.verdict, Identical | NoDifference | RealButSmall)
    }

    /// The same, or equal in every block so far, which is not shown to stay so.
    pub fn near(&self) -> bool {
        self.level() || (self.n > 1 && self.equal == self.n)
    }

    /// A verdict on times of which some are lower bounds: it claims no equality.
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

    /// Of paired runs.
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

    /// No spread is seen, and too few blocks to believe it: its standard error of 0 says nothing.
    pub(super) fn unbelieved(&self) -> bool {
        self.se == Some(0.0) && self.verdict == Verdict::CannotTell
    }

    /// It would hold over the experiment, but for the rounding of the digits it was published with.
    pub fn lost_to_rounding(&self, alpha: f64) -> bool {
        let holds = |p: Option<f64>| p.is_some_and(|p| p <= alpha);
        holds(self.p_adjusted) && self.p_rounded.is_some() && !holds(self.p_rounded_adjusted)
    }

    /// Half the margin's width on the scale of `mean`.
    fn mu(&self, margin: f64, level: f64) -> f64 {
        match self.ratio {
            Some(_) => libm::log1p(margin),
            None => margin * level.abs(),
        }
    }

    /// Judges it, with the p of both families known. `level`: mean of the reference side, for
    /// what has no ratio.
    pub(super) fn judge(&mut self, of: &Judge<'_>, level: f64) {
        let Some(mean) = self.mean else {
            // Without a block there is nothing to judge.
            self.words = super::words::of(self, of);
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
        // Below six blocks no rank test can say 5 %.
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
        self.words = super::words::of(self, of);
    }
}

/// More blocks than that are "many".
pub(super) const BLOCKS_MOST: u32 = 10_000;

/// What is judged by.
pub(super) struct Judge<'a> {
    pub better: Better,
    pub margin: f64,
    pub alpha: f64,
    pub target: f64,
    pub fraction: f64,
    /// Comparisons of the experiment's family.
    pub family: usize,
    pub metric: &'a MetricInfo,
}

fn both((low, high): (f64, f64)) -> (f64, f64) {
    (stored(low), stored(high))
}
