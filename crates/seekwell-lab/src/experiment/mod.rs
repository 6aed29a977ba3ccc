//! Experiments: devices x schedulers x workloads x machines, with what is compared, how often it is
//! repeated and how it is judged, as one value. A file (TOML) gives one, and so do the words of a
//! command line; what runs them ([`crate::conduct`]) does not know which it was.
//!
//! A [`Design`] is what was asked for: a list of levels for each factor, grids already spread. It is
//! written to a file and read from one without loss ([`Experiment::to_toml`],
//! [`Experiment::from_toml`]). [`Experiment::from_specs`] expands it to cells and treatments and
//! checks every run; what is left out here is running, and judging.

mod design;
mod expand;
mod fault;
mod labels;
mod primary;
mod read;
mod reference;
mod schema;
mod template;
mod write;

pub use design::{Design, Level, Pick, Work};
pub use expand::{CELLS_MAX, PLANS_MAX, REPEATS_MAX, TREATMENTS_MAX};
pub use fault::{Fault, Faults, Place};
pub use primary::{Bios, Primary, Statistic};
pub use read::TEXT_MAX;
pub use schema::schema;
pub use template::{Start, template};

use crate::results::{About, Cell, Treatment};
use seekwell::RunSpec;

/// An experiment, expanded and checked: nothing in it can still be wrong.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What it is, and how it is judged.
    pub about: About,
    /// Where treatments are compared.
    pub cells: Vec<CellPlan>,
    /// What is compared.
    pub treatments: Vec<Treatment>,
    /// The file it came from, as written; empty: from the words of a command line.
    pub text: String,
    /// What was asked for, before it was expanded.
    pub design: Design,
}

/// A cell with its runs.
#[derive(Clone, Debug)]
pub struct CellPlan {
    /// As results have it; [`Cell::treatments`] are the treatments of `specs`. The name of
    /// [`Cell::primary`] is empty where only the first run can tell it (a workload from outside).
    pub cell: Cell,
    /// What decides, and how a record tells it.
    pub primary: Primary,
    /// The run of each treatment, in the order of [`Cell::treatments`], checked, all on the same
    /// queue; `repeat` is 0, and the block becomes the repeat ([`RunSpec::run_seed`]).
    pub specs: Vec<RunSpec>,
}
