//! Experiments and their results.

use crate::table::{Table, ints, texts};
use crate::{fault, json, work};
use pyo3::prelude::*;
use seekwell::{Cancel, Progress};
use seekwell_lab::analysis::{Analysis, analyse};
use seekwell_lab::arena::{Arena, Met, experiment as field, standing, usual};
use seekwell_lab::conduct::{How, Job, Measured, Memory, NoRun, Runner, Simulated, Told, conduct};
use seekwell_lab::experiment::Experiment;
use seekwell_lab::results::columns::{OPERATIONS, RECORDS, RUNS, SERIES, Table as Columns};
use seekwell_lab::results::{Folder, Results as Of, Run, batches, histograms, read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Parses an experiment. `file` is the file that the text came from, if any.
fn experiment(text: &str, file: Option<&str>) -> PyResult<Experiment> {
    let dir = file.and_then(|f| Path::new(f).parent());
    let dir = dir.filter(|p| !p.as_os_str().is_empty());
    Experiment::from_toml(text, dir.unwrap_or(Path::new(".")))
        .map_err(|faults| fault::experiment(file, &faults))
}

/// Converts a dict to the text of an experiment file. Leaves out values that are None.
#[pyfunction]
pub fn experiment_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut value = json::of_python(value, "experiment")?;
    without_null(&mut value);
    let value: toml::Value =
        serde_json::from_value(value).map_err(|e| fault::input(&format!("experiment: {e}")))?;
    toml::to_string(&value).map_err(|e| fault::input(&format!("experiment: {e}")))
}

fn without_null(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(all) => {
            all.retain(|_, v| !v.is_null());
            all.values_mut().for_each(without_null);
        }
        serde_json::Value::Array(all) => all.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// Counts runs for a progress display.
#[derive(Default)]
struct Counted {
    planned: AtomicI64,
    ended: AtomicU64,
}

impl Told for Counted {
    fn planned(&self, runs: i64) {
        self.planned.fetch_add(runs, Ordering::Relaxed);
    }
    fn ended(&self, _: &Job, _: &Run, _: Option<&seekwell::Record>) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Makes a run and then calls the progress function.
struct Teller<'a> {
    by: Box<dyn Runner + Send + 'a>,
    counted: &'a Counted,
    progress: Option<&'a Py<PyAny>>,
    cancel: &'a Cancel,
    raised: Mutex<Option<PyErr>>,
}

impl Teller<'_> {
    fn tell(&self) {
        let Some(progress) = self.progress else {
            return;
        };
        let ended = self.counted.ended.load(Ordering::Relaxed);
        let planned = self.counted.planned.load(Ordering::Relaxed);
        // The counter includes only stored runs. This run will be stored next, so it is added here.
        let told = Python::attach(|py| progress.call1(py, (ended + 1, planned)));
        if let Err(e) = told
            && let Ok(mut raised) = self.raised.lock()
        {
            self.cancel.set();
            raised.get_or_insert(e);
        }
    }
}

impl Runner for Teller<'_> {
    fn run(
        &self,
        job: &Job,
        cancel: &Cancel,
        told: &mut dyn FnMut(Progress),
    ) -> Result<Measured, NoRun> {
        let ran = self.by.run(job, cancel, told);
        self.tell();
        ran.map_err(|e| match e {
            NoRun::Failed(why) => NoRun::Failed(crate::scheduler::watch::plain(&why)),
            cut => cut,
        })
    }
}

/// Ends an experiment whose runs are made by other processes.
#[pyclass(frozen, module = "seekwell")]
#[derive(Default)]
pub struct Token {
    cancel: Cancel,
    lost: Mutex<Option<String>>,
}

#[pymethods]
impl Token {
    /// Whether the experiment must end.
    fn is_set(&self) -> bool {
        self.cancel.is_set()
    }
    /// Ends the experiment, because no more runs can be made. `why` is the reason.
    fn lose(&self, why: String) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert(why);
        self.cancel.set();
    }
}

/// A runner for runs that another process makes. It sends a specification as JSON and gets a
/// record.
struct Remote<'a> {
    by: &'a Py<PyAny>,
    token: Py<Token>,
}

impl Runner for Remote<'_> {
    fn run(
        &self,
        job: &Job,
        cancel: &Cancel,
        _: &mut dyn FnMut(Progress),
    ) -> Result<Measured, NoRun> {
        if cancel.is_set() {
            return Err(NoRun::Cut("not begun".to_owned(), None));
        }
        let failed = |e: String| NoRun::Failed(e);
        let spec = serde_json::to_string(&job.spec).map_err(|e| failed(e.to_string()))?;
        let came = Python::attach(|py| -> PyResult<String> {
            let token = self.token.clone_ref(py);
            self.by.call1(py, (spec, token))?.extract(py)
        });
        if cancel.is_set() {
            return Err(NoRun::Cut("not begun".to_owned(), None));
        }
        let text = came.map_err(|e| failed(e.to_string()))?;
        let record = serde_json::from_str(&text).map_err(|e| failed(e.to_string()))?;
        Ok(Measured::from_record(record))
    }
}

