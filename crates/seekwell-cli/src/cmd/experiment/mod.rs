//! `seekwell compare FILE.toml`: prints the plan of an experiment, runs it, stores the results in a
//! folder, and prints the verdicts.

mod screen;

use super::guest::substrate;
use super::predict::scored::Compared;
use super::report::{Look, write_page};
use super::results::failure;
use super::switch::show::quoted;
use crate::cells::cancelling;
use crate::cli::Compare;
use crate::fail::Failure;
use crate::guests::{Guests, is_asked};
use crate::lab::Collect;
use crate::out::{Out, note, width};
use crate::progress::Progress;
use crate::setups;
use seekwell::{Cancel, Substrate};
use seekwell_core::prose::in_prose;
use seekwell_host::block::Tree;
use seekwell_host::left::{About, Note, Notes};
use seekwell_host::stop::signal;
use seekwell_lab::analysis::{Analysis, CellAnalysis, analyse, percent};
use seekwell_lab::conduct::{
    Conducted, How, PlannedWarmUp, Runner, Simulated, Trial, conduct, plan, trial,
};
use seekwell_lab::experiment::Experiment;
use seekwell_lab::results::{EXPERIMENT_TEXT, Folder, Outcome, Run};
use seekwell_lab::trial::SOURCE;
use seekwell_report::page::Facts;
use seekwell_report::table::wrap;
use seekwell_report::throttle;
use serde_json::json;
use std::borrow::Cow;
use std::cell::RefCell;
use std::path::Path;

fn bad(e: impl std::fmt::Display) -> Failure {
    Failure::input(e.to_string())
}

fn read(file: &Path) -> Result<Experiment, Failure> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|e| {
        let why = match e.kind() {
            std::io::ErrorKind::InvalidData => "is not text".to_owned(),
            _ => e.to_string(),
        };
        bad(format!(
            "{name}: {why}; name an experiment file (`seekwell new` writes an example)"
        ))
    })?;
    let dir = file.parent().filter(|p| !p.as_os_str().is_empty());
    Experiment::from_toml(&text, dir.unwrap_or(Path::new("."))).map_err(|faults| {
        let lines: Vec<String> = faults.0.iter().map(|f| format!("{name}: {f}")).collect();
        Failure::Input(lines.join("\n"))
    })
}

