//! The description of the experiment in a results folder: `experiment.json` while the experiment
//! runs, and `results.json` at the end.

use super::{About, Cell, CellEnd, RESULTS_VERSION, Results, StoreError, Summary, Treatment};
use crate::experiment::{CellPlan, Deciding, Experiment, Primary};
use seekwell_core::spec::{RunSpec, content_hash};
use seekwell_files::{ReadError, read_text};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Largest size of a JSON file, in bytes.
const TEXT_MAX: u64 = 256 << 20;

/// The content of `experiment.json`: the planned experiment. The file is written once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Plan {
    pub schema: u32,
    /// Hash of everything that determines the runs. When an experiment is resumed, its hash must be
    /// the same.
    #[serde(default)]
    pub hash: String,
    pub about: About,
    pub cells: Vec<Cell>,
    pub treatments: Vec<Treatment>,
    /// The specifications by cell and treatment, with the repeat number 0; empty for imports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub specs: Vec<Vec<RunSpec>>,
}

impl Plan {
    pub fn from_experiment(e: &Experiment) -> Self {
        let mut plan = Plan {
            schema: RESULTS_VERSION,
            hash: String::new(),
            about: e.about.clone(),
            cells: e.cells.iter().map(|c| c.cell.clone()).collect(),
            treatments: e.treatments.clone(),
            specs: e.cells.iter().map(|c| c.specs.clone()).collect(),
        };
        plan.seal();
        plan
    }
    pub fn of_results(r: &Results) -> Self {
        let mut plan = Plan {
            schema: RESULTS_VERSION,
            hash: String::new(),
            about: r.about.clone(),
            cells: r.cells.clone(),
            treatments: r.treatments.clone(),
            specs: Vec::new(),
        };
        plan.seal();
        plan
    }
    /// Computes the hash. It does not cover what belongs to the results, such as the ends of the
    /// cells and the notes.
    fn seal(&mut self) {
        for c in &mut self.cells {
            c.ended = CellEnd::Open;
            c.warm_up = None;
            c.busy.clear();
            // The deciding metrics do not influence the runs.
            c.rows.clear();
            c.checks.clear();
            c.throttled.clear();
        }
        let hashes: Vec<Vec<String>> = self
            .specs
            .iter()
            .map(|cell| cell.iter().map(RunSpec::hash).collect())
            .collect();
        let (method, name) = (&self.about.method, &self.about.name);
        let all = (name, method, &self.cells, &self.treatments, hashes);
        // NaN and infinity are written as null, which is deterministic.
        let text = serde_json::to_vec(&all).unwrap_or_default();
        self.hash = content_hash(text.as_slice()).unwrap_or_default();
    }
    /// Describes how this experiment differs from another; the experiment of this plan is the
    /// subject. Returns `None` if they are the same.
    pub fn differs(&self, other: &Plan) -> Option<String> {
        if self.hash == other.hash {
            return None;
        }
        let names = |p: &Plan| -> Vec<String> { p.cells.iter().map(|c| c.name.clone()).collect() };
        let labels =
            |p: &Plan| -> Vec<String> { p.treatments.iter().map(|t| t.label.clone()).collect() };
        if self.about.name != other.about.name {
            return Some(format!("it is the experiment \"{}\"", self.about.name));
        }
        let lists = [
            ("cell", names(self), names(other)),
            ("scheduler", labels(self), labels(other)),
        ];
        for (what, ours, theirs) in &lists {
            if let Some(gone) = ours.iter().find(|n| !theirs.contains(n)) {
                return Some(format!(
                    "it has the {what} \"{gone}\", which is not requested"
                ));
            }
            if let Some(new) = theirs.iter().find(|n| !ours.contains(n)) {
                return Some(format!("it has no {what} \"{new}\""));
            }
        }
        if self.about.method.seed != other.about.method.seed {
            return Some(format!("it has the seed {}", self.about.method.seed));
        }
        if self.about.method != other.about.method {
            return Some("repeats, margin or order of runs differ".to_owned());
        }
        let changed = self.specs.iter().zip(&other.specs).position(|(a, b)| {
            a.len() != b.len() || a.iter().zip(b).any(|(a, b)| a.hash() != b.hash())
        });
        Some(match changed.and_then(|i| self.cells.get(i)) {
            Some(cell) => format!("the specifications of cell \"{}\" differ", cell.name),
            None => "cells or schedulers have another order".to_owned(),
        })
    }
}

