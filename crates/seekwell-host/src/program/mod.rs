//! Real programs as workloads: what each needs, how it is prepared and run, and where its number
//! is. One TOML file each ([`Recipe`]), which a user can copy and change.
//!
//! A recipe's scripts run in a directory of our own, in process groups of their own, and what they
//! started is ended with them: by its clean-up, else by a mark in its environment. Programs say of
//! themselves what they did; beside it stand the counters of the block device, and a run that did
//! no I/O there is marked. Left out: what a program's own configuration does beyond the recipe.

mod group;
mod metric;
mod phase;
mod recipe;

pub use group::{Group, LIMITS, Share};
pub use metric::{Better, MetricOf};
pub use phase::{Counted, MARK, Where, end_of, place_thread, run};
pub use recipe::{Cache, Recipe, RecipeError, find, recipes};

use thiserror::Error;

/// Why a program gave no number.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// It was stopped.
    #[error("{0}")]
    Stopped(String),
    /// A program is missing.
    #[error("{recipe}: no program {program} here: install the package {package}")]
    Missing {
        /// Which recipe.
        recipe: String,
        /// What it needs.
        program: String,
        /// Of which package.
        package: String,
    },
    /// A phase failed.
    #[error("{recipe}, {phase}: {why}")]
    Failed {
        /// Which recipe.
        recipe: String,
        /// Prepare, run or clean up.
        phase: &'static str,
        /// Its last words.
        why: String,
    },
    /// It did not print what was looked for.
    #[error(
        "{recipe}: printed nothing that matches `{regex}`, where its {metric} should be; its last \
         words: {last}"
    )]
    NoMetric {
        /// Which recipe.
        recipe: String,
        /// Which metric.
        metric: String,
        /// Looked for.
        regex: String,
        /// Printed at the end.
        last: String,
    },
}
