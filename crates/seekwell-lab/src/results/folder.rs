//! A results folder. It is created once, receives one run after another, and is completed once. It
//! is never overwritten.
//!
//! While the experiment runs, a journal stores each finished run ([`super::journal`]). At the end,
//! the runs are written in order to Parquet files and a histogram log. `results.json` is written
//! last, and the journal is deleted. After that the folder is complete and does not change. If the
//! experiment is killed earlier, it can continue from the journal.

use super::entry::Entry;
use super::environment::Environment;
use super::hlog;
use super::journal::{self, Journal, Refused};
use super::plan::{Finished, Plan, Stored, in_range, own, read_json};
use super::reading;
use super::{Ended, Results, Run, RunKey, StoreError, settle};
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

/// The experiment file as the user wrote it, or an equivalent file for a command line.
pub const EXPERIMENT_TEXT: &str = "experiment.toml";
/// The experiment with all its cells and specifications.
pub const EXPERIMENT: &str = "experiment.json";
/// When and where the experiment ran.
pub const ENVIRONMENT: &str = "environment.json";
/// The runs of an unfinished experiment.
pub const JOURNAL: &str = "journal";
/// The latency histograms.
pub const HISTOGRAMS: &str = "histograms.hlog";
/// The results. This file is written last.
pub const RESULTS: &str = "results.json";

/// An open results folder. A lock prevents other processes from writing to it.
pub struct Folder {
    path: PathBuf,
    plan: Plan,
    /// The journal of the runs; `None` if the folder is complete.
    journal: Option<Journal>,
    environment: Environment,
    notes: Vec<String>,
    scratch: hlog::Scratch,
}

impl Folder {
    /// Creates a results folder for an experiment.
    ///
    /// # Errors
    /// Returns an error if the name exists, or if the folder cannot be created there.
    pub fn create(path: &Path, experiment: &Experiment) -> Result<Self, StoreError> {
        Folder::make(
            path,
            Plan::from_experiment(experiment),
            &experiment.stored(),
        )
    }

    /// Creates a results folder from complete results, for imports.
    ///
    /// # Errors
    /// Returns the errors of [`Folder::create`] and [`Folder::finish`].
    pub fn store(path: &Path, results: &Results) -> Result<(), StoreError> {
        Folder::make(path, Plan::of_results(results), "")?.finish(results)
    }

