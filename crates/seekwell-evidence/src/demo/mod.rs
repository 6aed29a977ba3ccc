//! Demos of known scheduler behaviour, with numbers.
//!
//! A demo runs a few processes on a modelled device under several schedulers. It checks its claims
//! with the resulting numbers, and a test requires that every check passes. A new demo needs a
//! function and an entry in the list of its file.

mod arrays;
mod cgroups;
mod multi_queue;
mod seeds;
mod share;
mod single_queue;
mod throttles;
mod worlds;

use seekwell_core::result::Record;
use seekwell_core::{Control, suggest};
use seekwell_sim::drive::{Progress, RunError, drive};
use seekwell_sim::procs::{Process, Processes};
use seekwell_sim::setup::{Queue, Setup, SetupError};
use std::cell::{Cell, RefCell};
use thiserror::Error;

/// One demo.
pub struct Demo {
    /// Name on the command line.
    pub name: &'static str,
    /// The claim that the demo checks, in one sentence.
    pub claim: &'static str,
    /// Number of runs per seed.
    pub runs: u64,
    /// Number of runs per additional scheduler; 0 if the demo accepts no additional schedulers.
    pub each: u64,
    /// Executes the runs and checks the claims.
    run: fn(&Lab<'_>) -> Result<Shown, DemoError>,
}

impl Demo {
    /// Runs the demo. Reports the number of finished runs after each run. If `progress` requests a
    /// stop, returns an error, because an incomplete demo shows nothing.
    pub fn show(&self, seed: u64, progress: Progress<'_>) -> Result<Shown, DemoError> {
        self.show_beside(seed, &[], progress)
    }
    /// Runs the demo with additional schedulers, such as "sweep" or "deadline:fifo_batch=1". Each
    /// gets a table row below the rows of the demo, and no claim is checked for it. A demo whose
    /// `each` is 0 ignores them.
    pub fn show_beside(
        &self,
        seed: u64,
        beside: &[String],
        progress: Progress<'_>,
    ) -> Result<Shown, DemoError> {
        let lab = Lab {
            seed,
            beside,
            done: Cell::new(0),
            runs: self.runs + self.each * beside.len() as u64,
            progress: RefCell::new(progress),
            work: Cell::new(0),
        };
        let mut shown = (self.run)(&lab)?;
        shown.work = lab.work.get();
        Ok(shown)
    }
}

/// The parameters and the progress of a running demo.
struct Lab<'a> {
    seed: u64,
    /// Additional schedulers, as the user named them.
    beside: &'a [String],
    done: Cell<u64>,
    runs: u64,
    progress: RefCell<Progress<'a>>,
    /// Number of bios and operations so far.
    work: Cell<u64>,
}

impl Lab<'_> {
    /// Returns the demo's schedulers, followed by the additional schedulers.
    fn schedulers(&self, own: &[&str]) -> Vec<String> {
        let own = own.iter().map(|s| (*s).to_owned());
        own.chain(self.beside.iter().cloned()).collect()
    }
    /// Returns whether to continue.
    fn going(&self) -> bool {
        (self.progress.borrow_mut())(self.done.get(), self.runs)
    }
    /// Counts a finished run and reports the progress.
    fn count(&self, record: &Record) {
        let operations: u64 = record.operations.iter().map(|o| o.latency.count()).sum();
        let work = operations + record.read.ios + record.write.ios;
        self.work.set(self.work.get() + work);
        self.done.set(self.done.get() + 1);
        self.going();
    }
    /// Runs a source of bios on a queue and returns the record.
    fn drive(
        &self,
        queue: &mut Queue,
        source: &mut Processes,
        record: &mut Record,
    ) -> Result<(), RunError> {
        drive(queue, source, record, &mut |_, _| self.going())?;
        self.count(record);
        Ok(())
    }
}

/// Returns all demos, in display order.
pub fn demos() -> impl Iterator<Item = &'static Demo> {
    single_queue::DEMOS
        .iter()
        .chain(multi_queue::DEMOS)
        .chain(arrays::DEMOS)
        .chain(share::DEMOS)
        .chain(worlds::DEMOS)
        .chain(throttles::DEMOS)
        .chain(cgroups::DEMOS)
}

/// Result of a demo.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Describes the device, the processes and the duration.
    pub setting: String,
    /// Column titles; the first column names the row.
    pub columns: Vec<String>,
    /// Rows of text, one cell per column.
    pub rows: Vec<Vec<String>>,
    /// One entry per check: a text with the numbers, and whether the check passed.
    pub checks: Vec<(String, bool)>,
    /// Number of bios and operations in all runs. It measures the cost without a clock.
    pub work: u64,
    /// Number of seeds that were run.
    pub seeds: usize,
}

