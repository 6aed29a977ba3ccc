//! Compares two results of the same experiment, for example from two kernels, two versions of a
//! program, or two days. Reports which differences cannot be explained by the variation between
//! sessions, as far as that variation is known.
//!
//! - Simulated runs with the same seed are compared exactly, as pairs. With different seeds, the
//!   results are compared as two samples. Simulations have no session effect.
//! - On a host, the session affects all runs. So the log ratios to a control that is in both
//!   results are compared. The session still has an effect on the ratio of two schedulers. The size
//!   of this effect is assumed, or estimated from at least five earlier sessions.
//! - Without a control, the absolute change is reported, with a note that the difference between
//!   the days can explain it.
//!
//! A cell got worse if the one-sided 95 % interval excludes "not worse" and the estimate exceeds
//! the margin. With at least five earlier sessions, absolute changes can have a verdict too
//! ([`Options::absolute`]).

mod environment;
mod side;
mod words;

pub use environment::environment;

use crate::results::{Cell, MetricInfo, Results};
use crate::stats::{self, Better, Estimate, holm, stored, t_lower, t_quantile};
use seekwell_core::prose::all_in_prose;
use serde::Serialize;
use side::{absolute, by_seed, log_ratio};
use std::collections::BTreeMap;
use thiserror::Error;

/// Number of earlier sessions that are needed to estimate the spread between sessions.
pub const HISTORY_MIN: usize = 5;

/// The results of one session, with the recorded environment.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    /// The results of the session.
    pub results: &'a Results,
    /// Properties of the machine by name, for example "kernel" with the value "6.8.0".
    pub environment: &'a BTreeMap<String, String>,
}

/// How two results are compared.
#[derive(Clone, Debug)]
pub struct Options {
    /// Label of the control treatment; `None` means the reference of each cell.
    pub control: Option<String>,
    /// True if absolute changes are compared with earlier sessions.
    pub absolute: bool,
    /// True if p values are corrected for the number of comparisons.
    pub strict_family: bool,
    /// Assumed standard deviation, over sessions, of the log ratio of two schedulers.
    pub sigma: f64,
    /// Relative difference that matters.
    pub margin: f64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            control: None,
            absolute: false,
            strict_family: false,
            sigma: 0.01,
            margin: stats::MARGIN,
        }
    }
}

/// Why two results cannot be compared.
#[derive(Error, Clone, Debug, PartialEq, Eq)]
pub enum DiffError {
    /// The results have no cell and treatment in common.
    #[error(
        "the two results have no cell and scheduler in common: the first has {0}; the second has {1}. \
         Only the same workload on the same device can be compared"
    )]
    Nothing(String, String),
    /// The control is not in both results.
    #[error("no treatment is called \"{0}\" in both results; the new results have {1}")]
    Control(String, String),
    /// Absolute changes have no verdict without earlier sessions.
    #[error(
        "absolute changes need at least {HISTORY_MIN} earlier results, which show how much days \
         differ (repeat --history PATH); {0} are given"
    )]
    NoHistory(usize),
}

/// The kind of data that a change was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Simulated runs with the same seeds, which are compared exactly.
    Seeds,
    /// Simulated runs with different seeds, which are two samples.
    OtherSeeds,
    /// Log ratios to a control that is in both results.
    Control,
    /// Log ratios to a control, compared with earlier sessions.
    History,
    /// Absolute change, compared with earlier sessions.
    AbsoluteHistory,
    /// Absolute change between two days, which the difference between the days can explain.
    Day,
}

/// The change of a treatment in a cell, from the old to the new results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Name of the cell.
    pub cell: String,
    /// Label of the treatment.
    pub treatment: String,
    /// Label of the control, if the ratio is relative to a control; `None` for an absolute change.
    pub control: Option<String>,
    /// The metric that is compared.
    pub metric: MetricInfo,
    /// The kind of data that the change was computed from.
    pub basis: Basis,
    /// Number of runs or pairs in the old and in the new results.
    pub n: (usize, usize),
    /// True if all pairs of runs have bit-identical values.
    pub identical: bool,
    /// New value divided by old value.
    pub ratio: f64,
    /// 95 % confidence interval of `ratio`; `None` for a single run.
    pub ratio95: Option<(f64, f64)>,
    /// One-sided p value of the null hypothesis "not worse". `None` if the change is exact, or if
    /// the spread is not known.
    pub p_worse: Option<f64>,
    /// `p_worse` after Holm's correction for all changes with a p value.
    pub p_adjusted: Option<f64>,
    /// True if the treatment is worse by more than the margin, as far as the data allows a verdict.
    pub worse: bool,
    /// True if the treatment is better by more than the margin, as far as the data allows a
    /// verdict.
    pub better: bool,
    /// The change in words.
    pub words: String,
}

