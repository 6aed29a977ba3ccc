//! Writes verdicts in words. The words claim no more than the verdict supports.
//!
//! "Ahead" and "behind" refer to the ratio of two treatments: a is 25 % ahead of b if b is 25 %
//! behind a. Ratios of 1.95 or more are printed as a factor.

use super::comparison::{AtLimit, BLOCKS_MOST, Comparison, Exact, Judge, Test};
use crate::stats::{Better, IDENTICAL_BLOCKS, Verdict};

/// Formats a number with two significant digits, or one digit below 1: "12", "3.4", "0.6".
fn digits(x: f64) -> String {
    let text = match x.abs() {
        x if x < 0.095 => format!("{x:.2}"),
        x if x < 9.95 => format!("{x:.1}"),
        x => format!("{x:.0}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Formats a relative difference: "12 %", "0.6 %".
pub fn percent(x: f64) -> String {
    format!("{} %", digits(100.0 * x))
}

/// Ratios of this value or more are printed as a factor.
const FACTOR: f64 = 1.95;

/// Formats a ratio of 1 or more: "12 %", "2.2 times".
pub fn size(times: f64) -> String {
    match times {
        t if !t.is_finite() => "beyond comparison".to_owned(),
        t if t < FACTOR => percent(t - 1.0),
        t if t < 9.95 => format!("{t:.1} times"),
        t => format!("{t:.0} times"),
    }
}

/// Formats the interval of `times`: " (9 to 15 %)", " (2.0 to 2.5)". The text is empty if the
/// interval has no width.
pub fn span(ends: Option<(f64, f64)>, times: f64) -> String {
    let Some((low, high)) = ends else {
        return String::new();
    };
    let factor = |t: f64| match t {
        t if t < 9.95 => format!("{t:.1}"),
        t => format!("{t:.0}"),
    };
    let (low, high, unit) = match times >= FACTOR {
        true => (factor(low), factor(high), ""),
        false => (
            digits(100.0 * (low - 1.0)),
            digits(100.0 * (high - 1.0)),
            " %",
        ),
    };
    match low == high {
        true => String::new(),
        false => format!(" ({low} to {high}{unit})"),
    }
}

/// Formats a claim about the treatment `one`: "12 % ahead (9 to 15 %)".
pub fn effect(c: &Comparison, better: Better, interval: bool) -> String {
    let Some(times) = c.times_better(better) else {
        let mean = c.mean.unwrap_or_default();
        let word = if mean * better.sign() > 0.0 {
            "ahead"
        } else {
            "behind"
        };
        return format!("{} {word}", digits(mean.abs()));
    };
    let ahead = times >= 1.0;
    let turned = |t: f64| if ahead { t } else { 1.0 / t };
    let word = if ahead { "ahead" } else { "behind" };
    let times = turned(times);
    let ends = c.better_deciding(better);
    let ends = ends.map(|(l, h)| (turned(l), turned(h)));
    let ends = ends.map(|(a, b)| (a.min(b), a.max(b)));
    if c.at_least() {
        return format!("at least {} {word} in time for the same work", size(times));
    }
    format!(
        "{} {word}{}",
        size(times),
        span(ends.filter(|_| interval), times)
    )
}

/// Returns half the width of the 95 % interval: relative to the value, or in the unit of the metric
/// if there is no ratio.
pub fn half_width(c: &Comparison) -> Option<f64> {
    let (low, high) = c.interval95?;
    let half = (high - low) / 2.0;
    Some(if c.ratio.is_some() {
        libm::expm1(half)
    } else {
        half
    })
}

fn cannot_tell(c: &Comparison, of: &Judge<'_>) -> String {
    if c.mean.is_none() {
        return "no block contains both: not compared".to_owned();
    }
    let unpaired = matches!(c.test, Test::Welch | Test::WelchSummary);
    if unpaired && c.se.is_none() && c.ratio.is_some() {
        return format!(
            "{}; N = 1 or no standard error: ratio only",
            effect(c, of.better, false)
        );
    }
    if c.n < 2 {
        return "one run each: not compared".to_owned();
    }
    if unpaired && c.step_added > 0.0 {
        return format!(
            "cannot tell: the metric has steps of {}",
            percent(c.step_added)
        );
    }
    if c.unbelieved() && c.step_added == 0.0 {
        return format!(
            "{} in all {} blocks; {IDENTICAL_BLOCKS} blocks would decide",
            effect(c, of.better, false),
            c.n
        );
    }
    let Some(half) = half_width(c) else {
        return "cannot tell: the spread is not known".to_owned();
    };
    if c.ratio.is_none() {
        let unit = &of.metric.unit;
        return format!(
            "cannot tell yet: +-{} {unit} after {} blocks",
            digits(half),
            c.n
        );
    }
    let after = match c.sd {
        Some(_) => format!("{} blocks", c.n),
        None => format!("{} runs", c.n),
    };
    let need = match c.blocks_needed {
        Some(n) if n >= BLOCKS_MOST => format!("; +-{} needs thousands", percent(of.target)),
        Some(n) if n as usize > c.n => {
            format!("; +-{} needs about {}", percent(of.target), round(n))
        }
        _ => String::new(),
    };
    format!("cannot tell yet: +-{} after {after}{need}", percent(half))
}

/// Rounds an estimated number of blocks to two significant digits.
pub fn round(n: u32) -> u32 {
    match n {
        0..100 => n,
        100..1_000 => (n + 5) / 10 * 10,
        _ => (n + 50) / 100 * 100,
    }
}

pub(super) fn describe_comparison(c: &Comparison, judge: &Judge<'_>) -> String {
    let said = verdict(c, judge);
    match c.lost_to_rounding(judge.alpha) {
        true => format!("{said}; significant except for the rounding of the published digits"),
        false => said,
    }
}

/// Formats how often runs of a comparison reached their limit: "limit reached in 3 of 3 blocks".
fn limits(c: &Comparison, l: AtLimit) -> String {
    let n = l.one + l.other + l.both;
    let both = match l.both {
        0 => String::new(),
        b => format!(", by both in {b} of them"),
    };
    format!("limit reached in {n} of {} blocks{both}", c.n)
}

fn verdict(c: &Comparison, judge: &Judge<'_>) -> String {
    let better = judge.better;
    if let Some(l) = c.at_limit {
        let reached = limits(c, l);
        return match c.verdict {
            v if v.claims() => format!("{}; {reached}", effect(c, better, true)),
            Verdict::Hint => format!("a hint; {reached}"),
            _ => format!("cannot tell; {reached}"),
        };
    }
    match c.verdict {
        Verdict::Identical if c.exact == Exact::Run => {
            "identical (exact: uses no randomness)".to_owned()
        }
        Verdict::Identical => format!("identical in {0} of {0}", c.n),
        Verdict::IdenticalSoFar => format!("identical in {0} of {0} so far", c.n),
        Verdict::RealButSmall => {
            format!("{}: real, too small to matter", effect(c, better, false))
        }
        Verdict::Better | Verdict::Worse | Verdict::BetterMaybeSmall | Verdict::WorseMaybeSmall => {
            let exact = match c.exact {
                Exact::No => String::new(),
                Exact::Value => format!(" (the same in all {} blocks)", c.n),
                Exact::Run => " (exact: uses no randomness)".to_owned(),
            };
            format!("{}{exact}", effect(c, better, true))
        }
        Verdict::NoDifference => format!("no difference within {}", percent(judge.margin)),
        Verdict::Hint => format!("a hint; not significant for {} comparisons", judge.family),
        Verdict::CannotTell => cannot_tell(c, judge),
    }
}

/// Describes the upper bound of the probability of an outcome that was not seen in `n` runs.
pub fn may_still_happen(n: usize) -> String {
    match n {
        1 => "1 run shows nothing about rare outcomes".to_owned(),
        0..=3 => format!("{n} runs show nothing about rare outcomes"),
        n => format!(
            "an outcome not seen in {n} runs can still have a probability of up to {} (95 % upper \
             bound)",
            percent(3.0 / n as f64)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effect_sizes_have_two_digits_and_become_factors_from_two_on() {
        let all = [1.0004, 1.006, 1.0346, 1.12, 1.93, 1.96, 12.3, f64::INFINITY].map(size);
        assert_eq!(
            all,
            [
                "0.04 %",
                "0.6 %",
                "3.5 %",
                "12 %",
                "93 %",
                "2.0 times",
                "12 times",
                "beyond comparison"
            ]
        );
        let of = |low, high, times| span(Some((low, high)), times);
        assert_eq!(of(1.09, 1.15, 1.12), " (9 to 15 %)");
        assert_eq!(of(1.004, 1.056, 1.03), " (0.4 to 5.6 %)");
        assert_eq!(of(1.9, 2.52, 2.2), " (1.9 to 2.5)");
        assert_eq!(of(1.2, 1.2, 1.2), "", "exact");
    }
}
