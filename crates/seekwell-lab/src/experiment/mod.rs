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
mod fuzz;
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
pub use fuzz::fuzz_one;
pub use primary::{Bios, Deciding, Primary, Statistic};
pub use read::TEXT_MAX;
pub use reference::kernels_choice;
pub use schema::schema;
pub use template::{Start, template};

use crate::results::{About, Cell, Treatment};
use seekwell::RunSpec;

/// An experiment, expanded and checked: nothing in it can still be wrong.
///
/// A file, or a [`Design`] in its place, becomes runs, and runs become verdicts:
///
/// ```
/// use seekwell_lab::analysis::analyse;
/// use seekwell_lab::conduct::{How, Memory, Simulated, conduct};
/// use seekwell_lab::experiment::Experiment;
/// use std::path::Path;
///
/// let file = r#"
/// devices = ["hdd:hitachi-7k200"]
/// schedulers = ["noop", "cfq"]
/// workloads = ["fs-mark:files=5"]
/// [experiment]
/// name = "two elevators"
/// repeats = 3
/// "#;
/// let e = Experiment::from_toml(file, Path::new("."))?;
/// // Or a `results::Folder`, which keeps every run as it ends.
/// let mut store = Memory::default();
/// let done = conduct(&e, &Simulated::default(), &mut store, &How::default())?;
/// let results = done.results(&e, store.runs);
/// assert_eq!(results.runs.len(), 6);
/// let analysis = analyse(&results);
/// let cell = &analysis.cells[0];
/// // "cfq" has this times the files a second of "noop", with a 95 % interval.
/// let (times, interval) = cell.times(1, 0).expect("both gave figures");
/// assert!(times > 0.0 && !cell.sentence.is_empty());
/// # let _ = interval;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    pub deciding: Deciding,
    /// The run of each treatment, in the order of [`Cell::treatments`], checked, all on the same
    /// queue; `repeat` is 0, and the block becomes the repeat ([`RunSpec::run_seed`]).
    pub specs: Vec<RunSpec>,
}
