//! `seekwell reproduce`: repeats published comparisons in simulation.

mod brief;
mod guard;
mod missed;
mod own;
mod page;
mod section;
mod show;

use super::results::failure;
use crate::cells::cancelling;
use crate::cli::Reproduce;
use crate::fail::Failure;
use crate::lab::Collect;
use crate::out::{Out, note};
use crate::progress::Progress;
use seekwell::Cancel;
use seekwell_host::stop::signal;
use seekwell_lab::conduct::{How, Simulated, conduct};
use seekwell_lab::experiment::Experiment;
use seekwell_lab::reproduce::full::{Scaling, Scatter, carried, lines, scaling, scatter};
use seekwell_lab::reproduce::guard::Kept;
use seekwell_lab::reproduce::{
    Cell, Publication, Reproduction, Seconds, Skill, Target, find, seconds, skill, systems, targets,
};
use seekwell_lab::results::{Folder, Outcome, Results, Run, read};
use seekwell_report::compare::first::LINES;
use serde_json::json;
use std::path::{Path, PathBuf};

/// A reproduced publication. For a quick run, also its comparison with the full run, if that
/// exists.
pub struct Shown {
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

/// Runs the command.
pub fn run(a: &Reproduce, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    Out::check(output)?;
    let publications = find(&a.name).map_err(Failure::Input)?;
    if a.file {
        let mut out = Out::open(output)?;
        for (i, p) in publications.iter().enumerate() {
            out.text(if i > 0 { "\n" } else { "" })?;
            out.text(p.text(a.quick))?;
        }
        return out.done();
    }
    if let Some(name) = &a.guard {
        return guard::run(a, name, &publications, quiet);
    }
    let mut shown = Vec::new();
    let mut failed = Vec::new();
    for p in publications {
        let (ours, why) = made(a, p, a.quick, quiet)?;
        if !a.quick && why.is_empty() {
            keep(a, p, &ours)?;
        }
        failed.extend(why);
        let full = match a.quick {
            true => full(a, p).or_else(|| carried(p)),
            false => Some(ours.cells.clone()),
        };
        let off = full.as_ref().filter(|_| a.quick);
        let off = off.map(|full| scaling(&ours.cells, full));
        shown.push(Shown {
            publication: p,
            seconds: by_second(a, p)?,
            ours,
            scaling: off,
            full: full.as_ref().map_or(Vec::new(), |f| skill(f)),
            scatter: full.map_or(Vec::new(), |f| scatter(&f)),
        });
    }
    let mut out = Out::open(output)?;
    if a.json {
        let all: Vec<_> = shown
            .iter()
            .map(|s| {
                json!({
                    "reproduction": s.ours,
                    "scaling": s.scaling,
                    "scatter": s.scatter,
                    "systems": systems(s.publication),
                    "seconds": s.seconds,
                })
            })
            .collect();
        let asked = asked(&shown);
        out.json(&json!({
            "schema": 1, "command": "reproduce", "publications": all, "targets": asked
        }))?;
    } else if a.markdown {
        out.text(&page::page(&shown))?;
    } else if !a.details {
        out.text(&brief::screen(&shown, &asked(&shown), LINES))?;
    } else {
        for s in &shown {
            show::show(&mut out, s)?;
        }
        show::targets(&mut out, &asked(&shown), &shown)?;
    }
    out.done()?;
    match failed.first() {
        Some(why) => Err(Failure::Early(format!(
            "{} of the runs failed; the others are shown: {why}",
            failed.len()
        ))),
        None => Ok(()),
    }
}

/// Returns the targets for these publications.
fn asked(all: &[Shown]) -> Vec<Target> {
    let all: Vec<&Reproduction> = all.iter().map(|s| &s.ours).collect();
    targets(&all)
}

/// Returns the results of the targets in the latest full runs. Returns `None` unless all shown runs
/// are quick and all publications have a full run.
fn asked_in_full(all: &[Shown]) -> Option<Vec<Target>> {
    let quick = all.iter().all(|s| s.ours.quick);
    let full = all.iter().map(|s| s.publication.in_full());
    let full: Vec<Reproduction> = full.collect::<Option<_>>().filter(|_| quick)?;
    Some(targets(&full.iter().collect::<Vec<_>>()))
}

/// Returns the values per second of a run, if the publication shows them and all runs exist.
fn by_second(a: &Reproduce, p: &Publication) -> Result<Vec<Seconds>, Failure> {
    let Some(kind) = p.by_second.filter(|_| a.from.is_empty()) else {
        return Ok(Vec::new());
    };
    let dir = a
        .results
        .join(&p.runs(a.quick, a.repeats).map_err(bad)?.about.name);
    let folder = Folder::open(&dir).map_err(failure)?;
    if !folder.is_finished() {
        return Ok(Vec::new());
    }
    let results = read(&dir).map_err(failure)?;
    seconds(&dir, &results, kind).map_err(failure)
}

fn bad(e: impl std::fmt::Display) -> Failure {
    Failure::input(e.to_string())
}

/// Executes the missing runs. Returns the results of a publication, and the reasons for failed
/// runs.
fn made(
    a: &Reproduce,
    p: &Publication,
    quick: bool,
    quiet: bool,
) -> Result<(Reproduction, Vec<String>), Failure> {
    if !a.from.is_empty() {
        let results = joined(&a.from)?;
        return Ok((p.reproduction(&results, quick), failures(&results)));
    }
    let e = p.runs(quick, a.repeats).map_err(bad)?;
    let dir = a.results.join(&e.about.name);
    let mut folder = match dir.symlink_metadata().is_ok() {
        true => Folder::open(&dir),
        false => Folder::create(&dir, &e),
    }
    .map_err(failure)?;
    if let Some(how) = folder.differs(&e) {
        return Err(bad(format!(
            "{}: belongs to another experiment: {how}; name another folder with --results",
            dir.display()
        )));
    }
    let there = match folder.is_finished() {
        true => " (complete: nothing is run again)",
        false => "",
    };
    note(quiet, &format!("results: {}{there}", dir.display()));
    folder.notes().iter().for_each(|n| note(quiet, n));
    let results = match folder.is_finished() {
        true => folder.read().map_err(failure)?,
        false => conducted(a, &e, &mut folder, &dir, quiet)?,
    };
    Ok((p.reproduction(&results, quick), failures(&results)))
}

/// Returns the reasons why runs failed.
fn failures(results: &Results) -> Vec<String> {
    let why = |r: &Run| match &r.outcome {
        Outcome::Failed(why) => Some(why.clone()),
        _ => None,
    };
    results.runs.iter().filter_map(why).collect()
}

/// Joins the results of several directories. Cells are appended; schedulers are matched by name.
fn joined(folders: &[PathBuf]) -> Result<Results, Failure> {
    let mut all = Results::default();
    for dir in folders {
        let own = read(dir).map_err(failure)?;
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

/// Executes the missing runs.
fn conducted(
    a: &Reproduce,
    e: &Experiment,
    folder: &mut Folder,
    dir: &Path,
    quiet: bool,
) -> Result<Results, Failure> {
    let progress = Progress::new(quiet, "runs", 0, e.cells.len());
    let told = Collect::new(&progress, 1, 0);
    let cancel = Cancel::new();
    let how = How {
        threads: a.threads.map(|n| n as usize),
        cancel: cancel.clone(),
        told: &told,
    };
    let runner = Simulated::default();
    let done = cancelling(&cancel, || conduct(e, &runner, folder, &how))?;
    let done = done.map_err(|e| Failure::NotKept(e.to_string()))?;
    if let (true, Some(signal)) = (done.cancelled, signal()) {
        let what = format!(
            "stopped by signal {signal}: {} runs are stored in {}; the same command resumes",
            done.made + done.found,
            dir.display()
        );
        return Err(Failure::Interrupted { signal, what });
    }
    let results = done.results(e, folder.completed().map_err(failure)?);
    if done.finished() {
        folder.finish(&results).map_err(failure)?;
    }
    Ok(results)
}

/// Returns the full form for the comparison with a quick run, if it exists.
fn full(a: &Reproduce, p: &Publication) -> Option<Vec<Cell>> {
    let e = p.runs(false, a.repeats).ok()?;
    let dir = a.results.join(&e.about.name);
    let folder = Folder::open(&dir).ok()?;
    let whole = folder.is_finished() && folder.differs(&e).is_none();
    let results = read(&dir).ok().filter(|_| whole)?;
    Some(p.reproduction(&results, false).cells)
}

/// Stores the results of the full form in the project's directory.
fn keep(a: &Reproduce, p: &Publication, r: &Reproduction) -> Result<(), Failure> {
    let path = a.results.join(format!("{}-full.jsonl", p.name));
    // A changed model gives other results for the same runs, so the old file is removed.
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(bad(format!("{}: {e}", path.display())));
        }
        _ => {}
    }
    let mut kept = Kept::open(&path).map_err(bad)?;
    for line in lines(p, r).map_err(bad)? {
        kept.add(line).map_err(bad)?;
    }
    Ok(())
}