/// A property of the environment that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Differing {
    /// Name of the property.
    pub name: String,
    /// Old value; empty if the old results do not have it.
    pub old: String,
    /// New value; empty if the new results do not have it.
    pub new: String,
}

/// All differences between two results.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diff {
    /// Properties of the machine and settings of the treatments that differ.
    pub environment: Vec<Differing>,
    /// The change of each treatment in each cell that both results contain.
    pub changes: Vec<Change>,
    /// Cells and treatments that only the old results contain.
    pub only_old: Vec<String>,
    /// Cells and treatments that only the new results contain.
    pub only_new: Vec<String>,
    /// Sentences for the reader of the comparison.
    pub notes: Vec<String>,
    /// Number of changes with the verdict "worse".
    pub worse: usize,
    /// Number of changes with the verdict "better".
    pub better: usize,
}

/// Returns the properties in which two cells must agree to be compared.
fn key(cell: &Cell) -> (String, String, String, String, String) {
    let axes: Vec<String> = cell.axes.iter().map(|(k, v)| format!("{k}={v}")).collect();
    (
        cell.device.clone(),
        cell.machine.clone(),
        cell.workload.clone(),
        axes.join(","),
        cell.primary.name.clone(),
    )
}

/// A cell that both results contain, with its index in the old and in the new results.
struct Both<'a> {
    old: &'a Results,
    new: &'a Results,
    cell: (usize, usize),
    history: &'a [&'a Results],
    options: &'a Options,
}

fn treatment(results: &Results, cell: usize, label: &str) -> Option<usize> {
    let all = &results.cells.get(cell)?.treatments;
    let is = |t: &&usize| {
        results
            .treatments
            .get(**t)
            .is_some_and(|t| t.label == label)
    };
    all.iter().find(is).copied()
}

fn differing(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<Differing> {
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    let of = |all: &BTreeMap<String, String>, name| all.get(name).cloned().unwrap_or_default();
    let pairs = names.into_iter().map(|name| Differing {
        name: name.clone(),
        old: of(old, name),
        new: of(new, name),
    });
    pairs.filter(|d| d.old != d.new).collect()
}

/// Returns the settings of the treatments, in the same form as the environment.
fn settings(results: &Results) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for t in &results.treatments {
        if !t.version.is_empty() {
            out.insert(format!("{}: version", t.label), t.version.clone());
        }
        for (name, value) in &t.tunables {
            out.insert(format!("{}: {name}", t.label), value.clone());
        }
    }
    out
}

/// Compares two results. `history` holds earlier sessions of the same experiment.
pub fn diff(
    old: Session<'_>,
    new: Session<'_>,
    history: &[&Results],
    options: &Options,
) -> Result<Diff, DiffError> {
    if options.absolute && history.len() < HISTORY_MIN {
        return Err(DiffError::NoHistory(history.len()));
    }
    let mut out = Diff {
        environment: differing(old.environment, new.environment),
        ..Diff::default()
    };
    let (a, b) = (settings(old.results), settings(new.results));
    out.environment.extend(differing(&a, &b));
    if let Some(control) = &options.control {
        let has = |r: &Results| r.treatments.iter().any(|t| t.label == *control);
        if !has(old.results) || !has(new.results) {
            let all: Vec<&str> = new
                .results
                .treatments
                .iter()
                .map(|t| t.label.as_str())
                .collect();
            return Err(DiffError::Control(
                control.clone(),
                all_in_prose(&all).join(", "),
            ));
        }
    }
    let places: BTreeMap<_, usize> = old
        .results
        .cells
        .iter()
        .enumerate()
        .map(|(i, c)| (key(c), i))
        .collect();
    let mut matched = vec![false; old.results.cells.len()];
    for (at, cell) in new.results.cells.iter().enumerate() {
        let Some(&before) = places.get(&key(cell)) else {
            out.only_new.push(cell.name.clone());
            continue;
        };
        matched[before] = true;
        let both = Both {
            old: old.results,
            new: new.results,
            cell: (before, at),
            history,
            options,
        };
        both.changes(&mut out);
    }
    for (cell, _) in old.results.cells.iter().zip(matched).filter(|c| !c.1) {
        out.only_old.push(cell.name.clone());
    }
    if out.changes.is_empty() {
        let list = |r: &Results| {
            let all: Vec<&str> = r.cells.iter().take(4).map(|c| c.name.as_str()).collect();
            let more = r.cells.len().saturating_sub(4);
            match more {
                0 => all.join("; "),
                n => format!("{}; and {n} more", all.join("; ")),
            }
        };
        return Err(DiffError::Nothing(list(old.results), list(new.results)));
    }
    judge(&mut out, options);
    Ok(out)
}

