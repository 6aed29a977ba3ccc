//! Lists results folders with their states. It changes nothing and does not trust the contents of
//! the folders.

use super::columns::TABLES;
use super::environment::Environment;
use super::folder::{ENVIRONMENT, EXPERIMENT, JOURNAL, RESULTS};
use super::plan::{Finished, Plan, own, read_json};
use super::{StoreError, folder, journal};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The state of a results folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "why", rename_all = "snake_case")]
pub enum State {
    /// The folder is complete.
    Complete,
    /// The experiment has started, is not running, and can continue.
    Resumable,
    /// A process is writing to the folder.
    Running,
    /// The folder cannot be used. The text gives the reason and says what to do.
    Broken(String),
}

/// An entry in the list of results folders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Path of the folder.
    pub path: PathBuf,
    /// Name of the experiment; empty if it cannot be read.
    pub name: String,
    /// End of the last session in UTC, as `YYYY-MM-DD hh:mm`.
    pub date: Option<String>,
    /// Number of cells.
    pub cells: usize,
    /// Number of schedulers.
    pub treatments: usize,
    /// Number of stored runs.
    pub runs: u64,
    /// State of the folder.
    #[serde(flatten)]
    pub state: State,
}

/// Returns whether a directory looks like a results folder.
pub fn is_folder(path: &Path) -> bool {
    [EXPERIMENT, RESULTS]
        .iter()
        .any(|n| path.join(n).symlink_metadata().is_ok())
}

/// Examines a results folder.
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
    // The list already shows the path of the folder, so the reason does not repeat it.
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
        // Only the sizes of the files are checked, because reading thousands of files would take
        // minutes.
        for (name, was) in &done.files {
            if Path::new(name).components().count() != 1 {
                continue;
            }
            let file = own(path, name)?;
            let size = file.metadata().map_or(0, |m| m.len());
            if size != was.bytes {
                let what = format!("it has {size} bytes, but {} were written", was.bytes);
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

/// Examines the results folders among these paths. For a path that is not a results folder, the
/// folders directly in it and in its subdirectory `results` are examined. The folders within a
/// directory are sorted by name.
///
/// # Errors
/// Returns an error if a path is not a directory.
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
        // The path is shown as the user typed it, without a leading `./`.
        let path = dir.join(entry.file_name());
        let path = path.strip_prefix(".").map_or(path.clone(), Path::to_owned);
        if !hidden && path.is_dir() && is_folder(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
