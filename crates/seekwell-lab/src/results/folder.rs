//! A results folder: made once, filled run by run, finished once, never overwritten.
//!
//! While the experiment goes on a journal takes each run as it ends ([`super::journal`]); at the
//! end its runs are written in their order as Parquet files and histograms, `results.json` last,
//! and the journal goes. Only then is the folder complete, and it is not changed any more. Whoever
//! is killed before that goes on from the journal.

use super::entry::Entry;
use super::environment::Environment;
use super::hlog;
use super::journal::{self, Journal, Refused};
use super::pace;
use super::plan::{Finished, Plan, Stored, in_range, own, read_json};
use super::reading;
use super::{Ended, Results, Run, RunKey, StoreError};
use crate::conduct::{self, Store};
use crate::experiment::Experiment;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use seekwell_core::spec::content_hash;
use seekwell_files::Sink;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

mod writing;

use writing::Known;

/// The experiment file, as written, or as it would be for the words of a command line.
pub const EXPERIMENT_TEXT: &str = "experiment.toml";
/// The experiment, expanded.
pub const EXPERIMENT: &str = "experiment.json";
/// What it ran on, and when.
pub const ENVIRONMENT: &str = "environment.json";
/// Runs of an experiment that goes on.
pub const JOURNAL: &str = "journal";
/// Latency histograms.
pub const HISTOGRAMS: &str = "histograms.hlog";
/// What came of it; last of all.
pub const RESULTS: &str = "results.json";

/// A results folder that is open: nobody else writes to it.
pub struct Folder {
    path: PathBuf,
    plan: Plan,
    /// Its runs, on the medium; `None`: it is finished.
    journal: Option<Journal>,
    environment: Environment,
    notes: Vec<String>,
    scratch: hlog::Scratch,
}

impl Folder {
    /// Makes a new one for an experiment.
    ///
    /// # Errors
    /// There is something of that name, or it cannot be made there.
    pub fn create(path: &Path, experiment: &Experiment) -> Result<Self, StoreError> {
        Folder::make(path, Plan::of(experiment), &experiment.stored())
    }

    /// Makes one of results that are complete: imported ones.
    ///
    /// # Errors
    /// As [`Folder::create`], and those of [`Folder::finish`].
    pub fn store(path: &Path, results: &Results) -> Result<(), StoreError> {
        Folder::make(path, Plan::of_results(results), "")?.finish(results)
    }

