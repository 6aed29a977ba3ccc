//! Runs a command as an experiment of the lab: several seeds, the same procedure, one analysis.

use crate::cells::{Cell, Cells, Later, cancelling, interrupted};
use crate::cli::Bench;
use crate::fail::Failure;
use crate::out::note;
use crate::progress::{Progress, Task};
use crate::setups::{self, Runs};
use seekwell::words::TypedMachine;
use seekwell::{Cancel, Record, RunSpec, WorkloadSpec};
use seekwell_host::stop::signal;
use seekwell_lab::analysis::{Analysis, CellAnalysis, analyse};
use seekwell_lab::conduct::{
    Conducted, How, Job, Memory, Runner, Store, StoreError, Told, conduct,
};
use seekwell_lab::experiment::{
    CellPlan, Deciding, Design, Experiment, Level, Primary, Work, kernels_choice,
};
use seekwell_lab::results::{
    About, Cell as LabCell, Ended, Folder, Method, MetricInfo, Results, Run, RunKey, StopRule,
    Treatment,
};
use seekwell_report::compare::PROSE;
use seekwell_report::table::wrap;
use seekwell_report::throttle;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// Target for the number of operations and I/Os of all runs together, if the user requests no
/// number of seeds. They take a few seconds of CPU time.
const WORK: u64 = 1_500_000;
/// Minimum and maximum number of seeds, if the user requests no number.
const SEEDS: (u64, u64) = (3, 10);

/// A command's runs and their analysis.
pub struct Lab {
    /// The runs with the first seed.
    pub cells: Cells,
    /// Results of all seeds.
    pub results: Results,
    /// Analysis over all seeds, with one cell per group of runs.
    pub analysis: Analysis,
    /// Number of seeds.
    pub seeds: usize,
    /// The first seed.
    pub seed: u64,
    /// How the named kernels are modelled, one sentence each.
    pub kernels: Vec<String>,
}

impl Lab {
    /// Returns whether there is more than one seed.
    pub fn several(&self) -> bool {
        self.seeds > 1
    }
    /// Describes the seeds, for example "seeds 1 to 5".
    pub fn describe_seeds(&self) -> String {
        seekwell_report::compare::seeds::seeds(self.seed, self.seeds)
    }
    /// Returns the verdict on a cell over several seeds, or `None` for a single seed. With
    /// `details`, it includes all other metrics.
    pub fn judged(&self, cell: usize, details: bool, width: usize) -> Option<String> {
        let rows: Vec<&CellAnalysis> = self.analysis.rows(cell).collect();
        if !self.several() || rows.is_empty() {
            return None;
        }
        let labels = &self.analysis.treatments;
        Some(seekwell_report::compare::rows::judged(
            &rows,
            labels,
            &self.describe_seeds(),
            details,
            width,
        ))
    }
    /// Returns what the results depend on besides the schedulers: the kernel and writeback
    /// throttling, one sentence each.
    fn notes(&self) -> Vec<String> {
        let throttle = throttle::line(&self.results);
        let throttle = Some(throttle).filter(|t| !t.is_empty());
        self.kernels.iter().cloned().chain(throttle).collect()
    }
    /// Returns the notes as text that is wrapped to the width.
    pub fn depends(&self, width: usize) -> String {
        let notes = self.notes();
        notes.iter().map(|n| wrap(n, 0, width.min(PROSE))).collect()
    }
    /// Returns the results as one JSON document; each `side_by_side` cells form a group.
    pub fn document(&self, command: &str, side_by_side: usize, series: bool) -> Value {
        let mut doc = self.cells.document(command, side_by_side, series);
        doc["seeds"] = json!(self.seeds);
        doc["notes"] = json!(self.notes());
        doc["analysis"] = serde_json::to_value(&self.analysis).unwrap_or_default();
        doc
    }
}

