//! Experiments: which devices, schedulers, workloads and machines are compared, how often runs are
//! repeated, and how verdicts are reached. An experiment comes from a TOML file or from a command
//! line. [`crate::conduct`] runs it in the same way in both cases.
//!
//! A [`Design`] is the request of the user: a list of levels for each factor, in which grids are
//! already expanded. It can be written to a file and read back without loss
//! ([`Experiment::to_toml`], [`Experiment::from_toml`]). [`Experiment::from_specs`] expands a
//! design into cells and treatments and checks every run.

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
pub use primary::{Bios, Deciding, Primary, Statistic};
pub use read::TEXT_MAX;
pub use reference::kernels_choice;
pub use schema::schema;
pub use template::{Start, template};

use crate::data::{About, Cell, Treatment};
use seekwell::RunSpec;

/// An experiment that is expanded and checked, so it contains no faults.
///
/// This example reads an experiment file, makes the runs and analyses the results:
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
/// // A `results::Folder` is also a store; it writes each run to disk when the run ends.
/// let mut store = Memory::default();
/// let done = conduct(&e, &Simulated::default(), &mut store, &How::default())?;
/// let results = done.results(&e, store.runs);
/// assert_eq!(results.runs.len(), 6);
/// let analysis = analyse(&results);
/// let cell = &analysis.cells[0];
/// // How many times more files per second "cfq" creates than "noop", with a 95 % interval.
/// let (times, interval) = cell.times(1, 0).expect("both gave figures");
/// assert!(times > 0.0 && !cell.sentence.is_empty());
/// # let _ = interval;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Name of the experiment, and the rules for its verdicts.
    pub about: About,
    /// The cells in which the treatments are compared.
    pub cells: Vec<CellPlan>,
    /// The treatments: the schedulers with their settings.
    pub treatments: Vec<Treatment>,
    /// The experiment file as the user wrote it; empty for a command line.
    pub text: String,
    /// The request before its expansion.
    pub design: Design,
}

/// A cell with the specifications of its runs.
#[derive(Clone, Debug)]
pub struct CellPlan {
    /// The cell as the results contain it. Its treatments have the order of `specs`. The name of
    /// [`Cell::primary`] is empty if only the first run can determine the metric (an external
    /// workload).
    pub cell: Cell,
    /// The deciding metrics, and how to read them from a record.
    pub deciding: Deciding,
    /// The checked specification of each treatment, in the order of [`Cell::treatments`]. All have
    /// the same queue. `repeat` is 0 here; in a run it is the number of the block
    /// ([`RunSpec::run_seed`]).
    pub specs: Vec<RunSpec>,
}
