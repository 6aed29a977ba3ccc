//! What folders there are, and how each stands: nothing is changed, nothing is believed.

use super::columns::TABLES;
use super::environment::Environment;
use super::folder::{ENVIRONMENT, EXPERIMENT, JOURNAL, RESULTS};
use super::plan::{Finished, Plan, own, read_json};
use super::{StoreError, folder, journal};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// How a folder stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "why", rename_all = "snake_case")]
pub enum State {
    /// All is there.
    Complete,
    /// Begun, and can go on.
    Resumable,
    /// A process is at it.
    Running,
    /// Neither: why, and what to do.
    Broken(String),
}

/// A results folder among others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Where it is.
    pub path: PathBuf,
    /// Name of the experiment; empty where it cannot be read.
    pub name: String,
    /// When its last sitting ended, UTC, `YYYY-MM-DD hh:mm`.
    pub date: Option<String>,
    /// Cells of the experiment.
    pub cells: usize,
    /// Schedulers of the experiment.
    pub treatments: usize,
    /// Runs stored.
    pub runs: u64,
    /// How it stands.
    #[serde(flatten)]
    pub state: State,
}

/// Whether a directory is meant to be a results folder.
pub fn is_folder(path: &Path) -> bool {
    [EXPERIMENT, RESULTS]
        .iter()
        .any(|n| path.join(n).symlink_metadata().is_ok())
}

/// What there is to say of one.
pub fn look(path: &Path) -> Listed {
    let environment: Result<Environment, _> = read_json(path, ENVIRONMENT);
    let mut listed = Listed {
        path: path.to_owned(),
        name: String::new(),
        date: environment.ok().and_then(|e| e.last()),
        cells: 0,
        treatments: 0,
        runs: 0,
        state: State::Complete,
    };
    let inside = format!("{}/", path.display());
    // The folder is named beside it.
    let why = |e: StoreError| e.to_string().replacen(&inside, "", 1);
    listed.state = look_into(path, &mut listed).unwrap_or_else(|e| State::Broken(why(e)));
    listed
}

fn look_into(path: &Path, listed: &mut Listed) -> Result<State, StoreError> {
    if path.join(RESULTS).symlink_metadata().is_ok() {
        let done: Finished = read_json(path, RESULTS)?;
        listed.name = done.about.name;
        (listed.cells, listed.treatments) = (done.cells.len(), done.treatments.len());
        listed.runs = done.runs;
        // Sizes only: reading thousands of files for a list would take minutes.
        for (name, was) in &done.files {
            if Path::new(name).components().count() != 1 {
                continue;
            }
            let file = own(path, name)?;
            let size = file.metadata().map_or(0, |m| m.len());
            if size != was.bytes {
                let what = format!("{size} bytes, {} were written", was.bytes);
                return Err(super::plan::damaged(&file, &what));
            }
        }
        for table in TABLES {
            own(path, table.file)?;
        }
        return Ok(State::Complete);
    }
    let plan: Plan = read_json(path, EXPERIMENT)?;
    listed.name = plan.about.name;
    (listed.cells, listed.treatments) = (plan.cells.len(), plan.treatments.len());
    let at = own(path, JOURNAL)?;
    let (found, busy) =
        journal::look(&at, &mut |_| {}).map_err(|e| folder::refused(path, &at, e))?;
    listed.runs = found.runs() as u64;
    Ok(if busy {
        State::Running
    } else {
        State::Resumable
    })
}

/// The results folders that paths name: themselves, or those directly in them and in a directory
/// `results` of them, by name. What is none is not listed, unless it was named itself.
///
/// # Errors
/// A path that is no directory.
pub fn list(paths: &[PathBuf]) -> Result<Vec<Listed>, StoreError> {
    let mut all = Vec::new();
    for path in paths {
        if is_folder(path) {
            all.push(look(path));
            continue;
        }
        all.extend(within(path)?.iter().map(|p| look(p)));
        let usual = path.join("results");
        if usual.is_dir() && !is_folder(&usual) {
            all.extend(within(&usual)?.iter().map(|p| look(p)));
        }
    }
    Ok(all)
}

fn within(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let told = |e: std::io::Error| StoreError::bad(dir, e.to_string());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(told)? {
        let entry = entry.map_err(told)?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // Named as it was typed: `./x` is `x`.
        let path = dir.join(entry.file_name());
        let path = path.strip_prefix(".").map_or(path.clone(), Path::to_owned);
        if !hidden && path.is_dir() && is_folder(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