/// Returns the deciding metrics of each workload. If a workload reports a requested metric, only
/// that metric decides.
fn deciding(b: &Bench, runs: &Runs) -> Result<Vec<Deciding>, Failure> {
    let works = runs.specs[..runs.schedulers * runs.workloads].chunks(runs.schedulers);
    let works: Vec<&WorkloadSpec> = works.map(|specs| &specs[0].workload).collect();
    let usual = |w: &&WorkloadSpec| Deciding {
        primary: Primary::Own,
        ..Deciding::usual(w)
    };
    let mut all: Vec<Deciding> = works.iter().map(usual).collect();
    let mut asked: Vec<Vec<Primary>> = vec![Vec::new(); works.len()];
    for metric in &b.metric {
        let parsed: Vec<_> = works.iter().map(|w| Primary::parse(metric, w)).collect();
        if let (true, Some(Err(e))) = (parsed.iter().all(Result::is_err), parsed.first()) {
            return Err(Failure::input(format!("--metric {metric}: {e}")));
        }
        for (own, parsed) in asked.iter_mut().zip(parsed) {
            own.extend(parsed.ok().filter(|p| !own.contains(p)));
        }
    }
    for (of, asked) in all.iter_mut().zip(asked) {
        let mut asked = asked.into_iter();
        if let Some(primary) = asked.next() {
            let rows = asked.collect();
            *of = Deciding {
                rows,
                ..Deciding::alone(primary)
            };
        }
    }
    Ok(all)
}

/// Returns the experiment for the runs of a command.
fn experiment(b: &Bench, runs: &Runs, workloads: &[String]) -> Result<Experiment, Failure> {
    let deciding = deciding(b, runs)?;
    let k = runs.schedulers;
    let first = &runs.specs[..k];
    let mut names = BTreeMap::new();
    let cell = |(i, specs): (usize, &[seekwell::RunSpec])| {
        let (device, workload) = (&specs[0].device.spec, &workloads[i % runs.workloads]);
        let mut name = format!("{device} / {workload}");
        let same = names.entry(name.clone()).or_insert(0);
        *same += 1;
        if *same > 1 {
            name += &format!(" ({same})");
        }
        let work = &specs[0].workload;
        let deciding = deciding[i % runs.workloads].clone();
        CellPlan {
            cell: LabCell {
                primary: match &deciding.primary {
                    // The metric is known after the first run.
                    Primary::Own => MetricInfo::default(),
                    asked => asked.info(work),
                },
                rows: deciding.rows_info(work),
                checks: deciding.checks.clone(),
                name,
                device: device.clone(),
                workload: workload.clone(),
                substrate: specs[0].substrate.name().to_owned(),
                treatments: (0..k).collect(),
                reference: match setups::usual_schedulers(b) {
                    true => kernels_choice(specs),
                    false => 0,
                },
                ..LabCell::default()
            },
            deciding,
            specs: specs.to_vec(),
        }
    };
    let treatment = |s: &seekwell::RunSpec| Treatment {
        label: s.scheduler_label(),
        scheduler: s.scheduler.name.clone(),
        version: s.scheduler.version.clone().unwrap_or_default(),
        tunables: s.scheduler.tunables.clone(),
    };
    let most = b.seeds.unwrap_or(SEEDS.1 as u32);
    let method = Method {
        stop: StopRule::Fixed,
        repeats_min: b.seeds.unwrap_or(SEEDS.0 as u32),
        repeats_max: most,
        seed: b.seed,
        // No warm-up is removed, so that the values are those of the workload's own report.
        warmup_s: Some(0.0),
        ..Method::default()
    };
    let cells: Vec<CellPlan> = runs.specs.chunks(k).enumerate().map(cell).collect();
    let name = called(&cells);
    Ok(Experiment {
        about: About {
            name: name.clone(),
            method: method.clone(),
            source: "experiment".to_owned(),
            paired: true,
            ..About::default()
        },
        cells,
        treatments: first.iter().map(treatment).collect(),
        text: String::new(),
        design: design(name, method, runs, workloads),
    })
}

