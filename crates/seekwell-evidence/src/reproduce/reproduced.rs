//! A reproduced publication with everything that it is compared with, and the results directory
//! from which it is read.

use super::full::{Scaling, Scatter, lines, scaling, scatter};
use super::guard::Kept;
use super::{Cell, Publication, Reproduction, Seconds, Skill, Target, seconds, skill, targets};
use seekwell_lab::results::{Folder, Outcome, Results, Run, StoreError, read};
use std::path::{Path, PathBuf};

/// A reproduced publication. For a quick run, also its comparison with the full run, if that
/// exists.
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// The publication.
    pub publication: &'static Publication,
    /// Values per second of a run; empty unless the publication shows them.
    pub seconds: Vec<Seconds>,
    /// The simulated and the published results.
    pub ours: Reproduction,
    /// The quick form compared with the full one.
    pub scaling: Option<Scaling>,
    /// Skill of the full form; empty if there are no results.
    pub full: Vec<Skill>,
    /// Scatter of the published and simulated results, from the full form.
    pub scatter: Vec<Scatter>,
}

impl Reproduced {
    /// Compares the results with those of the full form. A full run is its own full form.
    pub fn new(
        publication: &'static Publication,
        ours: Reproduction,
        full: Option<Vec<Cell>>,
        seconds: Vec<Seconds>,
    ) -> Reproduced {
        let full = match ours.quick {
            true => full,
            false => Some(ours.cells.clone()),
        };
        let off = full.as_ref().filter(|_| ours.quick);
        let off = off.map(|full| scaling(&ours.cells, full));
        Reproduced {
            publication,
            seconds,
            ours,
            scaling: off,
            full: full.as_ref().map_or(Vec::new(), |f| skill(f)),
            scatter: full.map_or(Vec::new(), |f| scatter(&f)),
        }
    }
}

/// Returns the targets for these publications.
pub fn asked(all: &[Reproduced]) -> Vec<Target> {
    let all: Vec<&Reproduction> = all.iter().map(|s| &s.ours).collect();
    targets(&all)
}

/// Returns the results of the targets in the latest full runs. Returns `None` unless all runs are
/// quick and all publications have a full run.
pub fn asked_in_full(all: &[Reproduced]) -> Option<Vec<Target>> {
    let quick = all.iter().all(|s| s.ours.quick);
    let full = all.iter().map(|s| s.publication.in_full());
    let full: Vec<Reproduction> = full.collect::<Option<_>>().filter(|_| quick)?;
    Some(targets(&full.iter().collect::<Vec<_>>()))
}

/// Returns the reasons why runs failed.
pub fn failures(results: &Results) -> Vec<String> {
    let why = |r: &Run| match &r.outcome {
        Outcome::Failed(why) => Some(why.clone()),
        _ => None,
    };
    results.runs.iter().filter_map(why).collect()
}

/// Joins the results of several directories. Cells are appended; schedulers are matched by name.
///
/// # Errors
/// A directory cannot be read.
pub fn joined(folders: &[PathBuf]) -> Result<Results, StoreError> {
    let mut all = Results::default();
    for dir in folders {
        let own = read(dir)?;
        let cells = all.cells.len();
        let treatments: Vec<usize> = own
            .treatments
            .into_iter()
            .map(
                |t| match all.treatments.iter().position(|o| o.label == t.label) {
                    Some(at) => at,
                    None => {
                        all.treatments.push(t);
                        all.treatments.len() - 1
                    }
                },
            )
            .collect();
        all.cells.extend(own.cells);
        all.runs.extend(own.runs.into_iter().map(|mut run| {
            run.key.cell += cells;
            run.key.treatment = treatments[run.key.treatment];
            run
        }));
    }
    Ok(all)
}

/// Returns the values per second of the first run of each scheduler from a results directory, if
/// the publication shows them and all runs exist.
///
/// # Errors
/// The directory cannot be read.
pub fn by_second(dir: &Path, p: &Publication) -> Result<Vec<Seconds>, StoreError> {
    let Some(kind) = p.by_second else {
        return Ok(Vec::new());
    };
    let folder = Folder::open(dir)?;
    if !folder.is_finished() {
        return Ok(Vec::new());
    }
    seconds(dir, &read(dir)?, kind)
}

/// Returns the full form for the comparison with a quick run, if it is complete below `results`.
pub fn full_run(results: &Path, p: &Publication, repeats: Option<u32>) -> Option<Vec<Cell>> {
    let e = p.runs(false, repeats).ok()?;
    let dir = results.join(&e.about.name);
    let folder = Folder::open(&dir).ok()?;
    let whole = folder.is_finished() && folder.differs(&e).is_none();
    let results = read(&dir).ok().filter(|_| whole)?;
    Some(p.reproduction(&results, false).cells)
}

/// Stores the results of the full form in the directory `results`. A changed model gives other
/// results for the same runs, so an older file is replaced.
///
/// # Errors
/// Returns a message if the file cannot be written.
pub fn keep(results: &Path, p: &Publication, r: &Reproduction) -> Result<(), String> {
    let path = results.join(format!("{}-full.jsonl", p.name));
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {e}", path.display()));
        }
        _ => {}
    }
    let mut kept = Kept::open(&path).map_err(|e| e.to_string())?;
    for line in lines(p, r).map_err(|e| e.to_string())? {
        kept.add(line).map_err(|e| e.to_string())?;
    }
    Ok(())
}
