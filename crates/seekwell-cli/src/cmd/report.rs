//! `seekwell report RESULTS`: reports an experiment as an HTML page, as Markdown or on the
//! terminal.

use super::import::options;
use super::results::failure;
use super::trace;
use crate::cells::cancelling;
use crate::cli::{Bench, EventArgs, Foreign, Report};
use crate::fail::Failure;
use crate::lab::{Lab, Place};
use crate::out::{Out, columns, note};
use seekwell::Cancel;
use seekwell_host::stop::signal;
use seekwell_lab::analysis::{Analysis, analyse};
use seekwell_lab::detail::{Detail, of_folder};
use seekwell_lab::import::{Input, import};
use seekwell_lab::results::{Environment, Joined, Results, State, environment, join, look, read};
use seekwell_lab::scenes::{self, Scenes};
use seekwell_lab::trial::{Timeline, timeline};
use seekwell_report::advice;
use seekwell_report::page::{Closer, Facts, page};
use seekwell_report::plain;
use seekwell_report::story;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Loads a results folder with its environment, or a file of another program.
pub fn results_of(path: &Path) -> Result<(Results, Option<Environment>), Failure> {
    let bad = |e: String| Failure::input(e);
    if path.is_dir() {
        let results = read(path).map_err(|e| bad(e.to_string()))?;
        let environment = environment(path).map_err(|e| bad(e.to_string()))?;
        return Ok((results, Some(environment)));
    }
    let input = Input::read(path).map_err(|e| bad(e.to_string()))?;
    let results = import(&[input], &options(&Foreign::default())?);
    Ok((results.map_err(|e| bad(e.to_string()))?, None))
}

/// Returns an error if the results contain no value.
pub fn something(path: &Path, analysis: &Analysis) -> Result<(), Failure> {
    let empty = |c: &seekwell_lab::analysis::CellAnalysis| c.sides.iter().all(|s| s.mean.is_none());
    match analysis.cells.iter().all(empty) {
        true => Err(Failure::input(format!(
            "{}: no run has a value, so there is nothing to report",
            path.display()
        ))),
        false => Ok(()),
    }
}

