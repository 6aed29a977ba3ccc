//! Real programs as workloads. A recipe ([`Recipe`]) describes the requirements, the preparation,
//! the run and the metrics of a program. Each recipe is a TOML file, which users can copy and
//! change.
//!
//! The scripts of a recipe run in a directory and in process groups of their own. At the end, all
//! processes that they started are ended. The clean-up script of the recipe ends them. Processes
//! that remain are found by a mark in their environment.
//!
//! Programs report their own results. The record also contains the counters of the block device. A
//! run that did no I/O on the device is marked. Effects of a program's own configuration outside
//! the recipe are not covered.

mod group;
mod metric;
mod phase;
mod recipe;

pub use group::{Group, LIMITS, Share};
pub use metric::{Better, MetricOf};
pub use phase::{Counted, MARK, Where, end_of, place_thread, run};
pub use recipe::{Cache, Recipe, RecipeError, find, recipes};

use thiserror::Error;

/// Reasons why a program gave no metric.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// The program was stopped.
    #[error("{0}")]
    Stopped(String),
    /// A required program is not installed.
    #[error("{recipe}: no program {program} here: install the package {package}")]
    Missing {
        /// Name of the recipe.
        recipe: String,
        /// Name of the missing program.
        program: String,
        /// Name of the package that contains the program.
        package: String,
    },
    /// A phase failed.
    #[error("{recipe}, {phase}: {why}")]
    Failed {
        /// Name of the recipe.
        recipe: String,
        /// Name of the phase: prepare, run or clean up.
        phase: &'static str,
        /// The end of the output.
        why: String,
    },
    /// The output does not contain the metric.
    #[error(
        "{recipe}: the output does not contain {metric}: nothing matches \"{regex}\"; the output \
         ends with: {last}"
    )]
    NoMetric {
        /// Name of the recipe.
        recipe: String,
        /// Name of the metric.
        metric: String,
        /// The regular expression.
        regex: String,
        /// The end of the output.
        last: String,
    },
}