/// Returns the design as in an experiment file, for a results folder.
fn design(name: String, method: Method, runs: &Runs, workloads: &[String]) -> Design {
    let (k, group) = (runs.schedulers, runs.schedulers * runs.workloads);
    let first = &runs.specs[0];
    let named = |name: &str| Some(name.to_owned());
    let scheduler = |s: &RunSpec| Level {
        name: Some(s.scheduler_label()),
        ..Level::unnamed(s.scheduler.clone())
    };
    let work = |(i, specs): (usize, &[RunSpec])| Level {
        name: workloads.get(i).cloned(),
        ..Level::unnamed(Work {
            spec: specs[0].workload.clone(),
            metric: None,
            limit_s: specs[0].limit_s,
            beside: specs[0].beside.clone(),
        })
    };
    let device = |specs: &[RunSpec]| Level {
        name: named(&specs[0].device.spec),
        ..Level::unnamed(specs[0].device.clone())
    };
    Design {
        name,
        method,
        devices: runs.specs.chunks(group).map(device).collect(),
        schedulers: runs.specs[..k].iter().map(scheduler).collect(),
        workloads: runs.specs[..group]
            .chunks(k)
            .enumerate()
            .map(work)
            .collect(),
        machines: match &first.machine {
            Some(m) => vec![Level::unnamed(TypedMachine {
                spec: m.clone(),
                limit_s: None,
            })],
            None => Vec::new(),
        },
        queues: vec![Level::unnamed(first.queue.clone())],
        ..Design::default()
    }
}

/// Where the runs of a command are stored.
pub enum Place {
    /// In memory, until the command ends.
    Memory,
    /// In the requested folder.
    Folder(PathBuf),
    /// In a temporary folder, which is removed at the end. Only a page with details needs it.
    Scratch(TempDir),
}

impl Place {
    /// Returns the place that the options request; `page` says whether a page is made from the
    /// runs.
    pub fn new(b: &Bench, page: bool) -> Result<Self, Failure> {
        match (&b.results, page) {
            (Some(dir), _) => Ok(Place::Folder(dir.clone())),
            (None, false) => Ok(Place::Memory),
            (None, true) => {
                let named = tempfile::Builder::new().prefix("seekwell-").tempdir();
                let scratch = named.map_err(|source| Failure::Output {
                    what: "the temporary folder for the runs of the page cannot be created"
                        .to_owned(),
                    source,
                })?;
                Ok(Place::Scratch(scratch))
            }
        }
    }
    /// Returns the results folder, if there is one.
    pub fn dir(&self) -> Option<PathBuf> {
        match self {
            Place::Memory => None,
            Place::Folder(dir) => Some(dir.clone()),
            Place::Scratch(own) => Some(own.path().join("results")),
        }
    }
}

/// A results folder. If it is resumed for tables, the runs with the first seed are repeated,
/// because the tables need their records.
struct Kept {
    folder: Folder,
    made: BTreeSet<RunKey>,
    tables: bool,
}

impl Store for Kept {
    fn completed(&mut self) -> Result<Vec<Run>, StoreError> {
        let mut all = Store::completed(&mut self.folder)?;
        all.retain(|r| !self.tables || r.key.block > 0 || self.made.contains(&r.key));
        Ok(all)
    }
    fn add(&mut self, ended: &Ended<'_>) -> Result<(), StoreError> {
        self.made.insert(ended.run.key);
        Store::add(&mut self.folder, ended)
    }
}

/// Where runs are kept.
enum Keep {
    Memory(Memory),
    Folder(Box<Kept>),
}

impl Keep {
    fn new(place: &Place, e: &Experiment, tables: bool, quiet: bool) -> Result<Self, Failure> {
        let Some(dir) = &place.dir() else {
            return Ok(Keep::Memory(Memory::default()));
        };
        let quiet = quiet || matches!(place, Place::Scratch(_));
        let folder = match dir.symlink_metadata().is_ok() {
            true => Folder::resume(dir, e),
            false => Folder::create(dir, e),
        };
        let folder = folder.map_err(crate::fail::results_failure)?;
        note(quiet, &format!("results: {}", dir.display()));
        folder.notes().iter().for_each(|n| note(quiet, n));
        let made = BTreeSet::new();
        Ok(Keep::Folder(Box::new(Kept {
            folder,
            made,
            tables,
        })))
    }
    fn store(&mut self) -> &mut dyn Store {
        match self {
            Keep::Memory(m) => m,
            Keep::Folder(f) => &mut **f,
        }
    }
    /// Returns the results. Marks the folder as complete if all runs were made.
    fn results(self, done: &Conducted, e: &Experiment) -> Result<Results, Failure> {
        match self {
            Keep::Memory(m) => Ok(done.results(e, m.runs)),
            Keep::Folder(mut kept) => {
                let failure = crate::fail::results_failure;
                let results = done.results(e, kept.folder.completed().map_err(failure)?);
                if done.finished() {
                    kept.folder.finish(&results).map_err(failure)?;
                }
                Ok(results)
            }
        }
    }
}

