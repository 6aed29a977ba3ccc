//! `seekwell export FOLDER`: writes results in another format.

use super::results::failure;
use crate::cli::Export;
use crate::fail::Failure;
use crate::out::{Out, note};
use seekwell_lab::results::export::{FORMATS, Format};
use seekwell_lab::results::{State, look, read};
use std::path::Path;

/// Returns the requested format, or the format that the name of the output file determines.
fn format(asked: Option<&str>, output: Option<&Path>) -> &'static Format {
    let ending = output.and_then(|o| o.extension()?.to_str());
    let name = asked.unwrap_or(match ending {
        Some("json") => "json",
        Some("md" | "markdown") => "markdown",
        Some("xml") => "pts",
        _ => "csv",
    });
    FORMATS
        .iter()
        .find(|f| f.name == name)
        .unwrap_or(&FORMATS[0])
}

/// Writes the results in the format.
pub fn run(a: &Export, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    let mut out = Out::open(output)?;
    let files: Vec<_> = std::fs::read_dir(&a.folder).into_iter().flatten().collect();
    let paths: Vec<_> = files
        .into_iter()
        .filter_map(|f| Some(f.ok()?.path()))
        .collect();
    Out::apart(output, paths.iter().map(AsRef::as_ref))?;
    let results = read(&a.folder).map_err(failure)?;
    let stands = look(&a.folder);
    if stands.state != State::Complete {
        let runs = results.runs.len();
        note(
            quiet,
            &format!("the experiment is not complete: {runs} runs so far"),
        );
    }
    let mut bytes = Vec::new();
    let written =
        format(a.format.as_deref(), output).write(&results, stands.date.as_deref(), &mut bytes);
    written.map_err(|source| Failure::Output {
        what: "the results cannot be written in that format".to_owned(),
        source,
    })?;
    out.bytes(&bytes)?;
    out.done()
}
