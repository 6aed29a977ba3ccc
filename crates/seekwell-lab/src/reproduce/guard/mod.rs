//! Guards on what predictions are worth: what is left of a score when the constants are others
//! ([`constants`]), when labels mean nothing ([`permuted`]), when a cause is taken out
//! ([`ablations`]), and when runs follow each other on one drive as they may have in the original
//! ([`order`]). What each made is kept line by line, so that an interrupted one goes on.
//!
//! Left out: that no constant depends on a scheduler, which a test holds.

pub mod ablations;
pub mod constants;
mod kept;
pub mod order;
pub mod permuted;

pub use kept::{Kept, Line};

use super::figures::Published;
use super::ours::{Cell, Ours, beside};
use super::score::{level, skill};
use crate::conduct::{How, Memory, Simulated, Told, conduct};
use crate::experiment::Experiment;
use crate::results;
use seekwell::Cancel;
use seekwell_core::suggest;
use serde::Serialize;
use std::collections::BTreeMap;
use thiserror::Error;

/// A guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// Every estimated constant a quarter less and more, one at a time and all together.
    Constants,
    /// Schedulers' labels exchanged within each test.
    Permuted,
    /// Claimed causes taken out.
    Ablations,
    /// Runs in the order of the columns on one drive.
    Order,
}

impl Guard {
    /// All, in the order in which they are shown.
    pub const ALL: [Guard; 4] = [
        Guard::Permuted,
        Guard::Constants,
        Guard::Ablations,
        Guard::Order,
    ];
    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Guard::Constants => "constants",
            Guard::Permuted => "permuted",
            Guard::Ablations => "ablations",
            Guard::Order => "order",
        }
    }
    /// That of a name, or all.
    ///
    /// # Errors
    /// There is none; says which there are.
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
        Err(format!("{name}: no guard; {near}"))
    }
}

/// Why a guard gave nothing.
#[derive(Error, Debug)]
pub enum GuardError {
    /// A signal; what was made is kept.
    #[error("stopped: what was made is kept, and the same command goes on with it")]
    Stopped,
    /// Something could not be run or kept.
    #[error("{0}")]
    Text(String),
}

/// What guards run with.
pub struct Bench<'a> {
    /// Runs at a time; `None`: one a core.
    pub threads: Option<usize>,
    /// Ends it.
    pub cancel: &'a Cancel,
    /// Is told of runs.
    pub told: &'a dyn Told,
}

/// Figures of ours, by published test and its sides; `None`: not run, or failed.
pub type Figures = Vec<Vec<Option<f64>>>;

/// What figures are worth.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Skill over all pairs that are scored; `None`: there are none.
    pub skill: Option<f64>,
    /// By group of effects.
    pub groups: BTreeMap<String, f64>,
    /// Median |ln (ours / published)| over disk tests that nothing was fitted to.
    pub level: Option<f64>,
    /// Share of them within 35 %.
    pub near: f64,
}

impl Score {
    /// Of figures.
    pub fn of(published: &[Published], figures: &Figures) -> Score {
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

/// Figures beside what was published.
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

/// The figures of a quick form's runs.
fn figures(published: &[Published], results: &results::Results) -> Figures {
    let ours = |p: &Published| {
        let cell = beside(p.clone(), results, true);
        cell.ours.iter().map(|o| o.map(|o| o.mean)).collect()
    };
    published.iter().map(ours).collect()
}

/// Runs an experiment, and what failed of it.
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

/// A short name of an experiment's runs, which changes with whatever may change them.
pub(super) fn hash(e: &Experiment) -> String {
    let all: String = e
        .cells
        .iter()
        .flat_map(|c| c.specs.iter().map(|s| s.hash()))
        .collect();
    format!("{:08x}", crc32fast::hash(all.as_bytes()))
}

/// Figures that were run now, and for the others those of another time.
fn over(base: &Figures, now: &Figures) -> Figures {
    let side = |(b, n): (&Option<f64>, &Option<f64>)| n.or(*b);
    base.iter()
        .zip(now)
        .map(|(b, n)| b.iter().zip(n).map(side).collect())
        .collect()
}