/// Returns a name for an experiment without a file: its workloads and devices, or their numbers.
fn called(cells: &[CellPlan]) -> String {
    let listed = |of: fn(&LabCell) -> &String, kind: &str| {
        let mut names: Vec<&str> = Vec::new();
        for c in cells {
            if !names.contains(&of(&c.cell).as_str()) {
                names.push(of(&c.cell));
            }
        }
        match names.len() {
            0..=3 => names.join(", "),
            n => format!("{n} {kind}"),
        }
    };
    format!(
        "{} on {}",
        listed(|c| &c.workload, "workloads"),
        listed(|c| &c.device, "devices")
    )
}

/// Runs the cells of a command. `workloads` contains their names.
pub fn carried_out(
    quiet: bool,
    b: &Bench,
    place: &Place,
    runs: &Runs,
    workloads: &[String],
    runner: &dyn Runner,
) -> Result<Lab, Failure> {
    let mut e = experiment(b, runs, workloads)?;
    let mut keep = Keep::new(place, &e, true, quiet)?;
    if b.seeds.is_none() {
        e.about.method.repeats_max = 1;
    }
    let jobs = runs.jobs();
    let progress = Progress::new(quiet, "runs", jobs.len(), jobs.len());
    let collect = Collect::new(&progress, runs.schedulers, runs.specs.len());
    let cancel = Cancel::new();
    let how = How {
        threads: Some(setups::threads(b)),
        cancel: cancel.clone(),
        told: &collect,
    };
    let conducted = cancelling(&cancel, || -> Result<Conducted, StoreError> {
        let mut done = conduct(&e, runner, keep.store(), &how)?;
        if b.seeds.is_none() && !done.cancelled {
            // The operations and I/Os of the first seed determine how many seeds follow.
            let work = collect.lock().work.max(1);
            let n = (WORK / work).clamp(SEEDS.0, SEEDS.1);
            e.about.method.repeats_max = n as u32;
            done = conduct(&e, runner, keep.store(), &how)?;
        }
        Ok(done)
    })?;
    let conducted = conducted.map_err(|e| Failure::NotKept(e.to_string()))?;
    let (cells, later) = collect.done();
    drop(progress);
    let results = keep.results(&conducted, &e)?;
    let cells = Cells::new(jobs, cells, later)?;
    let analysis = analyse(&results);
    Ok(Lab {
        cells,
        seeds: analysis.cells.iter().map(|c| c.blocks).max().unwrap_or(0),
        seed: b.seed,
        kernels: runs.kernels.clone(),
        results,
        analysis,
    })
}

/// Returns the results of a complete folder of the same experiment, if there is one.
fn complete(place: &Place, e: &Experiment) -> Result<Option<Results>, Failure> {
    let Some(dir) = place.dir().filter(|d| d.symlink_metadata().is_ok()) else {
        return Ok(None);
    };
    let folder = Folder::open(&dir).map_err(crate::fail::results_failure)?;
    match folder.is_finished() && folder.differs(e).is_none() {
        true => folder
            .read()
            .map(Some)
            .map_err(crate::fail::results_failure),
        false => Ok(None),
    }
}

/// Makes the runs of a command whose number of seeds is known, and returns only the results. A
/// results folder is read if it is complete, and else resumed. No finished run is repeated.
pub fn results(
    quiet: bool,
    b: &Bench,
    place: &Place,
    runs: &Runs,
    workloads: &[String],
) -> Result<Results, Failure> {
    let e = experiment(b, runs, workloads)?;
    if let Some(results) = complete(place, &e)? {
        return Ok(results);
    }
    let mut keep = Keep::new(place, &e, false, quiet)?;
    let progress = Progress::new(quiet, "runs", 0, runs.specs.len());
    let collect = Collect::new(&progress, runs.schedulers, 0);
    let cancel = Cancel::new();
    let how = How {
        threads: Some(setups::threads(b)),
        cancel: cancel.clone(),
        told: &collect,
    };
    let simulator = crate::runs::Simulator::default();
    let done = cancelling(&cancel, || conduct(&e, &simulator, keep.store(), &how))?;
    let done = done.map_err(|e| Failure::NotKept(e.to_string()))?;
    let (_, later) = collect.done();
    drop(progress);
    if let Some(signal) = signal().filter(|_| !done.finished()) {
        return Err(interrupted(signal, later.ended, later.of, "runs"));
    }
    if let Some(why) = later.failed.into_iter().next() {
        return Err(Failure::input(why));
    }
    keep.results(&done, &e)
}

