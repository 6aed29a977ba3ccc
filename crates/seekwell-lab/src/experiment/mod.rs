//! Experiments: devices x schedulers x workloads x machines, with the comparison, the repetition
//! and the judgement, as one value. An experiment comes from a TOML file or from command-line
//! arguments. [`crate::conduct`] runs it and does not depend on its origin.
//!
//! A [`Design`] is the request: a list of levels for each factor, with grids already expanded. It
//! can be written to a file and read back without loss ([`Experiment::to_toml`],
//! [`Experiment::from_toml`]). [`Experiment::from_specs`] expands it into cells and treatments and
//! checks every run. Running and judging are in other modules.

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

/// An experiment, expanded and checked: it contains no faults.
///
/// A file or a [`Design`] is expanded into runs; the runs give verdicts:
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
    /// Its name, and how it is judged.
    pub about: About,
    /// The cells, in which treatments are compared.
    pub cells: Vec<CellPlan>,
    /// The treatments.
    pub treatments: Vec<Treatment>,
    /// The file it came from, as written; empty for command-line arguments.
    pub text: String,
    /// The request, before expansion.
    pub design: Design,
}

/// A cell with its runs.
#[derive(Clone, Debug)]
pub struct CellPlan {
    /// The cell as results contain it; [`Cell::treatments`] matches `specs`. The name of
    /// [`Cell::primary`] is empty if only the first run can determine it (an external workload).
    pub cell: Cell,
    /// The deciding figures, and how to read them from a record.
    pub deciding: Deciding,
    /// The checked run of each treatment, in the order of [`Cell::treatments`], all on the same
    /// queue. `repeat` is 0; the block becomes the repeat number ([`RunSpec::run_seed`]).
    pub specs: Vec<RunSpec>,
}
