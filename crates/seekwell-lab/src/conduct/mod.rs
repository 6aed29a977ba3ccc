//! Runs an experiment on all cores, until the stopping rule, the budget or a signal ends it. Each
//! finished run is saved in a store. An interrupted experiment continues from its store.
//!
//! A block is one run of every treatment of a cell with one seed, in random order. A round contains
//! one block of each cell; the rounds follow each other. A cell ends when its stopping rule is
//! satisfied. The choice of runs depends only on the experiment and on the results of complete
//! blocks. The clock, the number of threads and interruptions have no influence. The time budget is
//! an exception: it can end the experiment earlier, after the blocks that have started.
//!
//! A failed run becomes a table row with a reason. It invalidates only the comparisons within its
//! block. Memory holds only a few numbers per run; the store holds everything else.
//!
//! The runner prepares a host between runs, for example by dropping caches or trimming.

mod cell;
mod measured;
mod order;
mod plan;
mod queue;
mod runner;
mod store;

pub use crate::data::DURATION;
pub use cell::{EXACT_BLOCKS, stopping};
pub use measured::{fingerprint, kind_of, values, work_is_given};
pub use plan::{Plan, PlannedWarmUp, Trial, plan, trial};
pub use runner::{Measured, NoRun, Runner, Simulated, ended};
pub use store::{Memory, Store, StoreError};

use crate::data::{
    CellEnd, Ended, Interned, Method, MetricInfo, Order, Outcome, Results, Run, RunKey, StopRule,
    settle,
};
use crate::experiment::Experiment;
use cell::{Next, State};
use queue::{Queue, Turn};
use seekwell::{Cancel, Progress, Record, RunSpec};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// A run to be made.
#[derive(Clone, Debug)]
pub struct Job {
    /// Cell, block and treatment of the run.
    pub key: RunKey,
    /// Index of the treatment in the cell.
    pub treatment: usize,
    /// Random position of the run in its block.
    pub place: u32,
    /// The specification of the run. Its repeat number is the block.
    pub spec: RunSpec,
}

/// A waiting run. Its specification is built only when the run starts. A copy for each waiting run
/// would take most of the memory of a long experiment.
#[derive(Clone, Copy, Debug)]
struct Due {
    key: RunKey,
    treatment: usize,
    place: u32,
}

impl Due {
    fn job(self, experiment: &Experiment) -> Job {
        let mut spec = experiment.cells[self.key.cell].specs[self.treatment].clone();
        spec.repeat = self.key.block;
        Job {
            key: self.key,
            treatment: self.treatment,
            place: self.place,
            spec,
        }
    }
}

/// Receives progress reports. Any thread may call these functions, so that no run waits for a
/// progress bar.
pub trait Told: Sync {
    /// Reports that this number of runs was added to the plan. A negative number means that runs
    /// were removed.
    fn planned(&self, _runs: i64) {}
    /// Reports that a run started.
    fn began(&self, _job: &Job) {}
    /// Reports the progress of a run.
    fn progress(&self, _job: &Job, _progress: Progress) {}
    /// Reports that a run ended and was stored.
    fn ended(&self, _job: &Job, _run: &Run, _record: Option<&Record>) {}
    /// Reports that a run was stopped or not started, and is not stored. `_why` is the reason;
    /// `_record` holds what was measured until then.
    fn cut(&self, _job: &Job, _why: &str, _record: Option<&Record>) {}
}

/// Ignores all reports.
impl Told for () {}

/// How an experiment is run. These settings do not change the result of a run.
pub struct How<'a> {
    /// Number of parallel runs; `None` means one per core.
    pub threads: Option<usize>,
    /// Stops the experiment when it is set.
    pub cancel: Cancel,
    /// Receives progress reports.
    pub told: &'a dyn Told,
}

impl Default for How<'_> {
    fn default() -> Self {
        How {
            threads: None,
            cancel: Cancel::new(),
            told: &(),
        }
    }
}

/// The outcome of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conducted {
    /// How each cell ended, by cell.
    pub ended: Vec<CellEnd>,
    /// The primary metric of each cell, after the first block of the cell determined it.
    pub primary: Vec<MetricInfo>,
    /// Number of runs that were made in this call.
    pub made: u64,
    /// Number of runs that the store already contained.
    pub found: u64,
    /// Number of failed runs, both made and found.
    pub failed: u64,
    /// True if the experiment was cancelled before it finished.
    pub cancelled: bool,
    /// True if the time budget ended the experiment.
    pub out_of_budget: bool,
}

impl Conducted {
    /// Returns whether all cells have ended.
    pub fn finished(&self) -> bool {
        let open = |e: &CellEnd| matches!(e, CellEnd::Open | CellEnd::Cut(_));
        !self.ended.iter().any(open)
    }
    /// Builds the results of the experiment from these runs. The values do not include the warm-up.
    pub fn results(&self, experiment: &Experiment, runs: Vec<Run>) -> Results {
        let cells = experiment.cells.iter().enumerate().map(|(i, plan)| {
            let mut cell = plan.cell.clone();
            if let Some(primary) = self.primary.get(i) {
                cell.primary.clone_from(primary);
            }
            if let Some(ended) = self.ended.get(i) {
                cell.ended.clone_from(ended);
            }
            cell
        });
        let mut results = Results {
            about: experiment.about.clone(),
            cells: cells.collect(),
            treatments: experiment.treatments.clone(),
            runs,
            summaries: Vec::new(),
        };
        settle(&mut results);
        results
    }
}