    /// Opens one: a complete one to read it, one that was begun to go on with it.
    ///
    /// # Errors
    /// There is none; it is damaged, of a newer version, or another process works on it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        must_be_folder(path)?;
        let finished = path.join(RESULTS).symlink_metadata().is_ok();
        let plan: Plan = read_json(path, EXPERIMENT)?;
        in_range(&path.join(EXPERIMENT), &plan.cells, &plan.treatments)?;
        let mut folder = Folder {
            path: path.to_owned(),
            plan,
            journal: None,
            environment: Environment::default(),
            notes: Vec::new(),
            scratch: hlog::Scratch::default(),
        };
        if finished {
            return Ok(folder);
        }
        match read_json(path, ENVIRONMENT) {
            Ok(environment) => folder.environment = environment,
            Err(e) => folder.note(format!("{e}: begun anew")),
        }
        folder.go_on()?;
        Ok(folder)
    }

    /// Opens one to go on with an experiment.
    ///
    /// # Errors
    /// Those of [`Folder::open`]; it is finished, or of another experiment.
    pub fn resume(path: &Path, experiment: &Experiment) -> Result<Self, StoreError> {
        let mut folder = Folder::open(path)?;
        if let Some(how) = folder.plan.differs(&Plan::of(experiment)) {
            return Err(StoreError::bad(
                path,
                format!("belongs to another experiment: {how}; name another folder"),
            ));
        }
        if folder.is_finished() {
            return Err(finished(path));
        }
        folder.plan.specs = Vec::new();
        Ok(folder)
    }

    fn make(path: &Path, plan: Plan, text: &str) -> Result<Self, StoreError> {
        let none = "nothing was stored";
        let failed = |e| StoreError::write(path, e, none);
        if path.symlink_metadata().is_ok() {
            return Err(StoreError::bad(
                path,
                "is there already, and results are never overwritten; name another folder",
            ));
        }
        let name = path.file_name().ok_or_else(|| {
            StoreError::bad(path, "is no name that a folder can be given; name another")
        })?;
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(failed)?;
        // It takes its name with all that belongs to it in it, or not at all.
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.part", std::process::id()));
        let made = parent.join(hidden);
        std::fs::create_dir(&made).map_err(failed)?;
        let folder = Folder::fill(&made, plan, text).and_then(|mut folder| {
            take_name(&made, path).map_err(failed)?;
            folder.path = path.to_owned();
            Ok(folder)
        });
        if folder.is_err() {
            let _ = std::fs::remove_dir_all(&made);
        }
        folder
    }

    fn fill(at: &Path, mut plan: Plan, text: &str) -> Result<Self, StoreError> {
        let failed = |name: &str, e| StoreError::write(&at.join(name), e, "nothing was stored");
        if !text.is_empty() {
            write(&at.join(EXPERIMENT_TEXT), text.as_bytes())
                .map_err(|e| failed(EXPERIMENT_TEXT, e))?;
        }
        write_json(&at.join(EXPERIMENT), &plan).map_err(|e| failed(EXPERIMENT, e))?;
        // Written, and the experiment has them: they are the most of it.
        plan.specs = Vec::new();
        let mut environment = Environment::default();
        environment.begin();
        write_json(&at.join(ENVIRONMENT), &environment).map_err(|e| failed(ENVIRONMENT, e))?;
        let journal = Journal::create(&at.join(JOURNAL)).map_err(|e| failed(JOURNAL, e))?;
        Ok(Folder {
            path: at.to_owned(),
            plan,
            journal: Some(journal),
            environment,
            notes: Vec::new(),
            scratch: hlog::Scratch::default(),
        })
    }

    fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    fn go_on(&mut self) -> Result<(), StoreError> {
        let path = own(&self.path, JOURNAL)?;
        let (journal, found) = Journal::open(&path).map_err(|e| refused(&self.path, &path, e))?;
        if found.tail_bytes > 0 {
            let bytes = found.tail_bytes;
            self.note(format!(
                "{}: the run that was being stored when it was stopped is made again ({bytes} \
                 bytes of it were there)",
                path.display(),
            ));
        }
        if let Some(first) = found.damaged.first() {
            self.note(format!(
                "{}: {} of its lines, the first of them line {first}, are not as they were \
                 written; those runs are made again",
                path.display(),
                found.damaged.len(),
            ));
        }
        let (cells, treatments) = (self.plan.cells.len(), self.plan.treatments.len());
        let fits = |k: &RunKey| k.cell < cells && k.treatment < treatments;
        if let Some(k) = journal.keys().find(|k| !fits(k)) {
            let what = format!(
                "has a run of cell {}, scheduler {}, which the experiment \
                has not; it belongs to another one",
                k.cell, k.treatment
            );
            return Err(StoreError::bad(&path, what));
        }
        let runs = journal.keys().len();
        self.journal = Some(journal);
        // The journal's lock is ours: what is half written here is nobody's.
        let at = self.path.clone();
        seekwell_files::sweep(&at).map_err(|e| self.failed(&at, e))?;
        self.environment.killed(runs as u64);
        self.environment.begin();
        self.store_environment()
    }

    fn store_environment(&self) -> Result<(), StoreError> {
        let path = self.path.join(ENVIRONMENT);
        write_json(&path, &self.environment).map_err(|e| self.failed(&path, e))
    }

    fn failed(&self, path: &Path, e: io::Error) -> StoreError {
        let kept = match self.stored() {
            0 => "nothing is stored yet".to_owned(),
            n => format!(
                "{n} runs are stored; once there is room, the same command goes on with them"
            ),
        };
        StoreError::write(path, e, kept)
    }

    /// How the experiment it was made for differs from another; `None`: it is that one.
    pub fn differs(&self, experiment: &Experiment) -> Option<String> {
        self.plan.differs(&Plan::of(experiment))
    }
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// It is complete: nothing is added any more.
    pub fn is_finished(&self) -> bool {
        self.journal.is_none()
    }
    /// What was found amiss, and mended, when it was opened.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
    /// The runs that are stored, in their order, read from the medium: a folder holds none of them
    /// in memory. None of a complete one, which [`Folder::read`] reads.
    ///
    /// # Errors
    /// They cannot be read, or are not what was written.
    pub fn completed(&self) -> Result<Vec<Run>, StoreError> {
        let Some(journal) = &self.journal else {
            return Ok(Vec::new());
        };
        let path = self.path.join(JOURNAL);
        journal.runs().map_err(|e| self.failed(&path, e))
    }
    /// Whether a run is stored.
    pub fn has(&self, key: RunKey) -> bool {
        self.journal.as_ref().is_some_and(|j| j.has(key))
    }
    /// How many are.
    fn stored(&self) -> usize {
        self.journal.as_ref().map_or(0, |j| j.keys().len())
    }

    /// Stores a run that ended. When this returns the run is kept, whatever happens to the process;
    /// a run that is there already is replaced.
    ///
    /// # Errors
    /// It cannot be written (the disk is full): everything stored before stays.
    pub fn add(&mut self, ended: &Ended<'_>) -> Result<(), StoreError> {
        let tag = self.tag(ended.run.key);
        let entry = Entry::of(ended, &tag, &mut self.scratch);
        self.keep(&entry, ended.run)?;
        let host = ended.record.and_then(|r| r.host.as_ref());
        if self.environment.ran(host) {
            self.store_environment()?;
        }
        Ok(())
    }

    fn keep(&mut self, entry: &Entry, run: &Run) -> Result<(), StoreError> {
        let path = self.path.join(JOURNAL);
        let Some(journal) = &mut self.journal else {
            return Err(finished(&self.path));
        };
        if run.key.cell >= self.plan.cells.len() || run.key.treatment >= self.plan.treatments.len()
        {
            return Err(StoreError::bad(&path, "the experiment has no such run"));
        }
        if let Err(e) = journal.append(entry) {
            return Err(self.failed(&path, e));
        }
        Ok(())
    }

    fn tag(&self, key: RunKey) -> String {
        let cell = self.plan.cells.get(key.cell).map_or("", |c| &c.name);
        let treatment = self.plan.treatments.get(key.treatment);
        let label = treatment.map_or("", |t| &t.label);
        let (cell, label) = (hlog::encoded(cell), hlog::encoded(label));
        format!("{cell}/{label}/{}", key.block)
    }

    /// Writes all files and completes the folder. What `results` says of cells, notes and
    /// summaries counts; of runs, what it has beside those that were added is added.
    ///
    /// # Errors
    /// It cannot be written: the runs stay in the journal, and it can be tried again.
    pub fn finish(&mut self, results: &Results) -> Result<(), StoreError> {
        // What is known at the end counts: a warm-up is found from the first block.
        let known = Known::of(&results.runs);
        for run in &known.0 {
            if !self.has(run.key) {
                self.keep(&Entry::bare(run), run)?;
            }
        }
        if self.is_finished() {
            return Err(finished(&self.path));
        }
        let files = self.write_tables(results, &known)?;
        let done = Finished {
            schema: super::RESULTS_VERSION,
            about: results.about.clone(),
            cells: results.cells.clone(),
            treatments: results.treatments.clone(),
            summaries: results.summaries.clone(),
            runs: self.stored() as u64,
            files,
        };
        self.environment.end();
        self.store_environment()?;
        let path = self.path.join(RESULTS);
        write_json(&path, &done).map_err(|e| self.failed(&path, e))?;
        self.journal = None;
        let path = self.path.join(JOURNAL);
        std::fs::remove_file(&path)
            .map_err(|e| StoreError::write(&path, e, "the results are complete; remove it"))
    }

    /// Everything statistics are made of: of a complete folder from its files, else from what is
    /// stored so far.
    ///
    /// # Errors
    /// A file is missing, damaged, or of somebody else.
    pub fn read(&self) -> Result<Results, StoreError> {
        if self.is_finished() {
            return reading::finished(&self.path);
        }
        Ok(so_far(&self.plan, self.completed()?))
    }
}

