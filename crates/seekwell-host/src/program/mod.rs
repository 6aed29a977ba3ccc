//! Real programs as workloads: requirements, preparation, run, and where the metric is. Each has
//! one TOML file ([`Recipe`]), which a user can copy and change.
//!
//! A recipe's scripts run in a directory of their own and in process groups of their own. Processes
//! that they started are ended with them: by the recipe's clean-up, else by a mark in their
//! environment. Programs report their own results. The record also has the counters of the block
//! device, and marks a run that did no I/O there. Not covered: effects of a program's own
//! configuration beyond the recipe.

mod group;
mod metric;
mod phase;
mod recipe;

pub use group::{Group, LIMITS, Share};
pub use metric::{Better, MetricOf};
pub use phase::{Counted, MARK, Where, end_of, place_thread, run};
pub use recipe::{Cache, Recipe, RecipeError, find, recipes};

use thiserror::Error;

/// Why a program gave no metric.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// It was stopped.
    #[error("{0}")]
    Stopped(String),
    /// A program is missing.
    #[error("{recipe}: no program {program} here: install the package {package}")]
    Missing {
        /// Name of the recipe.
        recipe: String,
        /// The missing program.
        program: String,
        /// The package that contains it.
        package: String,
    },
    /// A phase failed.
    #[error("{recipe}, {phase}: {why}")]
    Failed {
        /// Name of the recipe.
        recipe: String,
        /// Prepare, run or clean up.
        phase: &'static str,
        /// The end of its output.
        why: String,
    },
    /// Its output does not contain the metric.
    #[error(
        "{recipe}: printed nothing that matches `{regex}`, where its {metric} should be; its last \
         words: {last}"
    )]
    NoMetric {
        /// Name of the recipe.
        recipe: String,
        /// Name of the metric.
        metric: String,
        /// The regular expression.
        regex: String,
        /// The end of its output.
        last: String,
    },
}
