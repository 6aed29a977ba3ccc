//! Makes many runs in parallel on any number of threads, with independent results.

use crate::one::{Error, Hooks, Progress, run};
use seekwell_core::result::Record;
use seekwell_core::spec::{RunSpec, Substrate, WorkloadSpec};
use seekwell_sim::spec::known_trace;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// Cancels runs from outside. It is cheap to clone, and is set once, from any thread or signal
/// handler.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A token that is not set.
    pub fn new() -> Self {
        Cancel::default()
    }
    /// Ends all runs that use the token, with what they measured; no more are started.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
    /// The shared flag.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// Receives the progress of a run, on the run's thread: index of the run, and its progress.
type Told<'a> = &'a (dyn Fn(usize, Progress) + Sync);

/// How to make several runs.
#[derive(Clone, Default)]
pub struct Many<'a> {
    /// Number of threads; `None` means one per core. Real runs always run one after the other.
    pub threads: Option<usize>,
    /// Token that ends them.
    pub cancel: Cancel,
    /// Receives the progress of each run.
    pub progress: Option<Told<'a>>,
}

impl Many<'_> {
    fn threads(&self, specs: &[RunSpec]) -> usize {
        // On one machine, parallel real runs would disturb each other.
        if specs.iter().any(|s| s.substrate == Substrate::Host) {
            return 1;
        }
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads
            .unwrap_or_else(cores)
            .clamp(1, specs.len().max(1))
    }
}

/// Traces that were compared with their hashes, and the results. The trace of a hundred cells is
/// hashed only once.
#[derive(Default)]
pub struct Traces(Mutex<BTreeMap<(String, String), Result<(), crate::SpecErrors>>>);

impl Traces {
    fn check(&self, spec: &RunSpec) -> Result<(), Error> {
        let WorkloadSpec::Trace { file, sha256, .. } = &spec.workload else {
            return Ok(());
        };
        // Other runs with the same trace wait here instead of reading it, too.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (file.clone(), sha256.clone());
        let check = || known_trace(Path::new(file), sha256);
        Ok(known.entry(key).or_insert_with(check).clone()?)
    }
    /// Runs one of many specifications, like [`run`]. Its trace is hashed once, however many runs
    /// replay it.
    ///
    /// # Errors
    /// Those of [`run`].
    pub fn run(&self, spec: &RunSpec, mut hooks: Hooks<'_>) -> Result<Record, Error> {
        self.check(spec)?;
        hooks.trace_is_known = true;
        run(spec, hooks)
    }
}

/// Makes all runs; results are in the order of the specifications, for any number of threads. A run
/// that fails or panics gives an error. Runs not started before cancellation give
/// [`Error::NotBegun`].
pub fn run_all(specs: &[RunSpec], how: &Many<'_>) -> Vec<Result<Record, Error>> {
    let mut all: Vec<Option<Result<Record, Error>>> = Vec::new();
    all.resize_with(specs.len(), || None);
    run_each(specs, how, |i, result| all[i] = Some(result));
    let each = all.into_iter().map(|r| r.unwrap_or(Err(Error::NotBegun)));
    each.collect()
}

/// Like [`run_all`], but passes on each result as its run ends: index and result, on the calling
/// thread, in no particular order. It stores no results, so ten thousand runs need no more memory
/// than the active ones.
pub fn run_each(
    specs: &[RunSpec],
    how: &Many<'_>,
    mut ended: impl FnMut(usize, Result<Record, Error>),
) {
    let next = AtomicUsize::new(0);
    let traces = Traces::default();
    let threads = how.threads(specs);
    // A full channel blocks the threads, so that results do not accumulate in memory.
    let (give, take) = mpsc::sync_channel(threads);
    std::thread::scope(|s| {
        for _ in 0..threads {
            let (give, next, traces) = (give.clone(), &next, &traces);
            s.spawn(move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(spec) = specs.get(i) else { return };
                    // The receiver is gone: the caller panicked.
                    if give.send((i, one(i, spec, how, traces))).is_err() {
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

fn one(i: usize, spec: &RunSpec, how: &Many<'_>, traces: &Traces) -> Result<Record, Error> {
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
