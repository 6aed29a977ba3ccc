//! `seekwell report RESULTS` and `seekwell recommend RESULTS`: what an experiment says, as a page
//! and in a few words.

use super::results::failure;
use crate::cells::cancelling;
use crate::cli::{Recommend, Report};
use crate::fail::Failure;
use crate::out::{Out, note, width};
use seekwell::Cancel;
use seekwell_host::stop::signal;
use seekwell_lab::analysis::{Analysis, analyse};
use seekwell_lab::detail::{Detail, of_folder};
use seekwell_lab::results::{Environment, Results, State, environment, look, read};
use seekwell_lab::scenes::{self, Scenes};
use seekwell_report::advice::{Advice, advice};
use seekwell_report::page::{Closer, Facts, page};
use seekwell_report::table::wrap;
use serde_json::json;
use std::path::{Path, PathBuf};

fn analysed(folder: &Path) -> Result<(Results, Analysis), Failure> {
    let results = read(folder).map_err(|e| Failure::input(e.to_string()))?;
    let analysis = analyse(&results);
    if analysis
        .cells
        .iter()
        .all(|c| c.sides.iter().all(|s| s.mean.is_none()))
    {
        let what = format!(
            "{}: no run gave a value, so there is nothing to report",
            folder.display()
        );
        return Err(Failure::input(what));
    }
    Ok((results, analysis))
}

/// What it ran on, without paths and names of hosts.
fn facts(environment: &Environment) -> Facts {
    let mut facts = Facts::default();
    if let Some(last) = environment.sittings.last() {
        facts.seekwell = format!("{} ({})", last.seekwell, last.build);
    }
    for h in &environment.hosts {
        facts
            .environment
            .push(("kernel".to_owned(), h.kernel.clone()));
        facts.environment.push((
            "processor".to_owned(),
            format!("{}, {} cores", h.cpu, h.cores),
        ));
        if !h.fs.is_empty() {
            let text = format!("{} ({})", h.fs, h.mount_options);
            facts.environment.push(("file system".to_owned(), text));
        }
    }
    facts
}

/// The page's name where none was given: beside the folder, with its name.
fn beside(folder: &Path) -> PathBuf {
    let name = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    name.with_extension("html")
}

/// What is shown of a complete folder when somebody looks closer: percentiles and series, and
/// windows of events of runs that are made again for it.
fn closer(
    a: &Report,
    results: &Results,
    analysis: &Analysis,
    quiet: bool,
) -> Result<(Vec<Detail>, Scenes), Failure> {
    let dir = &a.results;
    let mut none = (Vec::new(), Scenes::default());
    if look(dir).state != State::Complete {
        let what = "the experiment goes on: the page has no percentiles, series and events yet";
        none.1.notes.push(what.to_owned());
        return Ok(none);
    }
    let details = of_folder(dir, results).map_err(failure)?;
    if a.no_events {
        return Ok((details, none.1));
    }
    let span = a.events.and_then(|w| Some((w.from.0, w.length?.0)));
    let asked = scenes::Asked {
        span_ns: span,
        ..scenes::Asked::default()
    };
    let choices = scenes::choose(dir, results, analysis, &asked).map_err(failure)?;
    if choices.is_empty() {
        return Ok((details, none.1));
    }
    let runs = choices
        .iter()
        .map(|c| results.cells[c.cell].treatments.len());
    note(
        quiet,
        &format!(
            "{} runs are made again for the replay (--no-events: none)",
            runs.sum::<usize>()
        ),
    );
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = a.threads.map_or(cores, |n| n as usize);
    let cancel = Cancel::new();
    let made = cancelling(&cancel, || {
        scenes::make(dir, results, &choices, threads, &cancel)
    })?;
    if let Some(signal) = signal() {
        let what = "stopped by a signal: no page was written".to_owned();
        return Err(Failure::Interrupted { signal, what });
    }
    Ok((details, made.map_err(failure)?))
}

/// Writes the page.
pub fn report(a: &Report, quiet: bool) -> Result<(), Failure> {
    let output = a
        .output
        .output
        .clone()
        .unwrap_or_else(|| beside(&a.results));
    Out::check(Some(&output))?;
    let (results, analysis) = analysed(&a.results)?;
    let environment = environment(&a.results).map_err(|e| Failure::input(e.to_string()))?;
    let mut facts = facts(&environment);
    if !results.about.name.is_empty() && results.about.source == "experiment" {
        facts.again = "seekwell compare experiment.toml".to_owned();
    }
    let (details, scenes) = closer(a, &results, &analysis, quiet)?;
    scenes.notes.iter().for_each(|n| note(quiet, n));
    let looked = Closer {
        details: &details,
        scenes: &scenes.scenes,
        notes: &scenes.notes,
    };
    let html = page(&results, &analysis, &facts, &looked)
        .map_err(|e| Failure::input(format!("the page cannot be made: {e}; please report it")))?;
    let mut out = Out::open(Some(&output))?;
    out.bytes(html.as_bytes())?;
    out.done()?;
    if a.output.output.is_none() {
        note(
            quiet,
            &format!("{}: open it in a browser", output.display()),
        );
    }
    Ok(())
}

/// Tells what to set.
pub fn recommend(a: &Recommend) -> Result<(), Failure> {
    let (_, analysis) = analysed(&a.results)?;
    let all: Vec<Advice> = analysis
        .groups
        .iter()
        .map(|g| advice(&analysis, g))
        .collect();
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        out.json(&json!({ "recommendations": all }))?;
        return out.done();
    }
    for (i, advice) in all.iter().enumerate() {
        let place = match advice.machine.as_str() {
            "" => advice.device.clone(),
            machine => format!("{}, {machine}", advice.device),
        };
        let gap = if i > 0 { "\n" } else { "" };
        out.line(&format!("{gap}{place}: {}", advice.headline))?;
        let cost = [&advice.evidence, &advice.cost];
        for text in cost.into_iter().filter(|t| !t.is_empty()) {
            out.text(&wrap(text, 2, width()))?;
        }
        for text in &advice.left_out {
            out.text(&wrap(&format!("Left out: {text}."), 2, width()))?;
        }
    }
    out.done()
}
