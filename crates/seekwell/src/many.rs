//! Executes many independent runs in parallel.

use crate::cancel::Cancel;
use crate::hooks::{Error, Hooks, Progress};
use crate::one::run;
use seekwell_core::result::Record;
use seekwell_core::spec::{RunSpec, Substrate, WorkloadSpec};
use seekwell_sim::spec::known_trace;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

/// Receives the index and the progress of a run, in the thread of that run.
type Told<'a> = &'a (dyn Fn(usize, Progress) + Sync);

/// Options for several runs.
#[derive(Clone, Default)]
pub struct Many<'a> {
    /// Number of threads; `None` for one per core. Real runs always run one after the other.
    pub threads: Option<usize>,
    /// Token that cancels the runs.
    pub cancel: Cancel,
    /// Receives the progress of each run.
    pub progress: Option<Told<'a>>,
}

impl Many<'_> {
    fn threads(&self, specs: &[RunSpec]) -> usize {
        // Parallel real runs would disturb each other, because they share the machine.
        if specs.iter().any(|s| s.substrate == Substrate::Host) {
            return 1;
        }
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads
            .unwrap_or_else(cores)
            .clamp(1, specs.len().max(1))
    }
}

/// Traces that were compared with their hashes, and the results. If many runs replay a trace, it is
/// hashed only once.
#[derive(Default)]
pub struct Traces(Mutex<BTreeMap<(String, String), Result<(), crate::SpecErrors>>>);

impl Traces {
    fn check(&self, spec: &RunSpec) -> Result<(), Error> {
        let WorkloadSpec::Trace { file, sha256, .. } = &spec.workload else {
            return Ok(());
        };
        // Other runs with the same trace wait here, so that the trace is read only once.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (file.clone(), sha256.clone());
        let check = || known_trace(Path::new(file), sha256);
        Ok(known.entry(key).or_insert_with(check).clone()?)
    }
    /// Executes one of many specifications, like [`run`]. A trace is hashed only once, also if
    /// several runs replay it.
    ///
    /// # Errors
    /// The errors of [`run`].
    pub fn run(&self, spec: &RunSpec, mut hooks: Hooks<'_>) -> Result<Record, Error> {
        self.check(spec)?;
        hooks.trace_is_known = true;
        run(spec, hooks)
    }
}

/// Executes all runs. The results have the order of the specifications. A run that fails or panics
/// returns an error. A run that was not started before cancellation returns [`Error::NotBegun`].
pub fn run_all(specs: &[RunSpec], how: &Many<'_>) -> Vec<Result<Record, Error>> {
    let mut all: Vec<Option<Result<Record, Error>>> = Vec::new();
    all.resize_with(specs.len(), || None);
    run_each(specs, how, |i, result| all[i] = Some(result));
    let each = all.into_iter().map(|r| r.unwrap_or(Err(Error::NotBegun)));
    each.collect()
}

/// Like [`run_all`], but passes each result to a function as soon as its run ends. The function
/// gets the index of the run, in any order, and runs in the calling thread. Results are not stored,
/// so ten thousand runs need only the memory of the active ones.
pub fn run_each(
    specs: &[RunSpec],
    how: &Many<'_>,
    mut ended: impl FnMut(usize, Result<Record, Error>),
) {
    let next = AtomicUsize::new(0);
    let traces = Traces::default();
    let threads = how.threads(specs);
    // A full channel blocks the threads, so that results do not fill the memory.
    let (give, take) = mpsc::sync_channel(threads);
    std::thread::scope(|s| {
        for _ in 0..threads {
            let (give, next, traces) = (give.clone(), &next, &traces);
            s.spawn(move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(spec) = specs.get(i) else { return };
                    // The receiver was dropped because the caller panicked.
                    if give.send((i, run_one(i, spec, how, traces))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(give);
        for (i, result) in take {
            ended(i, result);
        }
    });
}

fn run_one(i: usize, spec: &RunSpec, how: &Many<'_>, traces: &Traces) -> Result<Record, Error> {
    if how.cancel.is_set() {
        return Err(Error::NotBegun);
    }
    let mut told = |p: Progress| {
        if let Some(progress) = how.progress {
            progress(i, p);
        }
    };
    traces.run(
        spec,
        Hooks::default().progress(&mut told).cancel(&how.cancel),
    )
}
