//! `seekwell reproduce`: repeats published comparisons in simulation.

mod brief;
mod guard;
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
use seekwell_evidence::reproduce::full::carried;
use seekwell_evidence::reproduce::{
    Publication, Reproduced, Reproduction, Seconds, asked, by_second, failures, find, full_run,
    joined, keep, systems,
};
use seekwell_host::stop::signal;
use seekwell_lab::conduct::{How, Simulated, conduct};
use seekwell_lab::experiment::Experiment;
use seekwell_lab::results::{Folder, Results};
use seekwell_report::compare::first::LINES;
use serde_json::json;
use std::path::Path;

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
            keep(&a.results, p, &ours).map_err(bad)?;
        }
        failed.extend(why);
        let full = a
            .quick
            .then(|| full_run(&a.results, p, a.repeats).or_else(|| carried(p)));
        shown.push(Reproduced::new(p, ours, full.flatten(), seconds(a, p)?));
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

/// Returns the values per second of a run, if the publication shows them and all runs exist.
fn seconds(a: &Reproduce, p: &Publication) -> Result<Vec<Seconds>, Failure> {
    if p.by_second.is_none() || !a.from.is_empty() {
        return Ok(Vec::new());
    }
    let e = p.runs(a.quick, a.repeats).map_err(bad)?;
    by_second(&a.results.join(&e.about.name), p).map_err(failure)
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
        let results = joined(&a.from).map_err(failure)?;
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
