//! Lists results folders and their states. It changes nothing and does not trust the contents.

use super::columns::TABLES;
use super::environment::Environment;
use super::folder::{ENVIRONMENT, EXPERIMENT, JOURNAL, RESULTS};
use super::plan::{Finished, Plan, own, read_json};
use super::{StoreError, folder, journal};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// State of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "why", rename_all = "snake_case")]
pub enum State {
    /// The folder is complete.
    Complete,
    /// The experiment has started and can continue.
    Resumable,
    /// A process is writing to it.
    Running,
    /// The folder is unusable; the text gives the reason and the remedy.
    Broken(String),
}

/// A results folder in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its path.
    pub path: PathBuf,
    /// Name of the experiment; empty if it cannot be read.
    pub name: String,
    /// End of its last session, UTC, `YYYY-MM-DD hh:mm`.
    pub date: Option<String>,
    /// Number of cells.
    pub cells: usize,
    /// Number of schedulers.
    pub treatments: usize,
    /// Number of stored runs.
    pub runs: u64,
    /// Its state.
    #[serde(flatten)]
    pub state: State,
}

/// Whether a directory looks like a results folder.
pub fn is_folder(path: &Path) -> bool {
    [EXPERIMENT, RESULTS]
        .iter()
        .any(|n| path.join(n).symlink_metadata().is_ok())
}

/// Examines a folder.
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
    // The list already shows the folder's path.
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
        // Only sizes are checked: reading thousands of files for a list would take minutes.
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

/// The results folders among these paths, directly in them, and in their directory `results`,
/// sorted by name. A path that is not a results folder is listed only if it was named explicitly.
///
/// # Errors
/// A path is not a directory.
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
        // Show the path as typed: `./x` becomes `x`.
        let path = dir.join(entry.file_name());
        let path = path.strip_prefix(".").map_or(path.clone(), Path::to_owned);
        if !hidden && path.is_dir() && is_folder(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