/// Runs go into a folder as they end.
impl Store for Folder {
    fn completed(&mut self) -> Result<Vec<Run>, conduct::StoreError> {
        Folder::completed(self).map_err(|e| conduct::StoreError(e.to_string()))
    }
    fn add(&mut self, ended: &Ended<'_>) -> Result<(), conduct::StoreError> {
        Folder::add(self, ended).map_err(|e| conduct::StoreError(e.to_string()))
    }
}

impl Drop for Folder {
    /// Says when the sitting ended, as far as that can be written.
    fn drop(&mut self) {
        if !self.is_finished() {
            self.environment.end();
            let _ = self.store_environment();
        }
    }
}

fn so_far(plan: &Plan, runs: Vec<Run>) -> Results {
    let mut results = Results {
        about: plan.about.clone(),
        cells: plan.cells.clone(),
        treatments: plan.treatments.clone(),
        runs,
        summaries: Vec::new(),
    };
    pace::settle(&mut results);
    results
}

/// What a folder's runs ran on, and when.
///
/// # Errors
/// It is none, or `environment.json` is missing or damaged.
pub fn environment(path: &Path) -> Result<Environment, StoreError> {
    must_be_folder(path)?;
    read_json(path, ENVIRONMENT)
}

/// Reads a folder without touching it, also one that another process is writing to: what is
/// complete, or what is stored so far.
///
/// # Errors
/// As [`Folder::open`], but for a folder that is in use.
pub fn read(path: &Path) -> Result<Results, StoreError> {
    must_be_folder(path)?;
    if path.join(RESULTS).symlink_metadata().is_ok() {
        return reading::finished(path);
    }
    let plan: Plan = read_json(path, EXPERIMENT)?;
    in_range(&path.join(EXPERIMENT), &plan.cells, &plan.treatments)?;
    let journal = own(path, JOURNAL)?;
    let fits = |r: &Run| r.key.cell < plan.cells.len() && r.key.treatment < plan.treatments.len();
    let mut runs = BTreeMap::new();
    let mut each = |r: Run| {
        if fits(&r) {
            runs.insert(r.key, r);
        }
    };
    journal::look(&journal, &mut each).map_err(|e| refused(path, &journal, e))?;
    Ok(so_far(&plan, runs.into_values().collect()))
}