/// Runs a specification for another process. The specification and the record are JSON.
#[pyfunction]
pub fn run_json(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = serde_json::from_str(spec).map_err(|e| fault::input(&e.to_string()))?;
    crate::simulate(py, &spec, None)?.to_json()
}

/// Raises an error if an experiment is invalid. Returns the number of its cells otherwise.
#[pyfunction]
pub fn check_experiment(source: (String, Option<String>)) -> PyResult<usize> {
    let (text, file) = source;
    Ok(experiment(&text, file.as_deref())?.cells.len())
}

/// Makes the missing runs of an experiment, stores them in a folder, and reads the folder. The
/// result is unfinished if the time budget ended first.
#[pyfunction]
#[pyo3(signature = (source, dir, threads=None, budget_s=None, progress=None, runner=None))]
pub fn carry_out(
    py: Python<'_>,
    source: (String, Option<String>),
    dir: PathBuf,
    threads: Option<usize>,
    budget_s: Option<f64>,
    progress: Option<Py<PyAny>>,
    runner: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let (text, file) = source;
    let experiment = experiment(&text, file.as_deref())?;
    let name = dir.display().to_string();
    let told = |e: &dyn std::fmt::Display| fault::store(&name, &e.to_string());
    let there = dir.symlink_metadata().is_ok();
    let folder = match there {
        true => Folder::resume(&dir, &experiment),
        false => Folder::create(&dir, &experiment),
    };
    let mut folder = folder.map_err(|e| told(&e))?;
    let cancel = Cancel::new();
    let counted = Counted::default();
    let token = Py::new(
        py,
        Token {
            cancel: cancel.clone(),
            lost: Mutex::default(),
        },
    )?;
    let by: Box<dyn Runner + Send> = match &runner {
        Some(by) => Box::new(Remote {
            by,
            token: token.clone_ref(py),
        }),
        None => Box::new(Simulated::default()),
    };
    let teller = Teller {
        by,
        counted: &counted,
        progress: progress.as_ref(),
        cancel: &cancel,
        raised: Mutex::new(None),
    };
    // The budget is not a part of the experiment, so the folder belongs to the experiment without
    // it.
    let mut limited = experiment.clone();
    if let Some(s) = budget_s {
        limited.about.method.budget_s = Some(s.max(0.0) as u64);
    }
    let kept = &mut folder;
    let ends = cancel.clone();
    let done = work::interruptible(py, &cancel, move || {
        let how = How {
            threads,
            cancel: ends,
            told: teller.counted,
        };
        let done = conduct(&limited, &teller, kept, &how);
        (done, teller.raised.into_inner().ok().flatten())
    })?;
    let (done, raised) = done;
    if let Some(e) = raised {
        return Err(e);
    }
    let lost = &token.get().lost;
    if let Some(why) = lost.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let what = format!("{why}; the runs that were finished before are in {name}");
        return Err(fault::run(&what));
    }
    let done = done.map_err(|e| told(&e))?;
    let results = done.results(&experiment, folder.completed().map_err(|e| told(&e))?);
    let finished = done.finished();
    if finished {
        folder.finish(&results).map_err(|e| told(&e))?;
    }
    Ok(Results::new(dir, results, finished))
}

/// The results of an experiment: a folder (docs/results.md), its tables, and its conclusions.
#[pyclass(frozen, weakref, module = "seekwell")]
pub struct Results {
    dir: PathBuf,
    of: Of,
    finished: bool,
    analysis: Analysis,
}

impl Results {
    fn new(dir: PathBuf, of: Of, finished: bool) -> Self {
        let analysis = analyse(&of);
        Results {
            dir,
            of,
            finished,
            analysis,
        }
    }

    fn table(&self, of: &Columns) -> PyResult<Table> {
        let name = self.dir.display().to_string();
        if !self.finished {
            let what = format!(
                "{name}: the experiment is not finished, so it has no tables: \
                 compare(..., results={name:?}) continues it"
            );
            return Err(fault::store(&name, &what));
        }
        let (schema, all) =
            batches(&self.dir, of).map_err(|e| fault::store(&name, &e.to_string()))?;
        Ok(Table::new(schema, all))
    }
}