/// Returns the environment without paths and host names.
fn facts(environment: &Environment) -> Facts {
    let mut facts = Facts::default();
    if let Some(last) = environment.sessions.last() {
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

/// Returns the default path of the page: next to the folder, with the folder's name.
fn default_path(folder: &Path) -> PathBuf {
    let name = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    name.with_extension("html")
}

/// Options for the details of the page.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The results folder.
    pub dir: &'a Path,
    /// Time window of the events; `None` means around the longest operation.
    pub events: Option<seekwell::Window>,
    /// Whether to omit the events, so that no run is repeated.
    pub no_events: bool,
    /// Maximum number of parallel runs; `None` means one per core.
    pub threads: Option<u32>,
}

/// The details of a folder.
#[derive(Default)]
struct Close {
    details: Vec<Detail>,
    scenes: Scenes,
    timeline: Option<Timeline>,
}

/// Returns the details of a complete folder: percentiles, series, and windows of events. Some runs
/// are repeated to record their events.
fn closer(
    a: &Look<'_>,
    results: &Results,
    analysis: &Analysis,
    quiet: bool,
) -> Result<Close, Failure> {
    let dir = a.dir;
    let mut close = Close::default();
    if look(dir).state != State::Complete {
        let what = "the experiment is not complete: the page has no percentiles, series and events";
        close.scenes.notes.push(what.to_owned());
        return Ok(close);
    }
    close.details = of_folder(dir, results).map_err(failure)?;
    close.timeline = timeline(dir, results).map_err(failure)?;
    if a.no_events {
        return Ok(close);
    }
    let length = |w: &seekwell::Window| w.length.map_or(scenes::LENGTH_NS, |l| l.0);
    let span = a.events.map(|w| (w.from.0, length(&w)));
    let asked = scenes::Asked {
        span_ns: span,
        ..scenes::Asked::default()
    };
    let choices = scenes::choose(dir, results, analysis, &asked).map_err(failure)?;
    if choices.is_empty() {
        return Ok(close);
    }
    let runs = choices
        .iter()
        .map(|c| results.cells[c.cell].treatments.len());
    note(
        quiet,
        &format!(
            "repeating {} runs to record their events (--no-events omits this)",
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
    close.scenes = made.map_err(failure)?;
    Ok(close)
}

/// Writes the page of results to a file. If there is a results folder, the page has details.
pub fn write_page(
    to: &Path,
    results: &Results,
    analysis: &Analysis,
    facts: &Facts,
    look: Option<&Look<'_>>,
    quiet: bool,
) -> Result<(), Failure> {
    let close = match look {
        Some(look) => closer(look, results, analysis, quiet)?,
        None => Close::default(),
    };
    written(to, results, analysis, facts, &close, quiet)
}

/// Writes the page with the collected details.
fn written(
    to: &Path,
    results: &Results,
    analysis: &Analysis,
    facts: &Facts,
    close: &Close,
    quiet: bool,
) -> Result<(), Failure> {
    close.scenes.notes.iter().for_each(|n| note(quiet, n));
    let looked = Closer {
        details: &close.details,
        scenes: &close.scenes.scenes,
        notes: &close.scenes.notes,
        timeline: close.timeline.as_ref(),
    };
    let html = page(results, analysis, facts, &looked).map_err(|e| {
        Failure::input(format!(
            "the page cannot be created: {e}; please report this error"
        ))
    })?;
    let mut out = Out::open(Some(to))?;
    out.bytes(html.as_bytes())?;
    out.done()
}

/// Writes the page of a command's runs to the requested file.
pub fn page_of(
    a: &EventArgs,
    b: &Bench,
    lab: &Lab,
    ran: &Place,
    quiet: bool,
) -> Result<(), Failure> {
    let Some(to) = &a.report else {
        return Ok(());
    };
    let dir = ran.dir();
    let look = dir.as_deref().map(|dir| Look {
        dir,
        events: a.window,
        no_events: false,
        threads: b.threads,
    });
    let facts = Facts::default();
    write_page(
        to,
        &lab.results,
        &lab.analysis,
        &facts,
        look.as_ref(),
        quiet,
    )
}

/// Writes a page with one picture to the file.
pub fn page_of_picture(to: &Path, p: &plain::Plain) -> Result<(), Failure> {
    let html = plain::page(p);
    let html = html.map_err(|e| Failure::input(format!("the page cannot be created: {e}")))?;
    let mut out = Out::open(Some(to))?;
    out.bytes(html.as_bytes())?;
    out.done()
}

/// Results with their path.
struct One<'a> {
    path: &'a Path,
    name: String,
    results: Results,
    environment: Option<Environment>,
}

/// Returns all results for the page.
fn all_of(a: &Report) -> Result<Vec<One<'_>>, Failure> {
    let mut all = Vec::new();
    for path in std::iter::once(&a.results).chain(&a.more) {
        let (results, environment) = results_of(path)?;
        let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
        let name = whole.file_name().unwrap_or(path.as_os_str());
        all.push(One {
            path,
            name: name.to_string_lossy().into_owned(),
            results,
            environment,
        });
    }
    Ok(all)
}

/// Changes the indices in the details and scenes of one result to those in the joined results.
fn moved(joined: &Joined, n: usize, details: &mut [Detail], scenes: &mut Scenes) {
    let (cells, treatments) = (&joined.cells[n], &joined.treatments[n]);
    for side in details.iter_mut().flat_map(|d| &mut d.sides) {
        side.treatment = treatments[side.treatment];
    }
    for scene in &mut scenes.scenes {
        scene.cell = cells[scene.cell];
        for lane in &mut scene.lanes {
            lane.treatment = treatments[lane.treatment];
        }
    }
}

/// Writes the page, or prints the report.
pub fn report(a: &Report, quiet: bool) -> Result<(), Failure> {
    if !a.results.is_dir() && trace::is_one(&a.results, a)? {
        return trace::run(a, quiet);
    }
    let to = a.output.output.as_deref();
    let ending = to.and_then(|p| p.extension()).and_then(|e| e.to_str());
    let markdown = a.markdown || ending == Some("md");
    let own = match (to, markdown || a.json || a.details) {
        (Some(to), _) => Some(to.to_owned()),
        (None, true) => None,
        (None, false) => Some(default_path(&a.results)),
    };
    Out::check(own.as_deref())?;
    let all = all_of(a)?;
    let environment = all.iter().find_map(|o| o.environment.as_ref());
    let own_results = all.iter().map(|o| (o.name.clone(), o.results.clone()));
    let joined = join(own_results.collect()).map_err(Failure::input)?;
    let results = &joined.results;
    let analysis = analyse(results);
    something(&a.results, &analysis)?;
    if markdown || a.json || a.details {
        let mut out = Out::open(own.as_deref())?;
        if a.json {
            let advice = advice::all(results, &analysis);
            out.json(&json!({
                "schema": 1, "command": "report", "about": results.about,
                "recommendations": advice, "analysis": analysis,
            }))?;
        } else if markdown {
            out.bytes(story::markdown(results, &analysis).as_bytes())?;
        } else {
            out.text(&story::text(results, &analysis, columns()))?;
        }
        return out.done();
    }
    let mut facts = environment.map_or_else(Facts::default, facts);
    if !results.about.name.is_empty() && results.about.source == "experiment" {
        facts.again = "seekwell compare experiment.toml".to_owned();
    }
    let own = own.unwrap_or_else(|| default_path(&a.results));
    let mut close = Close::default();
    for (n, one) in all.iter().enumerate().filter(|(_, o)| o.path.is_dir()) {
        let look = Look {
            dir: one.path,
            events: a.events,
            no_events: a.no_events,
            threads: a.threads,
        };
        let alone = analyse(&one.results);
        let mut more = closer(&look, &one.results, &alone, quiet)?;
        moved(&joined, n, &mut more.details, &mut more.scenes);
        close.details.resize(
            joined.cells[n].first().copied().unwrap_or(0),
            Detail::default(),
        );
        close.details.extend(more.details);
        close.scenes.scenes.extend(more.scenes.scenes);
        close.scenes.notes.extend(more.scenes.notes);
        close.timeline = close.timeline.or(more.timeline);
    }
    written(&own, results, &analysis, &facts, &close, quiet)?;
    if to.is_none() {
        note(quiet, &format!("{}: open it in a browser", own.display()));
    }
    Ok(())
}