    /// Opens a results folder. A complete folder is opened for reading, an unfinished folder to
    /// continue the experiment.
    ///
    /// # Errors
    /// Returns an error if the folder does not exist, is damaged, has a newer version, or is in use
    /// by another process.
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
            Err(e) => folder.note(format!("{e}: the file is created again")),
        }
        folder.go_on()?;
        Ok(folder)
    }

    /// Opens a results folder to continue its experiment.
    ///
    /// # Errors
    /// Returns the errors of [`Folder::open`]. Also returns an error if the folder is complete or
    /// belongs to another experiment.
    pub fn resume(path: &Path, experiment: &Experiment) -> Result<Self, StoreError> {
        let mut folder = Folder::open(path)?;
        if let Some(how) = folder.plan.differs(&Plan::from_experiment(experiment)) {
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
                "exists, and results are never overwritten; name another folder",
            ));
        }
        let name = path
            .file_name()
            .ok_or_else(|| StoreError::bad(path, "is not a valid folder name; name another"))?;
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(failed)?;
        // The folder is built under a hidden name and renamed when it is ready, so that no
        // incomplete folder is visible.
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
        // The specifications take most of the memory. They are in the file and in the experiment,
        // so this copy is not needed.
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
                "{}: an incomplete run is made again ({bytes} bytes of it were stored)",
                path.display(),
            ));
        }
        if let Some(first) = found.damaged.first() {
            self.note(format!(
                "{}: damaged lines: {} (the first is line {first}); those runs are made again",
                path.display(),
                found.damaged.len(),
            ));
        }
        let (cells, treatments) = (self.plan.cells.len(), self.plan.treatments.len());
        let fits = |k: &RunKey| k.cell < cells && k.treatment < treatments;
        if let Some(k) = journal.keys().find(|k| !fits(k)) {
            let what = format!(
                "contains a run of cell {}, scheduler {}, which is not in the experiment; it \
                 belongs to another one",
                k.cell, k.treatment
            );
            return Err(StoreError::bad(&path, what));
        }
        let runs = journal.keys().len();
        self.journal = Some(journal);
        // This process holds the lock of the journal, so no other process uses the partly written
        // files in the folder. They can be removed.
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
            n => format!("{n} runs are stored; free some space, and the same command continues"),
        };
        StoreError::write(path, e, kept)
    }

    /// Describes how the experiment of the folder differs from `experiment`. Returns `None` if they
    /// are the same.
    pub fn differs(&self, experiment: &Experiment) -> Option<String> {
        self.plan.differs(&Plan::from_experiment(experiment))
    }
    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Returns whether the folder is complete. Nothing can be added to a complete folder.
    pub fn is_finished(&self) -> bool {
        self.journal.is_none()
    }
    /// Returns descriptions of the faults that were found and repaired when the folder was opened.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
    /// Reads the stored runs of an unfinished folder from disk, in order. Returns an empty list for
    /// a complete folder; use [`Folder::read`] for that.
    ///
    /// # Errors
    /// Returns an error if the runs cannot be read, or if they differ from what was written.
    pub fn completed(&self) -> Result<Vec<Run>, StoreError> {
        let Some(journal) = &self.journal else {
            return Ok(Vec::new());
        };
        let path = self.path.join(JOURNAL);
        journal.runs().map_err(|e| self.failed(&path, e))
    }
    /// Returns whether a run is stored.
    pub fn has(&self, key: RunKey) -> bool {
        self.journal.as_ref().is_some_and(|j| j.has(key))
    }
    /// Returns the number of stored runs.
    fn stored(&self) -> usize {
        self.journal.as_ref().map_or(0, |j| j.keys().len())
    }

    /// Stores a finished run. Once this function has returned, the run is kept even if the process
    /// is killed. A stored run with the same key is replaced.
    ///
    /// # Errors
    /// Returns an error if the run cannot be written, for example because the disk is full.
    /// Everything stored before remains.
    pub fn add(&mut self, ended: &Ended<'_>) -> Result<(), StoreError> {
        let tag = self.tag(ended.run.key);
        let entry = Entry::from_ended(ended, &tag, &mut self.scratch);
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

    /// Writes all files and completes the folder. Cells, notes and summaries are taken from
    /// `results`. Runs of `results` that are not stored yet are added.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written. The runs then stay in the journal, and the
    /// call can be repeated.
    pub fn finish(&mut self, results: &Results) -> Result<(), StoreError> {
        // The values in `results` replace the stored values, because they leave out the warm-up.
        let known = Known::new(&results.runs);
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
            .map_err(|e| StoreError::write(&path, e, "the results are complete; remove this file"))
    }

    /// Reads the results. A complete folder is read from its files. For an unfinished folder, the
    /// results contain the runs that are stored so far.
    ///
    /// # Errors
    /// Returns an error if a file is missing, damaged, or belongs to other results.
    pub fn read(&self) -> Result<Results, StoreError> {
        if self.is_finished() {
            return reading::finished(&self.path);
        }
        Ok(so_far(&self.plan, self.completed()?))
    }
}

/// A results folder stores each run when the run ends.
impl Store for Folder {
    fn completed(&mut self) -> Result<Vec<Run>, conduct::StoreError> {
        Folder::completed(self).map_err(|e| conduct::StoreError(e.to_string()))
    }
    fn add(&mut self, ended: &Ended<'_>) -> Result<(), conduct::StoreError> {
        Folder::add(self, ended).map_err(|e| conduct::StoreError(e.to_string()))
    }
}

impl Drop for Folder {
    /// Stores the end time of the session, if it can be written.
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
    settle(&mut results);
    results
}

/// Reads when and where the runs of a results folder were made.
///
/// # Errors
/// Returns an error if the path is not a results folder, or if `environment.json` is missing or
/// damaged.
pub fn environment(path: &Path) -> Result<Environment, StoreError> {
    must_be_folder(path)?;
    read_json(path, ENVIRONMENT)
}

/// Reads the results of a folder without changing it, even while another process writes to it. For
/// an unfinished folder, the results contain the runs that are stored so far.
///
/// # Errors
/// Returns the errors of [`Folder::open`], except that another process may use the folder.
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
        Ok(_) => Err(StoreError::bad(path, "is a file; name the results folder")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(StoreError::bad(
            path,
            "does not exist; `seekwell results` lists the folders",
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
        // Fallback for file systems without this operation. If another process has created the
        // target folder meanwhile, it contains files, so `rename` does not replace it.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => std::fs::rename(from, to),
        other => Ok(other?),
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if path.symlink_metadata().is_ok_and(|m| m.is_symlink()) {
        return Err(io::Error::other(
            "it is a symbolic link; results are never written through links",
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

/// Returns the size and the hash of a file.
pub(super) fn stored(path: &Path) -> io::Result<Stored> {
    let file = File::open(path)?;
    Ok(Stored {
        bytes: file.metadata()?.len(),
        sha256: content_hash(file)?,
    })
}
