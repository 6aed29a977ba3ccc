//! Demos of well-known scheduler behaviour, with numbers.
//!
//! A demo runs a few processes on a modelled device under several schedulers. It states its claims
//! as checks on the resulting numbers; a test requires every check of every demo to hold. To add a
//! demo, add a function and a line in its file's list.

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
    /// The claim, in one sentence.
    pub claim: &'static str,
    /// Number of runs.
    pub runs: u64,
    /// Runs per additional scheduler; 0 if the demo accepts no additional schedulers.
    pub each: u64,
    /// Makes the runs.
    run: fn(&Lab<'_>) -> Result<Shown, DemoError>,
}

impl Demo {
    /// Runs the demo and reports the number of finished runs after each. If `progress` stops it, it
    /// returns an error, because half a demo shows nothing.
    pub fn show(&self, seed: u64, progress: Progress<'_>) -> Result<Shown, DemoError> {
        self.show_beside(seed, &[], progress)
    }
    /// Runs the demo with additional schedulers ("sweep", "deadline:fifo_batch=1"). Each gets a row
    /// below the demo's own; no claim is made about it. A demo whose `each` is 0 ignores them.
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

/// The context of a demo: seed, additional schedulers, progress.
struct Lab<'a> {
    seed: u64,
    /// Schedulers in addition to those of the demo.
    beside: &'a [String],
    done: Cell<u64>,
    runs: u64,
    progress: RefCell<Progress<'a>>,
    /// Bios and operations so far.
    work: Cell<u64>,
}

impl Lab<'_> {
    /// The demo's own schedulers, followed by the additional ones.
    fn schedulers(&self, own: &[&str]) -> Vec<String> {
        let own = own.iter().map(|s| (*s).to_owned());
        own.chain(self.beside.iter().cloned()).collect()
    }
    /// Whether to continue.
    fn going(&self) -> bool {
        (self.progress.borrow_mut())(self.done.get(), self.runs)
    }
    /// Counts one finished run.
    fn count(&self, record: &Record) {
        let operations: u64 = record.operations.iter().map(|o| o.latency.count()).sum();
        let work = operations + record.read.ios + record.write.ios;
        self.work.set(self.work.get() + work);
        self.done.set(self.done.get() + 1);
        self.going();
    }
    /// Drives a source of bios against a queue.
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

/// All demos, in listed order.
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
    /// How the numbers were produced: device, processes, duration.
    pub setting: String,
    /// Column titles; the first names the row.
    pub columns: Vec<String>,
    /// Rows of text, one cell per column.
    pub rows: Vec<Vec<String>>,
    /// Claims: (text with the numbers, whether it holds).
    pub checks: Vec<(String, bool)>,
    /// Bios and operations of all runs: a measure of cost that needs no clock.
    pub work: u64,
    /// Number of seeds.
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
    /// Whether every claim holds.
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|c| c.1)
    }
}

/// Why a demo has no result.
#[derive(Error, Debug)]
pub enum DemoError {
    /// The setup is invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A simulated world failed.
    #[error(transparent)]
    World(#[from] seekwell_sim::world::WorldError),
    /// A script did not finish.
    #[error("{0}")]
    Text(String),
}

/// Finds a demo by name.
pub fn find(name: &str) -> Option<&'static Demo> {
    demos().find(|d| d.name == name)
}

/// The end of the message "there is no demo NAME; ": similar names, or all names.
pub fn unknown(name: &str) -> String {
    let known: Vec<_> = demos().map(|d| d.name).collect();
    suggest::remedy(name, &known, &[], "`seekwell demo`")
}

/// A device with its queue depth.
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

/// Splits "cfq" or "deadline:fifo_batch=1,read_expire=50" into name and tunables.
fn scheduler_spec(text: &str) -> (String, Vec<(String, String)>) {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let pairs = rest.split(',').filter_map(|p| p.split_once('='));
    let pairs = pairs.map(|(k, v)| (k.to_owned(), v.to_owned()));
    (name.to_owned(), pairs.collect())
}

/// Runs processes on a device under a scheduler ("cfq", "deadline:fifo_batch=1,read_expire=50").
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
/// Like [`run`], but sends controls to the queue first.
fn run_told(
    on: On,
    scheduler: &str,
    lab: &Lab<'_>,
    processes: Vec<Process>,
    first: &[Control],
) -> Result<Record, DemoError> {
    let source = Processes::new(processes, lab.seed).told(first);
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

/// Bytes moved by a task.
fn bytes(r: &Record, task: u32) -> f64 {
    r.processes
        .iter()
        .find(|p| p.task == task)
        .map_or(0.0, |p| p.bytes as f64)
}
/// Number of bios of a task.
fn ios(r: &Record, task: u32) -> f64 {
    r.processes
        .iter()
        .find(|p| p.task == task)
        .map_or(0.0, |p| p.ios as f64)
}
/// Mean latency of a task, in ms.
fn latency_ms(r: &Record, task: u32) -> f64 {
    r.processes
        .iter()
        .find(|p| p.task == task)
        .map_or(0.0, |p| p.mean_latency_ns / 1e6)
}
/// Bytes per second of the run, in MB/s.
fn mb_s(r: &Record, bytes: f64) -> f64 {
    r.rate(bytes) / 1e6
}