fn must_be_folder(path: &Path) -> Result<(), StoreError> {
    match std::fs::metadata(path) {
        Ok(m) if m.is_dir() => Ok(()),
        Ok(_) => Err(StoreError::bad(
            path,
            "is a file, and results are a folder; name that",
        )),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(StoreError::bad(
            path,
            "is not there; `seekwell results` lists the folders there are",
        )),
        Err(e) => Err(StoreError::bad(path, e.to_string())),
    }
}

pub(super) fn refused(folder: &Path, journal: &Path, e: Refused) -> StoreError {
    match e {
        Refused::Busy => StoreError::Busy(folder.to_owned()),
        Refused::Bad(what) => StoreError::bad(journal, what),
        Refused::Io(e) => StoreError::bad(journal, e.to_string()),
    }
}

fn finished(path: &Path) -> StoreError {
    StoreError::bad(
        path,
        "is complete, and results are never changed; name another folder for more runs",
    )
}

fn take_name(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // File systems without it: a folder that came meanwhile has files and is not replaced.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => std::fs::rename(from, to),
        other => Ok(other?),
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if path.symlink_metadata().is_ok_and(|m| m.is_symlink()) {
        return Err(io::Error::other(
            "it is a symbolic link, which nothing is written through",
        ));
    }
    let mut sink = Sink::open(path)?;
    sink.write_all(bytes)?;
    sink.finish()
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    write(path, text.as_bytes())
}

/// Size and hash of a file.
pub(super) fn stored(path: &Path) -> io::Result<Stored> {
    let file = File::open(path)?;
    Ok(Stored {
        bytes: file.metadata()?.len(),
        sha256: content_hash(file)?,
    })
}