/// Returns the planned experiment of a folder. The deciding metrics are those of the cells, so that
/// the experiment can be simulated and compared with the results.
///
/// # Errors
/// The folder contains no specifications, or it is damaged.
pub fn planned(dir: &Path) -> Result<Experiment, StoreError> {
    let plan: Plan = read_json(dir, super::EXPERIMENT)?;
    in_range(&dir.join(super::EXPERIMENT), &plan.cells, &plan.treatments)?;
    if plan.specs.len() != plan.cells.len() || plan.cells.is_empty() {
        let what = "contains no specifications of runs; name the results of an experiment";
        return Err(StoreError::bad(dir, what));
    }
    let cells = plan
        .cells
        .into_iter()
        .zip(plan.specs)
        .map(|(mut cell, specs)| {
            let deciding = specs.first().map_or_else(Deciding::default, |spec| {
                let usual = Deciding::usual(&spec.workload);
                let named = Primary::parse(&cell.primary.name, &spec.workload);
                match usual.primary.info(&spec.workload).name == cell.primary.name {
                    true => usual,
                    false => named.map_or(usual, Deciding::alone),
                }
            });
            // The plan does not store them, because they do not influence the runs.
            if let Some(spec) = specs.first() {
                cell.rows = deciding.rows_info(&spec.workload);
                cell.checks.clone_from(&deciding.checks);
            }
            CellPlan {
                cell,
                deciding,
                specs,
            }
        });
    Ok(Experiment {
        about: plan.about,
        cells: cells.collect(),
        treatments: plan.treatments,
        text: String::new(),
        design: Default::default(),
    })
}

/// The content of `results.json`. The file is written last, so if it exists, all other files exist
/// too.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Finished {
    pub schema: u32,
    pub about: About,
    pub cells: Vec<Cell>,
    pub treatments: Vec<Treatment>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summaries: Vec<Summary>,
    /// Number of stored runs.
    pub runs: u64,
    /// The other files of the folder, by name.
    pub files: BTreeMap<String, Stored>,
}

/// Size and hash of a file when it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stored {
    pub bytes: u64,
    pub sha256: String,
}

/// Returns the path of a file in the folder. Returns an error if the file is missing, or if it is a
/// link or no regular file.
pub(super) fn own(dir: &Path, name: &str) -> Result<PathBuf, StoreError> {
    let path = dir.join(name);
    match std::fs::symlink_metadata(&path) {
        Ok(m) if m.is_symlink() => Err(StoreError::bad(
            &path,
            "is a symbolic link, which a results folder cannot contain; if you trust its target, \
             replace the link by a copy",
        )),
        Ok(m) if !m.is_file() => Err(StoreError::bad(
            &path,
            "is not a file; this is not a results folder, or it is damaged",
        )),
        Ok(_) => Ok(path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(StoreError::bad(
            &path,
            "is missing; copy the whole folder again, or make the runs again",
        )),
        Err(e) => Err(StoreError::bad(&path, e.to_string())),
    }
}

/// The version of a JSON file. It is read first, because another version can have other fields.
#[derive(Deserialize)]
struct Versioned {
    schema: Option<u32>,
}

/// Reads a JSON file of a results folder.
pub(super) fn read_json<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<T, StoreError> {
    let path = own(dir, name)?;
    let text = read_text(&path, TEXT_MAX).map_err(|e| match e {
        ReadError::NotText(_) => damaged(&path, &e.to_string()),
        e => StoreError::bad(&path, e.to_string()),
    })?;
    let version: Versioned =
        serde_json::from_str(&text).map_err(|e| damaged(&path, &e.to_string()))?;
    if let Some(version) = version.schema.filter(|v| *v > RESULTS_VERSION) {
        return Err(newer(&path, &version.to_string()));
    }
    serde_json::from_str(&text).map_err(|e| damaged(&path, &e.to_string()))
}

pub(super) fn newer(path: &Path, version: &str) -> StoreError {
    StoreError::bad(
        path,
        format!(
            "has schema {version} of a newer seekwell, and this one ({}) reads up to \
             {RESULTS_VERSION}: use the newer one",
            env!("CARGO_PKG_VERSION"),
        ),
    )
}

pub(super) fn damaged(path: &Path, why: &str) -> StoreError {
    StoreError::bad(
        path,
        format!(
            "is not in seekwell's format ({why}); copy the folder again, or make the runs again"
        ),
    )
}

/// Checks that all indices are in range, so that the readers need not check them.
pub(super) fn in_range(
    path: &Path,
    cells: &[Cell],
    treatments: &[Treatment],
) -> Result<(), StoreError> {
    for c in cells {
        let mut places = c.treatments.iter().chain([&c.reference]);
        if places.any(|t| *t >= treatments.len()) {
            let what = format!("cell \"{}\" names a scheduler that is not listed", c.name);
            return Err(damaged(path, &what));
        }
    }
    Ok(())
}
