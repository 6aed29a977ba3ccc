//! Many runs side by side, on any number of threads; each result by itself.

use crate::one::{Error, Hooks, Progress, run};
use seekwell_core::result::Record;
use seekwell_core::spec::{RunSpec, Substrate, WorkloadSpec};
use seekwell_sim::spec::known_trace;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// Ends runs from outside: cheap to copy, set once, from any thread or signal handler.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// One that is not set.
    pub fn new() -> Self {
        Cancel::default()
    }
    /// Runs that look at it end with what they measured; no more are begun.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
    /// Was it set?
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
    /// What is set.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// Told of a run's progress, from the thread of the run: which run, by its place, and how far.
type Told<'a> = &'a (dyn Fn(usize, Progress) + Sync);

/// How many runs go on.
#[derive(Clone, Default)]
pub struct Many<'a> {
    /// Threads; `None`: one a core. Runs for real go one after the other, whatever it says.
    pub threads: Option<usize>,
    /// Ends them.
    pub cancel: Cancel,
    /// Told of each run's progress.
    pub progress: Option<Told<'a>>,
}

impl Many<'_> {
    fn threads(&self, specs: &[RunSpec]) -> usize {
        // On one machine they would measure each other.
        if specs.iter().any(|s| s.substrate == Substrate::Host) {
            return 1;
        }
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads
            .unwrap_or_else(cores)
            .clamp(1, specs.len().max(1))
    }
}

/// Traces that were held against their hashes, with what came of it: a trace of a hundred cells is
/// read for it once.
#[derive(Default)]
pub struct Traces(Mutex<BTreeMap<(String, String), Result<(), crate::SpecErrors>>>);

impl Traces {
    fn check(&self, spec: &RunSpec) -> Result<(), Error> {
        let WorkloadSpec::Trace { file, sha256, .. } = &spec.workload else {
            return Ok(());
        };
        // Others who want the same trace wait here instead of reading it, too.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (file.clone(), sha256.clone());
        let check = || known_trace(Path::new(file), sha256);
        Ok(known.entry(key).or_insert_with(check).clone()?)
    }
    /// Runs one specification of many, as [`run`] does; its trace is read for its hash once, however
    /// many runs replay it.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run(&self, spec: &RunSpec, mut hooks: Hooks<'_>) -> Result<Record, Error> {
        self.check(spec)?;
        hooks.trace_is_known = true;
        run(spec, hooks)
    }
}

/// Runs them all; results in the order of the specifications, whatever the number of threads.
/// One that fails or panics is its own error; those not begun when it was cancelled are
/// [`Error::NotBegun`].
pub fn run_all(specs: &[RunSpec], how: &Many<'_>) -> Vec<Result<Record, Error>> {
    let mut all: Vec<Option<Result<Record, Error>>> = Vec::new();
    all.resize_with(specs.len(), || None);
    run_each(specs, how, |i, result| all[i] = Some(result));
    let each = all.into_iter().map(|r| r.unwrap_or(Err(Error::NotBegun)));
    each.collect()
}

/// The same, and hands each result over as its run ends: place and result, on the calling thread,
/// in no certain order. Keeps none of them, so that ten thousand runs need no more memory than
/// those under way.
pub fn run_each(
    specs: &[RunSpec],
    how: &Many<'_>,
    mut ended: impl FnMut(usize, Result<Record, Error>),
) {
    let next = AtomicUsize::new(0);
    let traces = Traces::default();
    let threads = how.threads(specs);
    // A full channel holds the threads back: results wait here, not in memory.
    let (give, take) = mpsc::sync_channel(threads);
    std::thread::scope(|s| {
        for _ in 0..threads {
            let (give, next, traces) = (give.clone(), &next, &traces);
            s.spawn(move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(spec) = specs.get(i) else { return };
                    // Nobody listens any more: the caller panicked.
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
