//! Experiments: devices x schedulers x workloads x machines, with what is compared, how often it is
//! repeated and how it is judged, as one value. A file (TOML) gives one, and so do the words of a
//! command line; what runs them ([`crate::conduct`]) does not know which it was.

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
}

/// A cell with its runs.
#[derive(Clone, Debug)]
pub struct CellPlan {
    /// As results have it; [`Cell::treatments`] are the treatments of `specs`.
    pub cell: Cell,
    /// The run of each treatment, in the order of [`Cell::treatments`], checked, all on the same
    /// queue; `repeat` is 0, and the block becomes the repeat ([`RunSpec::run_seed`]).
    pub specs: Vec<RunSpec>,
}