impl Shown {
    fn new(setting: &str, columns: &[&str]) -> Self {
        Shown {
            setting: setting.to_owned(),
            columns: columns.iter().map(|c| (*c).to_owned()).collect(),
            seeds: 1,
            ..Shown::default()
        }
    }
    fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }
    fn check(&mut self, words: String, holds: bool) {
        self.checks.push((words, holds));
    }
    /// Returns whether every check passed.
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|c| c.1)
    }
}

/// The reason why a demo has no result.
#[derive(Error, Debug)]
pub enum DemoError {
    /// The setup is invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A simulation of a whole machine failed.
    #[error(transparent)]
    World(#[from] seekwell_sim::world::WorldError),
    /// A parameter is invalid or a script failed; the text contains the reason.
    #[error("{0}")]
    Text(String),
}

/// Finds a demo by name.
pub fn find(name: &str) -> Option<&'static Demo> {
    demos().find(|d| d.name == name)
}

/// Returns the second part of the message `there is no demo NAME; ...`: similar names or all names.
pub fn unknown(name: &str) -> String {
    let known: Vec<_> = demos().map(|d| d.name).collect();
    suggest::remedy(name, &known, &[], "`seekwell demo`")
}

/// A device, and its queue depth if it differs from the device's default.
#[derive(Clone, Copy)]
struct On {
    device: &'static str,
    depth: Option<u32>,
}

/// The laptop disk of the published comparisons, without command queueing.
const DISK: On = On {
    device: "hdd:hitachi-7k200",
    depth: Some(1),
};

/// Splits "deadline:fifo_batch=1,read_expire=50" into the scheduler's name and its tunables.
fn scheduler_spec(text: &str) -> (String, Vec<(String, String)>) {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let pairs = rest.split(',').filter_map(|p| p.split_once('='));
    let pairs = pairs.map(|(k, v)| (k.to_owned(), v.to_owned()));
    (name.to_owned(), pairs.collect())
}

/// Runs processes on a device under a scheduler, such as "cfq" or "deadline:fifo_batch=1".
fn run(
    on: On,
    scheduler: &str,
    lab: &Lab<'_>,
    processes: Vec<Process>,
    weights: &[(u32, u32)],
) -> Result<Record, DemoError> {
    let source = Processes::new(processes, lab.seed).with_weights(weights);
    run_source(on, scheduler, lab, source)
}
/// Like [`run`], but first sends controls, such as cgroup limits, to the queue.
fn run_told(
    on: On,
    scheduler: &str,
    lab: &Lab<'_>,
    processes: Vec<Process>,
    first: &[Control],
) -> Result<Record, DemoError> {
    let source = Processes::new(processes, lab.seed).with_controls(first);
    run_source(on, scheduler, lab, source)
}
fn run_source(
    on: On,
    scheduler: &str,
    lab: &Lab<'_>,
    mut source: Processes,
) -> Result<Record, DemoError> {
    let (name, tunables) = scheduler_spec(scheduler);
    let setup = Setup {
        device: on.device.to_owned(),
        depth: on.depth,
        scheduler: name,
        tunables,
        hz: 1000,
        seed: lab.seed,
        ..Setup::default()
    };
    let mut queue = setup.build()?;
    let mut record = setup.record("demo");
    lab.drive(&mut queue, &mut source, &mut record)?;
    queue.fill(&mut record);
    for p in &mut record.processes {
        p.name = source.name(p.task).to_owned();
    }
    Ok(record)
}

/// Returns the bytes that a task read and wrote.
fn bytes(r: &Record, task: u32) -> f64 {
    r.processes
        .iter()
        .find(|p| p.task == task)
        .map_or(0.0, |p| p.bytes as f64)
}
/// Returns the number of bios of a task.
fn ios(r: &Record, task: u32) -> f64 {
    r.processes
        .iter()
        .find(|p| p.task == task)
        .map_or(0.0, |p| p.ios as f64)
}
/// Returns the mean latency of a task's bios in ms.
fn latency_ms(r: &Record, task: u32) -> f64 {
    r.processes
        .iter()
        .find(|p| p.task == task)
        .map_or(0.0, |p| p.mean_latency_ns / 1e6)
}
/// Converts bytes to the rate in MB/s over the duration of the run.
fn mb_s(r: &Record, bytes: f64) -> f64 {
    r.rate(bytes) / 1e6
}