/// Returns the name with only those characters that are valid on any file system.
fn folder_name(name: &str) -> String {
    let good = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let name: String = name
        .chars()
        .map(|c| if good(c) { c } else { '-' })
        .collect();
    match name.trim_matches(['.', '-']) {
        "" => "experiment".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns the folder for the results: the requested folder, created or resumed. By default, it is
/// the first of results/NAME, results/NAME-2, ... that is free or contains this same experiment,
/// interrupted. An experiment that cannot be resumed always gets a new folder.
fn folder(a: &Compare, steps: &Steps<'_>, e: &Experiment) -> Result<Folder, Failure> {
    let there = |p: &Path| p.symlink_metadata().is_ok();
    if let Some(dir) = &a.bench.results {
        return match there(dir) && steps.resumable {
            true => Folder::resume(dir, e).map_err(failure),
            false => Folder::create(dir, e).map_err(failure),
        };
    }
    let file = steps.file.unwrap_or(Path::new(""));
    let all = file.parent().unwrap_or(Path::new("")).join("results");
    let failed = |source| Failure::Output {
        what: format!("{}: cannot be created", all.display()),
        source,
    };
    std::fs::create_dir_all(&all).map_err(failed)?;
    let name = folder_name(&e.about.name);
    let names = std::iter::once(name.clone()).chain((2..10_000).map(|i| format!("{name}-{i}")));
    for dir in names.map(|n| all.join(n)) {
        if !there(&dir) {
            return Folder::create(&dir, e).map_err(failure);
        }
        // A complete folder, or the folder of another experiment, is not changed.
        if steps.resumable
            && let Ok(folder) = Folder::resume(&dir, e)
        {
            return Ok(folder);
        }
    }
    Err(bad(format!(
        "{}: all names for results folders are taken; name a folder with --results",
        all.display()
    )))
}

/// Formats a time, for example "40 s", "12 min", "3.5 h".
fn duration(s: f64) -> String {
    match s {
        s if s < 90.0 => format!("{:.0} s", s.max(1.0)),
        s if s < 5_400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

/// Formats a count with its noun, for example "1 cell", "2 cells".
fn many(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

/// Names the references, each with its devices if there are several references.
fn references(e: &Experiment) -> String {
    let mut all: Vec<(usize, Vec<&str>)> = Vec::new();
    for c in &e.cells {
        let device = c.cell.device.as_str();
        match all.iter_mut().find(|r| r.0 == c.cell.reference) {
            Some(r) if r.1.contains(&device) => {}
            Some(r) => r.1.push(device),
            None => all.push((c.cell.reference, vec![device])),
        }
    }
    let label = |t: usize| in_prose(e.treatments.get(t).map_or("?", |t| t.label.as_str()));
    let each: Vec<String> = match &all[..] {
        [(one, _)] => vec![label(*one)],
        several => several
            .iter()
            .map(|(t, on)| format!("{} on {}", label(*t), on.join(", ")))
            .collect(),
    };
    format!("reference for the comparisons: {}", each.join("; "))
}

/// Formats a range of times, for example "40 s" or "40 s to 2 min".
fn range(least_s: f64, most_s: f64) -> String {
    match (duration(least_s), duration(most_s)) {
        (least, most) if least == most => most,
        (least, most) => format!("{least} to {most}"),
    }
}

/// Returns the plan, one statement per line. `block` contains the estimated time of a block.
pub fn planned(e: &Experiment, block: Trial, threads: usize) -> Vec<String> {
    let p = plan(e);
    let (least, most) = (p.blocks_min, p.blocks_max);
    let name = match e.about.name.as_str() {
        "" => "experiment",
        name => name,
    };
    let blocks = match least == most {
        true if most == 1 => "1 block".to_owned(),
        true => format!("{most} blocks"),
        false => format!("{least} to {most} blocks"),
    };
    let (fewest, all) = (
        p.runs_a_block as u64 * u64::from(least),
        p.runs_a_block as u64 * u64::from(most),
    );
    let runs = match fewest == all {
        true => all.to_string(),
        false => format!("{fewest} to {all}"),
    };
    let mut lines = vec![format!(
        "{name}: {} x {} = {} per block, {blocks}: {runs} runs (3 blocks for tests without \
         randomness)",
        many(p.cells, "cell"),
        many(e.treatments.len(), "scheduler"),
        many(p.runs_a_block, "run"),
    )];
    let of = |block_s: f64, blocks: u32| block_s * f64::from(blocks) / threads as f64;
    if let Some(block_s) = block.about_s {
        let took = range(of(block_s, least), of(block_s, most));
        let budget = e.about.method.budget_s;
        let budget = budget.map_or(String::new(), |b| {
            format!(", and no new block after {}", duration(b as f64))
        });
        let threads = match threads {
            1 => "one run at a time".to_owned(),
            n => format!("on {n} threads"),
        };
        lines.push(format!(
            "about {took} {threads}, estimated from short trials{budget}"
        ));
    }
    if let Some(block_s) = block.most_s {
        let at_most = of(block_s, most);
        // This line is only for runs whose limit is far beyond their usual time.
        if block
            .about_s
            .is_none_or(|about| at_most > 2.0 * of(about, most))
        {
            lines.push(format!(
                "up to {} if schedulers starve the workload, because a starved run continues until \
                 its limit of simulated time",
                duration(at_most)
            ));
        }
    }
    if p.comparisons > 0 {
        lines.push(references(e));
    }
    lines.extend(warm_up(&p.warm_up));
    let seen: Vec<String> = p
        .visible
        .iter()
        .map(|(d, x)| format!("{} on {d}", percent(*x)))
        .collect();
    if p.comparisons > 0 && !seen.is_empty() {
        lines.push(format!(
            "after {most} blocks, the experiment detects effects of {} with a probability of 80 % \
             (corrected for {}; assumes that runs vary as much as published runs of their class)",
            seen.join(", "),
            many(p.comparisons, "comparison")
        ));
    }
    lines
}

/// Describes the warm-up of timed runs, if there is any.
fn warm_up(w: &PlannedWarmUp) -> Vec<String> {
    let timed = w.timed.join(", ");
    let mut lines = Vec::new();
    match w.seconds {
        Some(s) if s > 0.0 && w.timed.is_empty() => lines.push(
            "the warm-up in the file has no effect, because no workload here runs for a given \
             time"
                .to_owned(),
        ),
        Some(s) if s > 0.0 => lines.push(format!(
            "warm-up: the first {} s of every run are left out ({timed})",
            s.ceil()
        )),
        None if !w.timed.is_empty() => lines.push(format!(
            "warm-up: found from the first block of each cell, and removed from all runs of the \
             cell ({timed})"
        )),
        _ => {}
    }
    if !w.whole.is_empty() && w.seconds != Some(0.0) {
        let whole = w.whole.join(", ");
        lines.push(format!(
            "no warm-up is removed from {whole}, because the deciding metric has no value per \
             second (a percentile)"
        ));
    }
    lines
}

/// Options for running and reporting an experiment.
pub struct Steps<'a> {
    /// The experiment file; `None` if the experiment comes from the command line.
    pub file: Option<&'a Path>,
    /// Maximum number of parallel runs.
    pub threads: usize,
    /// Where the runs take place.
    pub substrate: Substrate,
    /// The note that `host restore` reads after a power cut.
    pub noted: Option<&'a Noted<'a>>,
    /// Simulates the same experiment. It is called with the analysis before the report.
    pub twin: Option<&'a Beside<'a>>,
    /// True if the missing runs can be made later.
    pub resumable: bool,
    /// Called after the last run, before anything is printed.
    pub after: Option<&'a dyn Fn()>,
}

/// The note on disk about an experiment whose programs write on this machine.
pub struct Noted<'a> {
    /// The contents of the note.
    pub about: &'a About,
    /// The open note.
    pub note: &'a RefCell<Note>,
}

/// A function that simulates the same experiment, if this is requested.
pub type Beside<'a> = dyn Fn(&Analysis) -> Result<Option<Compared>, Failure> + 'a;

/// Runs the experiment and prints the results.
pub fn run(a: &Compare, file: &Path, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    Out::check(output)?;
    Out::apart(output, [file])?;
    Out::check(a.events.report.as_deref())?;
    Out::apart(a.events.report.as_deref(), [file].into_iter().chain(output))?;
    let text = std::fs::read_to_string(file);
    if let Ok(text) = text.as_ref().map(String::as_str)
        && seekwell_lab::host::file::is_host(text)
    {
        return super::onhost::from_file(a, text, file, quiet);
    }
    if a.with_sim.is_some() {
        return Err(bad(format!(
            "--with-sim: {} is a simulation already; the option needs an experiment on this \
             machine (a table [host], or --host)",
            file.display()
        )));
    }
    let e = read(file)?;
    if is_asked(&a.bench) {
        return in_guest_kernels(a, substrate::of_file(e)?, Some(file), quiet);
    }
    if a.bench.kernel.is_some() {
        return Err(bad(
            "--kernel: the file names the kernel of the simulated machine; the option is for \
             --substrate kernel",
        ));
    }
    let threads = setups::threads(&a.bench);
    let runner = Simulated::default();
    if a.dry_run {
        let mut out = Out::open(output)?;
        for line in planned(&e, trial(&e, &runner), threads) {
            out.text(&wrap(&line, 2, width()))?;
        }
        return out.done();
    }
    if !quiet {
        planned(&e, trial(&e, &runner), threads)
            .iter()
            .for_each(|line| note(quiet, line));
    }
    let steps = Steps {
        file: Some(file),
        threads,
        substrate: Substrate::Sim,
        noted: None,
        twin: None,
        resumable: true,
        after: None,
    };
    conducted(a, Cow::Owned(e), &runner, &steps, quiet)
}

/// Runs the experiment of a command line in guests.
pub fn in_guests(a: &Compare, quiet: bool) -> Result<(), Failure> {
    Out::check(a.output.output.as_deref())?;
    if let Some(option) = [
        (a.plot.is_some(), "--plot"),
        (a.series, "--series"),
        (a.events.events.is_some(), "--events"),
    ]
    .iter()
    .find_map(|(given, name)| given.then_some(name))
    {
        return Err(bad(format!(
            "{option} needs the simulation: omit --substrate kernel"
        )));
    }
    in_guest_kernels(a, substrate::asked(a)?, None, quiet)
}

fn in_guest_kernels(
    a: &Compare,
    mut e: Experiment,
    file: Option<&Path>,
    quiet: bool,
) -> Result<(), Failure> {
    let runner = Guests::new(a.bench.kernel.as_deref())?;
    e.about.notes.push(runner.note());
    note(quiet, &runner.note());
    let steps = Steps {
        file,
        threads: setups::threads(&a.bench),
        substrate: Substrate::Kernel,
        noted: None,
        twin: None,
        resumable: true,
        after: None,
    };
    conducted(a, Cow::Owned(e), &runner, &steps, quiet)
}

/// Runs the runs that are missing, stores them, and prints the results. An owned experiment is
/// dropped after its runs, because its specifications need most of the memory.
pub fn conducted(
    a: &Compare,
    e: Cow<'_, Experiment>,
    runner: &dyn Runner,
    steps: &Steps<'_>,
    quiet: bool,
) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    let mut folder = folder(a, steps, &e)?;
    let dir = folder.path().to_owned();
    note(quiet, &format!("results: {}", dir.display()));
    folder.notes().iter().for_each(|n| note(quiet, n));
    let stored = dir.join(EXPERIMENT_TEXT);
    let file = steps.file.unwrap_or(&stored);
    if let Some(n) = steps.noted {
        noted(&e, n, file, &dir, quiet);
    }
    let (done, runs) = carried_out(a, &e, &mut folder, runner, steps.threads, quiet)?;
    if let Some(after) = steps.after {
        after();
    }
    let results = done.results(&e, runs);
    drop(e);
    if done.finished() {
        folder.finish(&results).map_err(failure)?;
    }
    drop(folder);
    let analysis = analyse(&results);
    if let Some(to) = &a.events.report {
        let look = Look {
            dir: &dir,
            events: a.events.window,
            no_events: false,
            threads: a.bench.threads,
        };
        write_page(
            to,
            &results,
            &analysis,
            &Facts::default(),
            Some(&look),
            quiet,
        )?;
    }
    let twin = match steps.twin {
        Some(beside) if !done.cancelled => beside(&analysis)?,
        _ => None,
    };
    let mut out = Out::open(output)?;
    if a.json {
        let command = match results.about.source == SOURCE {
            true => "trial",
            false => "compare",
        };
        let mut doc = json!({
            "schema": 1, "command": command, "experiment": results.about.name,
            "finished": done.finished(), "failed": done.failed, "notes": results.about.notes,
            "throttling": throttle::line(&results), "analysis": analysis,
        });
        if let Some(twin) = &twin {
            doc["simulation"] = twin.json();
        }
        out.json(&doc)?;
    } else {
        let kernels = results
            .about
            .notes
            .iter()
            .filter(|n| n.starts_with("Kernel "));
        let kernels: String = kernels.map(|n| wrap(n, 0, width())).collect();
        let depends = kernels + &throttle::lines(&results, width());
        screen::text(&mut out, a, &analysis, &done, (steps, &depends))?;
        if let Some(twin) = &twin {
            out.line("")?;
            out.text(&twin.text(width()))?;
        }
        out.prose(&format!("Results: {}", dir.display()))?;
    }
    out.done()?;
    let again = match steps.resumable {
        true => format!(
            "to resume: seekwell compare {} --results {}",
            file.display(),
            dir.display()
        ),
        false => "the complete periods are shown".to_owned(),
    };
    outcome(&done, &results.runs, &again)?;
    empty(&analysis, &results.runs)
}

/// Adds the results folder and the command that resumes the experiment to the note.
fn noted(e: &Experiment, note: &Noted<'_>, file: &Path, results: &Path, quiet: bool) {
    let whole = |p: &Path| std::path::absolute(p).unwrap_or_else(|_| p.to_owned());
    let (file, results) = (whole(file), whole(results));
    let word = |p: &Path| quoted(&p.display().to_string());
    let about = About {
        experiment: e.about.name.clone(),
        again: format!("compare {} --results {}", word(&file), word(&results)),
        results,
        ..note.about.clone()
    };
    let tree = Tree::default();
    let changed = Notes::new(&tree).change(&tree, &mut note.note.borrow_mut(), &about);
    if let Err(e) = changed {
        self::note(
            quiet,
            &format!("cannot write the record for `host restore`: {e}"),
        );
    }
}

/// Runs the runs that are missing in the folder.
fn carried_out(
    a: &Compare,
    e: &Experiment,
    folder: &mut Folder,
    runner: &dyn Runner,
    threads: usize,
    quiet: bool,
) -> Result<(Conducted, Vec<Run>), Failure> {
    let mut e = Cow::Borrowed(e);
    if let Some(s) = a.budget {
        e.to_mut().about.method.budget_s = Some(s as u64);
    }
    let progress = Progress::new(quiet, "runs", 0, e.cells.len());
    let told = Collect::new(&progress, 1, 0);
    let cancel = Cancel::new();
    let how = How {
        threads: Some(threads),
        cancel: cancel.clone(),
        told: &told,
    };
    let done = cancelling(&cancel, || conduct(&e, runner, folder, &how))?;
    let done = done.map_err(|e| Failure::NotKept(e.to_string()))?;
    Ok((done, folder.completed().map_err(failure)?))
}

/// Returns an error if a test has no value although its runs ended. The error contains the reason.
fn empty(analysis: &Analysis, runs: &[Run]) -> Result<(), Failure> {
    let none = |c: &CellAnalysis| c.sides.iter().all(|s| s.mean.is_none());
    let why = |cell: usize| {
        let mut of_cell = runs.iter().filter(|r| r.key.cell == cell);
        of_cell.find_map(|r| match &r.outcome {
            Outcome::Early(why) => Some(why.as_str()),
            _ => None,
        })
    };
    let cells = analysis.cells.iter().enumerate().filter(|(_, c)| none(c));
    let told: Vec<String> = cells
        .filter_map(|(i, c)| {
            Some(format!(
                "{} on {}: no run gave a value: {}",
                c.workload,
                c.device,
                why(i)?
            ))
        })
        .collect();
    match told.split_first() {
        None => Ok(()),
        Some((first, [])) => Err(Failure::Early(first.clone())),
        Some((first, rest)) => Err(Failure::Early(format!(
            "{first} (and {} more of {} tests)",
            rest.len(),
            analysis.cells.len()
        ))),
    }
}

/// Returns the outcome of the experiment, which determines the exit code.
fn outcome(done: &Conducted, runs: &[Run], again: &str) -> Result<(), Failure> {
    if let (true, Some(signal)) = (done.cancelled, signal()) {
        let kept = done.made + done.found;
        let what = format!("stopped by signal {signal}: {kept} runs are stored; {again}");
        return Err(Failure::Interrupted { signal, what });
    }
    let why = runs.iter().find_map(|r| match &r.outcome {
        Outcome::Failed(why) => Some(why.as_str()),
        _ => None,
    });
    if let Some(why) = why {
        let n = done.made + done.found;
        return Err(Failure::Early(format!(
            "{} of {n} runs failed; the others are shown: {why}",
            done.failed
        )));
    }
    if done.out_of_budget {
        return Err(Failure::Early(format!(
            "the budget ended before all comparisons were decided; {again}"
        )));
    }
    Ok(())
}