/// Sets the verdicts after all changes are computed.
fn judge(out: &mut Diff, options: &Options) {
    let p: Vec<Option<f64>> = out.changes.iter().map(|c| c.p_worse).collect();
    let opposite: Vec<Option<f64>> = p.iter().map(|p| p.map(|p| 1.0 - p)).collect();
    let (adjusted, adjusted_better) = (holm(&p), holm(&opposite));
    let mu = libm::log1p(options.margin);
    for (i, c) in out.changes.iter_mut().enumerate() {
        c.p_adjusted = adjusted[i].map(stored);
        let sign = if c.metric.higher_is_better { 1.0 } else { -1.0 };
        let gain = sign * libm::log(c.ratio);
        let judged = c.basis != Basis::Day;
        let (down, up) = match options.strict_family {
            true => (adjusted[i], adjusted_better[i]),
            false => (p[i], opposite[i]),
        };
        // An exact change needs no test.
        let says = |p: Option<f64>| p.map_or(c.basis == Basis::Seeds, |p| p < 0.05);
        c.worse = judged && gain < -mu && says(down);
        c.better = judged && gain > mu && says(up);
        c.words = words::describe_change(c, options.margin);
    }
    out.worse = out.changes.iter().filter(|c| c.worse).count();
    out.better = out.changes.iter().filter(|c| c.better).count();
    if out.changes.iter().any(|c| c.basis == Basis::Day) {
        out.notes.push(
            "results differ from day to day, so absolute changes can have another cause; to exclude \
             this, run old and new interleaved (`compare` with both as treatments)"
                .to_owned(),
        );
    }
    if out.changes.iter().any(|c| c.basis == Basis::Control) {
        out.notes.push(format!(
            "between sessions, the ratio of two schedulers is assumed to vary by {} % (SD); five \
             earlier results (--history) replace the assumption",
            stats::stored(100.0 * options.sigma)
        ));
    }
}

