//! Robustness checks of the predictions. Each check measures the scores under one change:
//!
//! - [`constants`]: the estimated constants have other values;
//! - [`permuted`]: the scheduler labels are permuted;
//! - [`ablations`]: a claimed cause is removed;
//! - [`order`]: all runs use one drive, in the order that the publication may have used.
//!
//! Each result is stored as one line, so that an interrupted check can continue.
//!
//! A separate test checks that no constant depends on a scheduler.

pub mod ablations;
pub mod constants;
mod kept;
pub mod order;
pub mod permuted;

pub use kept::{Kept, Line};

use super::figures::Published;
use super::ours::{Cell, Ours, find_ours};
use super::score::{level, skill};
use seekwell::Cancel;
use seekwell_core::suggest;
use seekwell_lab::conduct::{How, Memory, Simulated, Told, conduct};
use seekwell_lab::experiment::Experiment;
use seekwell_lab::results;
use serde::Serialize;
use std::collections::BTreeMap;
use thiserror::Error;

/// A robustness check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// Every estimated constant is reduced and increased by a quarter, alone and together.
    Constants,
    /// The scheduler labels are permuted within each test.
    Permuted,
    /// Claimed causes are removed.
    Ablations,
    /// All runs use one drive, in the order of the columns of the published table.
    Order,
}

impl Guard {
    /// All checks, in display order.
    pub const ALL: [Guard; 4] = [
        Guard::Permuted,
        Guard::Constants,
        Guard::Ablations,
        Guard::Order,
    ];
    /// Returns the name of the check on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Guard::Constants => "constants",
            Guard::Permuted => "permuted",
            Guard::Ablations => "ablations",
            Guard::Order => "order",
        }
    }
    /// Returns the check with this name, or all checks if the name is `all`.
    ///
    /// # Errors
    /// There is no such check; the error lists the names.
    pub fn find(name: &str) -> Result<Vec<Guard>, String> {
        if name == super::ALL {
            return Ok(Guard::ALL.to_vec());
        }
        if let Some(one) = Guard::ALL.iter().find(|g| g.name() == name) {
            return Ok(vec![*one]);
        }
        let names: Vec<&str> = Guard::ALL.iter().map(|g| g.name()).collect();
        let near = suggest::did_you_mean(name, names.iter().copied().chain([super::ALL]), &[]);
        let near = near.unwrap_or_else(|| format!("there are {}, all", names.join(", ")));
        Err(format!("there is no robustness check `{name}`; {near}"))
    }
}

/// The reason why a check has no result.
#[derive(Error, Debug)]
pub enum GuardError {
    /// A signal stopped the check. The results until then are stored.
    #[error("stopped: the results so far are stored, and the same command continues")]
    Stopped,
    /// A run failed, or a result cannot be stored; the text says why.
    #[error("{0}")]
    Text(String),
}

/// Settings for the runs of the checks.
pub struct Bench<'a> {
    /// Number of runs at the same time; `None` for one per core.
    pub threads: Option<usize>,
    /// Token that stops the checks.
    pub cancel: &'a Cancel,
    /// Receives progress reports.
    pub told: &'a dyn Told,
}

/// Our values by published test and scheduler; `None` if not run or failed.
pub type Figures = Vec<Vec<Option<f64>>>;

/// Scores of a set of values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Skill over all scored pairs; `None` if no pair is scored.
    pub skill: Option<f64>,
    /// Skill by letter of the group of effects.
    pub groups: BTreeMap<String, f64>,
    /// Median |ln (ours / published)| over the disk tests without fitted constants.
    pub level: Option<f64>,
    /// Fraction (0 to 1) of these tests within 35 %.
    pub near: f64,
}

impl Score {
    /// Computes the scores of a set of values.
    pub fn compute(published: &[Published], figures: &Figures) -> Score {
        let cells = cells(published, figures);
        let levels = level(&cells);
        let own = levels.iter().find(|l| l.what == super::score::UNFITTED);
        let mut score = Score {
            level: own.and_then(|l| l.median),
            near: own.map_or(0.0, |l| l.near),
            ..Score::default()
        };
        for s in skill(&cells) {
            match s.group.as_str() {
                "" => score.skill = s.ours,
                g => score.groups.extend(s.ours.map(|ours| (g.to_owned(), ours))),
            }
        }
        score
    }
}

/// Combines our values with the published results.
pub(super) fn cells(published: &[Published], figures: &Figures) -> Vec<Cell> {
    let ours = |f: &Option<f64>| {
        f.map(|mean| Ours {
            mean,
            se: None,
            n: 1,
        })
    };
    published
        .iter()
        .zip(figures)
        .map(|(p, f)| Cell {
            published: p.clone(),
            ours: f.iter().map(ours).collect(),
        })
        .collect()
}

/// Extracts the values of each published test from the results of a quick form.
fn figures(published: &[Published], results: &results::Results) -> Figures {
    let ours = |p: &Published| {
        let cell = find_ours(p.clone(), results, true);
        cell.ours.iter().map(|o| o.map(|o| o.mean)).collect()
    };
    published.iter().map(ours).collect()
}

/// Runs an experiment. Returns its values, and the reasons why runs failed.
fn made(
    bench: &Bench<'_>,
    published: &[Published],
    e: &Experiment,
) -> Result<(Figures, Vec<String>), GuardError> {
    let mut store = Memory::default();
    let how = How {
        threads: bench.threads,
        cancel: bench.cancel.clone(),
        told: bench.told,
    };
    let done = conduct(e, &Simulated::default(), &mut store, &how);
    let done = done.map_err(|e| GuardError::Text(e.to_string()))?;
    if done.cancelled {
        return Err(GuardError::Stopped);
    }
    let results = done.results(e, store.runs);
    let failed = results.runs.iter().filter_map(|r| match &r.outcome {
        results::Outcome::Failed(why) => Some(why.clone()),
        _ => None,
    });
    let failed = failed.collect();
    Ok((figures(published, &results), failed))
}

/// Returns a short hash of an experiment's runs. Every change that can affect a run changes the
/// hash.
pub(super) fn hash(e: &Experiment) -> String {
    let all: String = e
        .cells
        .iter()
        .flat_map(|c| c.specs.iter().map(|s| s.hash()))
        .collect();
    format!("{:08x}", crc32fast::hash(all.as_bytes()))
}

/// Returns the values of `now`, completed with those of `base` where `now` has none.
fn over(base: &Figures, now: &Figures) -> Figures {
    let side = |(b, n): (&Option<f64>, &Option<f64>)| n.or(*b);
    base.iter()
        .zip(now)
        .map(|(b, n)| b.iter().zip(n).map(side).collect())
        .collect()
}