/// How often the budget and the cancel token are checked.
const LOOK: Duration = Duration::from_millis(50);

/// Runs an experiment.
///
/// # Errors
/// Returns an error if the store fails. No more runs are made then, and the runs stored before
/// remain.
pub fn conduct(
    experiment: &Experiment,
    runner: &dyn Runner,
    store: &mut dyn Store,
    how: &How<'_>,
) -> Result<Conducted, StoreError> {
    let mut under_way = UnderWay::new(experiment, store.completed()?);
    let queue = Queue::default();
    // All first runs are queued before any thread starts one, so that the random order is kept.
    under_way.begin(&queue, how);
    let threads = how.threads.unwrap_or_else(cores).max(1);
    // Threads wait while the channel is full, so that results do not accumulate in memory.
    let (give, take) = mpsc::sync_channel(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (give, queue) = (give.clone(), &queue);
            scope.spawn(move || {
                while let Some(due) = queue.take() {
                    let job = due.job(experiment);
                    how.told.began(&job);
                    let mut ran = guarded(runner, &job, how);
                    if let Ok(m) = &mut ran {
                        m.first(experiment, &job);
                    }
                    // The store failed, so no thread receives the results.
                    if give.send((job, ran)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(give);
        let conducted = under_way.drive(&queue, &take, store, how);
        if conducted.is_err() {
            // The results of runs that are still active cannot be stored, so these runs are
            // cancelled.
            how.cancel.set();
            queue.withdraw(false);
        }
        queue.close();
        drop(take);
        conducted
    })?;
    Ok(under_way.done())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

type Ran = Result<Measured, NoRun>;

/// Makes a run. If it panics, for example in an external scheduler, only this run fails.
fn guarded(runner: &dyn Runner, job: &Job, how: &How<'_>) -> Ran {
    let mut told = |p: Progress| how.told.progress(job, p);
    let run = AssertUnwindSafe(|| runner.run(job, &how.cancel, &mut told));
    catch_unwind(run).unwrap_or_else(|_| {
        let what = "internal error; please report it with the experiment";
        Err(NoRun::Failed(what.to_owned()))
    })
}

/// The state of a running experiment.
struct UnderWay<'a> {
    experiment: &'a Experiment,
    cells: Vec<State>,
    /// Number of blocks that were queued, by cell.
    issued: Vec<u32>,
    /// Number of queued runs that have not ended.
    out: usize,
    /// The metrics of the runs. Each metric is stored only once.
    metrics: Interned,
    tally: Conducted,
}

impl<'a> UnderWay<'a> {
    fn new(experiment: &'a Experiment, mut found: Vec<Run>) -> Self {
        let cells: Vec<State> = experiment
            .cells
            .iter()
            .map(|plan| {
                let all = &plan.cell.treatments;
                let reference = all.iter().position(|t| *t == plan.cell.reference);
                let warmup_s = experiment.about.method.warmup_s;
                let primary = plan.cell.primary.clone();
                State::new(primary, all.len(), reference.unwrap_or(0), warmup_s)
            })
            .collect();
        let mut of = UnderWay {
            experiment,
            issued: vec![0; cells.len()],
            cells,
            out: 0,
            metrics: Interned::default(),
            tally: Conducted::default(),
        };
        found.sort_by_key(|r| r.key);
        for run in &found {
            // Stores of other experiments were already rejected when the store was opened.
            if let Some(place) = of.place(&run.key) {
                of.tally.found += 1;
                of.count(run);
                of.cells[run.key.cell].take(place, run);
            }
        }
        of
    }

    /// Returns the index of a run's treatment in its cell.
    fn place(&self, key: &RunKey) -> Option<usize> {
        let plan = self.experiment.cells.get(key.cell)?;
        plan.cell
            .treatments
            .iter()
            .position(|t| *t == key.treatment)
    }

    fn count(&mut self, run: &Run) {
        self.tally.failed += u64::from(matches!(run.outcome, Outcome::Failed(_)));
    }

    fn begin(&mut self, queue: &Queue, how: &How<'_>) {
        for cell in 0..self.cells.len() {
            self.issue(cell, queue, how);
        }
    }

    fn drive(
        &mut self,
        queue: &Queue,
        take: &mpsc::Receiver<(Job, Ran)>,
        store: &mut dyn Store,
        how: &How<'_>,
    ) -> Result<(), StoreError> {
        let method = &self.experiment.about.method;
        let began = Instant::now();
        let budget = method.budget_s.map(Duration::from_secs);
        while self.out > 0 {
            let came = take.recv_timeout(LOOK);
            if how.cancel.is_set() && !self.tally.cancelled {
                self.tally.cancelled = true;
                self.withdraw(queue, false, how);
            }
            let over = budget.is_some_and(|b| began.elapsed() >= b);
            if over && !self.tally.out_of_budget {
                self.tally.out_of_budget = true;
                self.withdraw(queue, true, how);
            }
            match came {
                Ok((job, ran)) => self.came(job, ran, queue, store, how)?,
                Err(RecvTimeoutError::Timeout) => {}
                // All threads have ended although some runs have not. So a thread panicked outside
                // a run.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(())
    }

    fn withdraw(&mut self, queue: &Queue, blocks: bool, how: &How<'_>) {
        let gone = queue.withdraw(blocks);
        self.out -= gone.len();
        how.told.planned(-(gone.len() as i64));
        if !blocks {
            gone.into_iter().for_each(|due| {
                let job = due.job(self.experiment);
                how.told.cut(&job, "not begun", None);
            });
        }
    }

    fn came(
        &mut self,
        job: Job,
        ran: Ran,
        queue: &Queue,
        store: &mut dyn Store,
        how: &How<'_>,
    ) -> Result<(), StoreError> {
        self.out -= 1;
        let (mut run, record) = match ran {
            Err(NoRun::Cut(why, record)) => {
                how.told.cut(&job, &why, record.as_deref());
                return Ok(());
            }
            Err(NoRun::Failed(why)) => (failed(&job, why), None),
            Ok(m) => m.into_run(&job),
        };
        self.metrics.share(&mut run);
        let record = record.as_deref();
        store.add(&Ended {
            run: &run,
            spec: &job.spec,
            record,
        })?;
        how.told.ended(&job, &run, record);
        self.tally.made += 1;
        self.count(&run);
        let cell = job.key.cell;
        self.cells[cell].take(job.treatment, &run);
        // Look at the cell when all its queued runs have ended.
        if self.cells[cell].whole() >= self.issued[cell]
            && !self.tally.cancelled
            && !self.tally.out_of_budget
        {
            self.issue(cell, queue, how);
        }
        Ok(())
    }

    /// Looks at a cell and queues its next blocks, in random order. If a block was started before
    /// an interruption, only its missing runs are queued.
    fn issue(&mut self, cell: usize, queue: &Queue, how: &How<'_>) {
        let method = &self.experiment.about.method;
        let plan = &self.experiment.cells[cell];
        let state = &mut self.cells[cell];
        loop {
            let upto = match (method.order, state.look(method)) {
                (_, Next::Ended) => return,
                // Sequential order has no complete blocks before the end, so there are no
                // intermediate looks.
                (Order::Sequential, Next::Upto(_)) => sequential_runs(method),
                (Order::Interleaved, Next::Upto(n)) => n,
            };
            let mut jobs: Vec<(Turn, Due)> = Vec::new();
            for block in self.issued[cell]..upto {
                let rank = order::of_cells(method.seed, block, self.experiment.cells.len())[cell];
                let drawn = match method.order {
                    Order::Interleaved => {
                        order::in_block(method.seed, &plan.cell.name, block, plan.specs.len())
                    }
                    Order::Sequential => (0..plan.specs.len()).collect(),
                };
                for (place, treatment) in drawn.into_iter().enumerate() {
                    if state.has(treatment, block) {
                        continue;
                    }
                    let turn = match method.order {
                        Order::Interleaved => (block as usize, rank, place, cell),
                        Order::Sequential => (treatment, cell, block as usize, 0),
                    };
                    let key = RunKey {
                        cell,
                        block,
                        treatment: plan.cell.treatments[treatment],
                    };
                    let due = Due {
                        key,
                        treatment,
                        place: place as u32,
                    };
                    jobs.push((turn, due));
                }
            }
            let none = self.issued[cell] >= upto;
            self.issued[cell] = upto.max(self.issued[cell]);
            let added = queue.add(jobs);
            if added > 0 {
                self.out += added;
                how.told.planned(added as i64);
                return;
            }
            // All of these runs were already stored, so look at the cell again. If this look
            // requested no new blocks, all sequential runs are finished.
            if none {
                state.ended = CellEnd::Most(state.whole());
                return;
            }
        }
    }

    fn done(mut self) -> Conducted {
        for state in &mut self.cells {
            if state.ended == CellEnd::Open {
                state.ended = CellEnd::Cut(state.whole());
            }
        }
        self.tally.ended = self.cells.iter().map(|c| c.ended.clone()).collect();
        self.tally.primary = self.cells.into_iter().map(|c| c.primary).collect();
        self.tally
    }
}

/// Returns the number of runs per treatment in sequential order, in which the results are looked at
/// only when all runs are finished.
fn sequential_runs(method: &Method) -> u32 {
    match method.stop {
        StopRule::Fixed => method.repeats_max,
        _ => method.repeats_min.min(method.repeats_max),
    }
}

/// Builds the entry of a run that failed.
fn failed(job: &Job, why: String) -> Run {
    Run {
        key: job.key,
        place: job.place,
        seed: job.spec.run_seed(),
        spec_hash: job.spec.hash(),
        outcome: Outcome::Failed(why),
        ..Run::default()
    }
}