impl Both<'_> {
    fn cells(&self) -> (&Cell, &Cell) {
        (&self.old.cells[self.cell.0], &self.new.cells[self.cell.1])
    }

    fn changes(&self, out: &mut Diff) {
        let (before, now) = self.cells();
        let label = |r: &Results, t: usize| r.treatments.get(t).map(|t| t.label.clone());
        for t in &now.treatments {
            let Some(name) = label(self.new, *t) else {
                continue;
            };
            let Some(old) = treatment(self.old, self.cell.0, &name) else {
                out.only_new.push(format!("{}: {name}", now.name));
                continue;
            };
            match self.change(&name, (old, *t)) {
                Some(change) => out.changes.push(change),
                None => out.notes.push(format!(
                    "{}: {name}: no value above 0 in both, not compared",
                    now.name
                )),
            }
        }
        for t in &before.treatments {
            if let Some(name) = label(self.old, *t)
                && treatment(self.new, self.cell.1, &name).is_none()
            {
                out.only_old.push(format!("{}: {name}", before.name));
            }
        }
    }

    /// Returns the control of this cell: its label and its index in the old and in the new results.
    /// Returns `None` if `name` is the control itself, or if one of the results does not have the
    /// control.
    fn control(&self, name: &str) -> Option<(String, usize, usize)> {
        let now = self.cells().1;
        let reference = self
            .new
            .treatments
            .get(now.reference)
            .map(|t| t.label.clone());
        let control = self.options.control.clone().or(reference)?;
        if control == name {
            return None;
        }
        let old = treatment(self.old, self.cell.0, &control)?;
        let new = treatment(self.new, self.cell.1, &control)?;
        Some((control, old, new))
    }

    fn bare(&self, name: &str, basis: Basis, n: (usize, usize), log_change: f64) -> Change {
        let now = self.cells().1;
        Change {
            cell: now.name.clone(),
            treatment: name.to_owned(),
            control: None,
            metric: now.primary.clone(),
            basis,
            n,
            identical: false,
            ratio: stored(libm::exp(log_change)),
            ratio95: None,
            p_worse: None,
            p_adjusted: None,
            worse: false,
            better: false,
            words: String::new(),
        }
    }

    fn better(&self) -> Better {
        match self.cells().1.primary.higher_is_better {
            true => Better::Higher,
            false => Better::Lower,
        }
    }

    fn change(&self, name: &str, (old, new): (usize, usize)) -> Option<Change> {
        let (before, now) = self.cells();
        let metric = now.primary.name.as_str();
        let here = ((self.old, self.cell.0), (self.new, self.cell.1));
        // A period of a trial also depends on the periods before it.
        let trial = self.new.about.source == crate::trial::SOURCE;
        if before.virtual_time() && before.substrate == now.substrate && !trial {
            let pairs = by_seed(here.0, here.1, (old, new), metric);
            if !pairs.is_empty() {
                return self.seeds(name, &pairs);
            }
        }
        let sim = before.virtual_time() && before.substrate == now.substrate;
        let mut basis = if sim { Basis::OtherSeeds } else { Basis::Day };
        let (mut a, mut b) = (
            absolute(self.old, self.cell.0, old, metric)?,
            absolute(self.new, self.cell.1, new, metric)?,
        );
        let n = (a.n, b.n);
        let mut against = None;
        let mut sigma = 0.0;
        let mut past: Vec<f64> = Vec::new();
        if self.options.absolute && !sim {
            past = self.past(|r, cell| {
                let t = treatment(r, cell, name)?;
                Some(absolute(r, cell, t, metric)?.mean)
            });
            basis = if past.len() >= HISTORY_MIN {
                Basis::AbsoluteHistory
            } else {
                Basis::Day
            };
        } else if let Some((control, c_old, c_new)) = self.control(name) {
            let then = log_ratio(self.old, self.cell.0, (old, c_old), metric);
            let current = log_ratio(self.new, self.cell.1, (new, c_new), metric);
            if let (Some(then), Some(current)) = (then, current) {
                (a, b) = (then, current);
                past = self.past(|r, cell| {
                    let (t, c) = (treatment(r, cell, name)?, treatment(r, cell, &control)?);
                    Some(log_ratio(r, cell, (t, c), metric)?.mean)
                });
                (basis, sigma) = match (sim, past.len() >= HISTORY_MIN) {
                    (true, _) => (Basis::OtherSeeds, 0.0),
                    (false, true) => (Basis::History, self.options.sigma),
                    (false, false) => (Basis::Control, self.options.sigma),
                };
                against = Some(control);
            }
        }
        let by_past = matches!(basis, Basis::History | Basis::AbsoluteHistory);
        let estimate = |e: &side::Known| Estimate {
            mean: e.mean,
            variance: e.variance,
            df: e.df,
        };
        let past = if by_past { past.as_slice() } else { &[] };
        let (old, new) = (estimate(&a), estimate(&b));
        let change =
            stats::session_change(&old, &new, past, sigma, self.better(), self.options.margin);
        let mut out = self.bare(name, basis, n, change.change);
        out.control = against;
        if change.se > 0.0 && (by_past || (a.measured && b.measured)) {
            let half = t_quantile(0.975, change.df.unwrap_or(f64::INFINITY)) * change.se;
            let end = |x: f64| stored(libm::exp(change.change + x));
            out.ratio95 = Some((end(-half), end(half)));
            let gain = self.better().sign() * change.change;
            let df = change.df.unwrap_or(f64::INFINITY);
            let p = t_lower(gain / change.se, df);
            out.p_worse = (basis != Basis::Day).then(|| stored(p));
        }
        Some(out)
    }

    /// Returns the values of the same cell in the earlier sessions.
    fn past(&self, value: impl Fn(&Results, usize) -> Option<f64>) -> Vec<f64> {
        let here = key(self.cells().1);
        let of = |r: &&Results| {
            let cell = r.cells.iter().position(|c| key(c) == here)?;
            value(r, cell)
        };
        self.history.iter().filter_map(of).collect()
    }

    /// Compares runs with the same seeds. The differences are exact for these seeds. The interval
    /// describes what other seeds would give.
    fn seeds(&self, name: &str, pairs: &[(f64, f64)]) -> Option<Change> {
        let identical = pairs.iter().all(|(a, b)| a.to_bits() == b.to_bits());
        if !identical && pairs.iter().any(|(a, b)| *a <= 0.0 || *b <= 0.0) {
            return None;
        }
        let (old, new): (Vec<_>, Vec<_>) = pairs.iter().map(|p| (Some(p.0), Some(p.1))).unzip();
        let n = pairs.len();
        if identical {
            let mut out = self.bare(name, Basis::Seeds, (n, n), 0.0);
            out.identical = true;
            return Some(out);
        }
        let p = stats::paired(&new, &old, self.better(), false, None);
        let mean = p.mean?;
        let mut out = self.bare(name, Basis::Seeds, (n, n), mean);
        if let (Some(se), Some(df)) = (p.se.filter(|se| *se > 0.0), p.df) {
            out.ratio95 = p.ratio95.map(|(l, h)| (stored(l), stored(h)));
            let gain = self.better().sign() * mean;
            out.p_worse = Some(stored(t_lower(gain / se, df)));
        }
        Some(out)
    }
}
