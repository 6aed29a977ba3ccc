//! Tests the memory that an experiment keeps per run. It may contain the values of the run only
//! once.

use peak_alloc::PeakAlloc;
use seekwell::{Cancel, Progress, RunSpec, WorkloadSpec, words};
use seekwell_lab::analysis::analyse;
use seekwell_lab::conduct::{How, Job, Measured, NoRun, Runner, Store, StoreError, conduct};
use seekwell_lab::experiment::Experiment;
use seekwell_lab::results::{Ended, Folder, Run};
use std::path::Path;

/// Counts memory that is allocated and not freed.
#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Maximum number of bytes per run. This is enough for two dozen numbers of 24 bytes each, the
/// seed, the hash, the position and the list of starved tasks.
const MOST: f64 = 1_050.0;

/// Limit for writing the files, in bytes, for any number of runs. Tables are written one after the
/// other and in pieces.
const WRITING: f64 = 6e6;

/// Limit per run for the analysis, in bytes. A run has a share in the comparisons of its cell.
const SAID: f64 = 700.0;

/// A runner that gives every run the values of a single real run.
struct Again(seekwell::Record);

impl Runner for Again {
    fn run(&self, job: &Job, _: &Cancel, _: &mut dyn FnMut(Progress)) -> Result<Measured, NoRun> {
        // All runs must differ. Otherwise a cell would end after three blocks.
        let mut record = self.0.clone();
        record.duration_ns += u64::from(job.key.block) + job.treatment as u64;
        Ok(Measured::from_record(record))
    }
}

/// A results folder. `planted` holds a copy of every run, if a leak is simulated.
struct Kept {
    folder: Folder,
    planted: Option<Vec<RunSpec>>,
}

impl Store for Kept {
    fn completed(&mut self) -> Result<Vec<Run>, StoreError> {
        Store::completed(&mut self.folder)
    }
    fn add(&mut self, ended: &Ended<'_>) -> Result<(), StoreError> {
        if let Some(all) = &mut self.planted {
            all.push(ended.spec.clone());
        }
        Store::add(&mut self.folder, ended)
    }
}

fn experiment(runs: usize) -> Experiment {
    let files: Vec<String> = (1..=runs / 20).map(|n| n.to_string()).collect();
    let text = format!(
        "device = 'hdd:hitachi-7k200'\nschedulers = ['noop', 'cfq']\n[experiment]\nrepeats = 10\n\
         stop = 'fixed'\n[[workload]]\nuse = 'fs-mark'\nfiles = [{}]\n",
        files.join(", ")
    );
    Experiment::from_toml(&text, Path::new("/")).expect("an experiment")
}

/// Returns the peak memory in bytes for this many runs, in three steps: while they are made, while
/// they become results, and while the results are judged.
fn peak_bytes(runs: usize, leak: bool) -> [f64; 3] {
    let dir = tempfile::tempdir().expect("a directory");
    let e = experiment(runs);
    let spec = RunSpec::new(
        words::device("hdd:hitachi-7k200").expect("a device"),
        words::schedulers("noop").expect("known").remove(0).spec,
        WorkloadSpec::Script {
            name: "fs-mark".to_owned(),
            params: [("files".to_owned(), "1".to_owned())].into(),
        },
    );
    let record = seekwell::run(&spec, seekwell::Hooks::default()).expect("a run");
    let runner = Again(record);
    let mut store = Kept {
        folder: Folder::create(&dir.path().join("r"), &e).expect("made"),
        planted: leak.then(Vec::new),
    };
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let most = || ALLOCATED.peak_usage() as f64 - before as f64;
    let done = conduct(&e, &runner, &mut store, &How::default()).expect("kept");
    let made = most();
    ALLOCATED.reset_peak_usage();
    let results = done.results(&e, store.folder.completed().expect("read"));
    assert_eq!(results.runs.len(), runs);
    assert!(results.runs[0].values.len() > 10, "as many as runs have");
    let read = most();
    ALLOCATED.reset_peak_usage();
    store.folder.finish(&results).expect("finished");
    println!("{runs} runs: {:.0} kB for writing", (most() - read) / 1e3);
    assert!(most() < read + WRITING, "{runs} runs: {} of {read}", most());
    ALLOCATED.reset_peak_usage();
    let analysis = analyse(&results);
    assert_eq!(analysis.cells.len(), runs / 20);
    [made, read, most()]
}

#[test]
fn stored_run_takes_less_than_a_kilobyte_of_memory() {
    let slope = |few: usize, many: usize, leak: bool| {
        let (less, more) = (peak_bytes(few, leak), peak_bytes(many, leak));
        [0, 1, 2].map(|i| (more[i] - less[i]) / (many - few) as f64)
    };
    // This run allocates the memory that is allocated once and stays.
    peak_bytes(100, false);
    let [made, results, judged] = slope(1_000, 2_000, false);
    let said = judged - results;
    println!("bytes a run: {made:.0} while they are made, {results:.0} as results, {said:.0} said");
    assert!(made < MOST && results < MOST, "{made} {results}");
    assert!(said < SAID, "{said}");
    let [planted, ..] = slope(400, 800, true);
    println!("with every specification kept: {planted:.0}");
    assert!(planted > MOST, "a leak of a kilobyte is seen: {planted}");
}
