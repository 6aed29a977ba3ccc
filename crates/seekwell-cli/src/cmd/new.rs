//! `seekwell new`: creates an experiment file, prints its JSON Schema, or adds a template to the
//! source tree.

use crate::cli::New;
use crate::fail::Failure;
use crate::out::{Out, note};
use seekwell_lab::experiment::{Experiment, Start, schema, template};
use std::path::Path;

/// Writes a commented experiment file. The file is first parsed as `compare` parses it.
pub fn run(a: &New, quiet: bool) -> Result<(), Failure> {
    if let Some(begin) = &a.begin {
        return super::new_part::run(begin, quiet);
    }
    let output = a.output.output.as_deref();
    Out::check(output)?;
    if a.schema {
        let mut out = Out::open(output)?;
        out.json(&schema())?;
        return out.done();
    }
    let file = output.filter(|p| *p != Path::new("-"));
    // A file is never overwritten, because the user may have changed it.
    if let Some(file) = file.filter(|f| f.is_file()) {
        let what = format!(
            "{}: exists already; name another file, or remove this file",
            file.display()
        );
        return Err(Failure::input(what));
    }
    let usual = Start::default();
    let or = |given: Vec<String>, usual: Vec<String>| if given.is_empty() { usual } else { given };
    let stem = file
        .and_then(|f| f.file_stem())
        .map(|s| s.to_string_lossy());
    let start = Start {
        name: stem.map_or(usual.name, |s| s.into_owned()),
        devices: or(a.device.clone(), usual.devices),
        schedulers: or(listed(a.schedulers.as_deref()), usual.schedulers),
        workloads: or(a.workload.clone(), usual.workloads),
    };
    let text = template(&start);
    // Paths in the file are relative to its folder.
    let dir = file.and_then(Path::parent).unwrap_or(Path::new(""));
    let experiment = Experiment::from_toml(&text, dir).map_err(|faults| {
        let each = faults.0.iter().map(|f| f.what.clone()).collect::<Vec<_>>();
        Failure::input(each.join("\n"))
    })?;
    let mut out = Out::open(output)?;
    out.text(&text)?;
    out.done()?;
    if let Some(file) = file {
        let (cells, schedulers) = (experiment.cells.len(), experiment.treatments.len());
        note(
            quiet,
            &format!(
                "{}: {cells} cells x {schedulers} schedulers; run it: seekwell compare {0}",
                file.display()
            ),
        );
    }
    Ok(())
}

/// Returns the parts of a list that is separated by commas.
fn listed(list: Option<&str>) -> Vec<String> {
    let parts = list.unwrap_or_default().split(',').map(str::trim);
    parts.filter(|p| !p.is_empty()).map(str::to_owned).collect()
}