#[derive(Default)]
struct Collected<'a> {
    tasks: BTreeMap<RunKey, Task<'a>>,
    cells: Vec<Cell>,
    /// Number of operations and I/Os in the runs with the first seed.
    work: u64,
    planned: i64,
    later: Later,
}

/// Keeps the runs with the first seed if they are needed, and updates the progress bar.
pub struct Collect<'a> {
    progress: &'a Progress,
    schedulers: usize,
    all: Mutex<Collected<'a>>,
}

impl<'a> Collect<'a> {
    /// Keeps `kept` runs with the first seed: all, or none.
    pub fn new(progress: &'a Progress, schedulers: usize, kept: usize) -> Self {
        let cells = vec![Cell::Cut(None, "not begun".to_owned()); kept];
        Collect {
            progress,
            schedulers,
            all: Mutex::new(Collected {
                cells,
                ..Collected::default()
            }),
        }
    }
    fn lock(&self) -> MutexGuard<'_, Collected<'a>> {
        // The lock is always intact, because no run can panic while it holds the lock.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn done(self) -> (Vec<Cell>, Later) {
        let all = self
            .all
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let mut later = all.later;
        later.of = (all.planned.max(0) as usize).saturating_sub(all.cells.len());
        (all.cells, later)
    }
    fn place(&self, job: &Job) -> Option<usize> {
        let place = job.key.cell * self.schedulers + job.treatment;
        let kept = || self.lock().cells.len();
        (job.key.block == 0 && place < kept()).then_some(place)
    }
}

/// Returns the number of operations and I/Os, which is the cost of a run without a clock.
fn work(r: &Record) -> u64 {
    let operations: u64 = r.operations.iter().map(|o| o.latency.count()).sum();
    operations + r.read.ios + r.write.ios
}

impl Told for Collect<'_> {
    fn planned(&self, runs: i64) {
        // Runs that a signal cancels were planned, too.
        if runs > 0 {
            let mut all = self.lock();
            all.planned += runs;
            self.progress.set_total(all.planned as u64);
        }
    }
    fn began(&self, job: &Job) {
        // Runs of one cell do the same work, so the length of a finished run is an estimate for the
        // others.
        let task = self
            .progress
            .task(job.key.cell, &job.spec.scheduler_label());
        self.lock().tasks.insert(job.key, task);
    }
    fn progress(&self, job: &Job, p: seekwell::Progress) {
        if let Some(task) = self.lock().tasks.get_mut(&job.key) {
            task.at(p.done, p.of);
        }
    }
    fn ended(&self, job: &Job, run: &Run, record: Option<&Record>) {
        use seekwell_lab::results::Outcome;
        let place = self.place(job);
        let mut all = self.lock();
        all.tasks.remove(&job.key);
        let why = match &run.outcome {
            Outcome::Failed(why) => Err(why.clone()),
            Outcome::Early(why) | Outcome::Censored(why) => Ok(Some(why.clone())),
            Outcome::Done => Ok(None),
        };
        let Some(place) = place else {
            all.later.ended += 1;
            all.later.failed.extend(why.err());
            return;
        };
        all.work += record.map_or(0, work);
        all.cells[place] = match why {
            Err(why) => Cell::Failed(why),
            Ok(early) => Cell::Ran(Box::new(record.cloned().unwrap_or_default()), early),
        };
    }
    fn cut(&self, job: &Job, why: &str, record: Option<&Record>) {
        let place = self.place(job);
        let mut all = self.lock();
        all.tasks.remove(&job.key);
        if let Some(place) = place {
            all.cells[place] = Cell::Cut(record.cloned().map(Box::new), why.to_owned());
        }
    }
}
