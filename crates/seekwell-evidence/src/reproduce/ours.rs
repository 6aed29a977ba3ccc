//! Our results beside the published ones.

use super::figures::{Pair, Published};
use seekwell_lab::results::{Outcome, Results, Run};
use seekwell_lab::stats::describe;
use seekwell_stats::mean;
use serde::Serialize;

/// One of our results.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ours {
    /// Mean over the runs.
    pub mean: f64,
    /// Standard error of the mean; `None` if there is one run.
    pub se: Option<f64>,
    /// Number of runs.
    pub n: usize,
}

/// A published test on one system, with our results.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The published test.
    #[serde(flatten)]
    pub published: Published,
    /// Our results, in the order of [`Published::sides`]; `None` if not run or failed.
    pub ours: Vec<Option<Ours>>,
}

impl Cell {
    /// Returns the number of runs of each of our results.
    pub fn runs(&self) -> impl Iterator<Item = usize> + '_ {
        self.ours.iter().flatten().map(|o| o.n)
    }
    /// Returns our value divided by the published value.
    pub fn ratio(&self, side: usize) -> Option<f64> {
        let ours = self.ours.get(side).copied().flatten()?;
        Some(ours.mean / self.published.sides.get(side)?.value)
    }
    /// Returns our ratio for a pair: first value divided by second value.
    pub fn pair(&self, p: &Pair) -> Option<f64> {
        let of = |i: usize| self.ours.get(i).copied().flatten().map(|o| o.mean);
        let ratio = of(p.one)? / of(p.other)?;
        Some(ratio).filter(|r| r.is_finite() && *r > 0.0)
    }
}

/// Returns the value of a run: the mean of the values that [`Published::figures`] names, scaled.
fn value(p: &Published, run: &Run) -> Option<f64> {
    let all: Option<Vec<f64>> = p.figures.iter().map(|f| run.value(f)).collect();
    let all = all.filter(|a| !a.is_empty())?;
    Some(mean(&all) * p.times)
}

/// Finds our results for a published test. The quick form may use a smaller machine, named `SYSTEM,
/// an eighth`.
pub(super) fn find_ours(p: Published, results: &Results, quick: bool) -> Cell {
    let on = |m: &str| {
        let rest = m.strip_prefix(p.system.as_str());
        rest.is_some_and(|r| r.is_empty() || r.starts_with(", "))
    };
    let cell = results
        .cells
        .iter()
        .position(|c| c.workload == p.run && on(&c.machine));
    let factor = if quick { p.quick_factor } else { 1.0 };
    let of = |scheduler: &str| -> Option<Ours> {
        let cell = cell?;
        let treatment = results
            .treatments
            .iter()
            .position(|t| t.label == scheduler)?;
        let own = |r: &&Run| {
            (r.key.cell, r.key.treatment) == (cell, treatment) && r.outcome == Outcome::Done
        };
        let runs = results.runs.iter().filter(own);
        let values: Vec<f64> = runs
            .filter_map(|r| value(&p, r))
            .map(|v| v * factor)
            .collect();
        let n = values.len();
        let d = describe(&values.into_iter().map(Some).collect::<Vec<_>>());
        Some(Ours {
            mean: d.mean?,
            se: d.se,
            n,
        })
    };
    let ours = p.sides.iter().map(|s| of(&s.scheduler)).collect();
    Cell { published: p, ours }
}