#[pymethods]
impl Results {
    /// Path of the folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.dir.clone()
    }
    /// Name of the experiment.
    #[getter]
    fn name(&self) -> &str {
        &self.of.about.name
    }
    /// Whether all runs of the experiment are made.
    #[getter]
    fn finished(&self) -> bool {
        self.finished
    }
    /// The runs that failed, each with its cell, scheduler, block and reason.
    #[getter]
    fn failures(&self) -> Vec<(String, String, u32, String)> {
        let of = &self.of;
        let failed = of.runs.iter().filter_map(|r| match &r.outcome {
            seekwell_lab::results::Outcome::Failed(why) => Some((r, why.clone())),
            _ => None,
        });
        failed
            .map(|(r, why)| {
                let cell = of.cells.get(r.key.cell).map_or("", |c| &c.name);
                let label = of.treatments.get(r.key.treatment).map_or("", |t| &t.label);
                (cell.to_owned(), label.to_owned(), r.key.block, why)
            })
            .collect()
    }
    /// The conclusion for each cell, as a sentence.
    #[getter]
    fn sentences(&self) -> Vec<String> {
        self.analysis
            .cells
            .iter()
            .map(|c| c.sentence.clone())
            .collect()
    }

    fn __repr__(&self) -> String {
        let (cells, runs) = (self.of.cells.len(), self.of.runs.len());
        let name = self.dir.display();
        format!(
            "<seekwell.Results: {} in {name}: {cells} cells, {runs} runs>",
            self.of.about.name
        )
    }

    /// Verdicts, effects, intervals and flags, as in `analysis` of `compare --json`.
    fn analysis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &json::text(&self.analysis)?)
    }

    /// One row per run and reported value (runs.parquet).
    ///
    /// Raises:
    ///     StoreError: The experiment is not finished, or the file is damaged.
    fn runs(&self) -> PyResult<Table> {
        self.table(&RUNS)
    }
    /// One row per run, layer and kind of operation: counts, bytes, and latencies in ns
    /// (operations.parquet).
    fn operations(&self) -> PyResult<Table> {
        self.table(&OPERATIONS)
    }
    /// One row per run, kind and second (series.parquet).
    fn series(&self) -> PyResult<Table> {
        self.table(&SERIES)
    }
    /// One row per run: its specification and its record, as JSON (records.parquet).
    fn records(&self) -> PyResult<Table> {
        self.table(&RECORDS)
    }

    /// Latency histograms. One row per run, layer, kind and bucket that is not empty. `value_ns` is
    /// the upper end of the bucket.
    fn histograms(&self) -> PyResult<Table> {
        let name = self.dir.display().to_string();
        let mut rows: Vec<(usize, &'static str, String, u64, u64)> = Vec::new();
        histograms(&self.dir, &self.of, |run, layer, kind, buckets| {
            let row = |(value, count)| (run, layer.name(), kind.to_owned(), value, count);
            rows.extend(buckets.into_iter().map(row));
        })
        .map_err(|e| fault::store(&name, &e.to_string()))?;
        Table::of(vec![
            ("run", ints(rows.iter().map(|r| r.0 as u64))),
            ("layer", texts(rows.iter().map(|r| r.1))),
            ("kind", texts(rows.iter().map(|r| r.2.as_str()))),
            ("value_ns", ints(rows.iter().map(|r| r.3))),
            ("count", ints(rows.iter().map(|r| r.4))),
        ])
    }
}

/// Compares the first scheduler with the others. Returns the ranking of all, as `seekwell arena
/// --json` prints it.
#[pyfunction]
#[pyo3(signature = (schedulers, ground, seeds, seed, threads=None))]
pub fn arena<'py>(
    py: Python<'py>,
    schedulers: Vec<String>,
    ground: (Vec<String>, Vec<String>, Vec<String>),
    seeds: u32,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    fn words(all: &[String]) -> Vec<&str> {
        all.iter().map(String::as_str).collect()
    }
    let or = |given: Vec<String>, usual: &[&str]| match given.is_empty() {
        true => usual.iter().map(|w| (*w).to_owned()).collect(),
        false => given,
    };
    let (devices, workloads, traces) = ground;
    let usual = usual(&schedulers);
    let (devices, workloads) = (or(devices, usual.devices), or(workloads, usual.workloads));
    let (d, w) = (words(&devices), words(&workloads));
    let on = Met {
        devices: &d,
        workloads: &w,
        traces: &traces,
        kernel: None,
    };
    let experiment =
        field(&schedulers, &on, seeds, seed).map_err(|faults| fault::experiment(None, &faults))?;
    let cancel = Cancel::new();
    let ends = cancel.clone();
    let (done, standing) = work::interruptible(py, &cancel, move || {
        let arena = Arena::default();
        let how = How {
            threads,
            cancel: ends,
            told: &(),
        };
        let done = conduct(&experiment, &arena, &mut Memory::default(), &how);
        (done, standing(&experiment, &arena.figures()))
    })?;
    let done = done.map_err(|e| fault::run(&e.to_string()))?;
    let mut value = serde_json::to_value(&standing).map_err(|e| fault::run(&e.to_string()))?;
    value["failed"] = done.failed.into();
    json::to_python(py, &value.to_string())
}

/// Reads a results folder.
#[pyfunction]
pub fn read_results(dir: PathBuf) -> PyResult<Results> {
    let name = dir.display().to_string();
    let of = read(&dir).map_err(|e| fault::store(&name, &e.to_string()))?;
    let folder = Folder::open(&dir).map_err(|e| fault::store(&name, &e.to_string()))?;
    let finished = folder.is_finished();
    Ok(Results::new(dir, of, finished))
}
