//! `seekwell report TRACE`: reports the contents of a recorded trace.

use crate::cells::{self, catching};
use crate::cli::Report;
use crate::fail::Failure;
use crate::out::{Out, columns, note};
use crate::progress::Progress;
use crate::traces::{CHOOSE, failed, reading};
use seekwell_host::stop::signal;
use seekwell_lab::import;
use seekwell_report::trace as report;
use seekwell_trace::survey::{Survey, survey};
use seekwell_trace::{ErrorKind, Intake, ReadOptions, Reader};
use serde_json::json;
use std::path::Path;

/// Returns whether the file is a trace, and not a file with results.
///
/// # Errors
///
/// The file is neither a trace nor a file that `import` reads. The message names the formats of
/// both.
pub fn is_one(path: &Path, a: &Report) -> Result<bool, Failure> {
    if path == Path::new("-") || a.input.format.is_some() || a.input.columns.is_some() {
        return Ok(true);
    }
    let e = match seekwell_trace::open(path, None, &ReadOptions::default()) {
        Err(e) if e.kind() == ErrorKind::UnknownFormat => e,
        _ => return Ok(true),
    };
    let Ok(input) = import::Input::read(path) else {
        // The importer reports the fault.
        return Ok(false);
    };
    match (import::detect(&input), import::averages_remedy(&input.text)) {
        (Err(what), Some(_)) => Err(Failure::input(what.to_string())),
        (Err(_), None) => {
            let results: Vec<_> = import::formats().iter().map(|f| f.name).collect();
            Err(Failure::input(format!(
                "{e}. The file is no result of another program either ({}); `seekwell import \
                 --list` describes these",
                results.join(", ")
            )))
        }
        (Ok(_), _) => Ok(false),
    }
}

/// Reads the trace and returns the survey, and the signal that stopped the reading, if any.
fn read(a: &Report, quiet: bool) -> Result<(Survey, Option<i32>), Failure> {
    let (format, mut read) = reading(&a.input)?;
    read.keep_events = true;
    let intake = Intake::new(&a.results, &read).map_err(failed)?;
    intake.one_volume(format, &read, CHOOSE).map_err(failed)?;
    let mut reader = intake.open(format, &read).map_err(failed)?;
    let progress = Progress::new(quiet, "traces", 1, 1);
    let (s, stopped) = catching(|| {
        let mut far = progress.task(0, "");
        let look = |r: &Reader| far.read_of(std::slice::from_ref(r));
        let s = survey(&mut reader, &read, a.input.limit, look).map_err(failed);
        s.map(|s| (s, far.refused().then(signal).flatten()))
    })??;
    drop(progress);
    if s.kinds.is_empty() {
        return Err(Failure::input(format!(
            "{}: the trace has no records",
            intake.name()
        )));
    }
    for w in &s.warnings {
        note(quiet, w);
    }
    Ok((s, stopped))
}

/// Reads the trace and prints or writes the report.
pub fn run(a: &Report, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    Out::check(output)?;
    Out::apart(output, [&*a.results])?;
    let (s, stopped) = read(a, quiet)?;
    let ending = output.and_then(|p| p.extension()).and_then(|e| e.to_str());
    let mut out = Out::open(output)?;
    if a.json {
        out.json(&json!({ "schema": 1, "command": "report", "trace": s }))?;
    } else if a.markdown || ending == Some("md") {
        out.bytes(report::markdown(&s).as_bytes())?;
    } else if matches!(ending, Some("html" | "htm")) {
        let page = report::page(&s);
        let page = page.map_err(|e| Failure::input(format!("the page cannot be created: {e}")))?;
        out.bytes(page.as_bytes())?;
    } else if a.details {
        out.text(&report::details(&s, columns()))?;
    } else {
        out.text(&report::screen(&s, columns()))?;
    }
    out.done()?;
    match stopped {
        None => Ok(()),
        Some(signal) => Err(cells::stopped(signal, "the records read so far are shown")),
    }
}
