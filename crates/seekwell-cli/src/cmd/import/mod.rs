//! `seekwell import FILE...`: reads results of other programs and tests their differences.

mod show;

use crate::cli::{Foreign, Import};
use crate::fail::Failure;
use crate::out::{Out, columns, note, width};
use seekwell_core::once::Once;
use seekwell_lab::analysis::analyse;
use seekwell_lab::import::{Input, Options, formats, import};
use seekwell_lab::results::Folder;
use seekwell_report::brief;
use seekwell_report::compare::first::LINES;
use seekwell_report::style::NAME;
use seekwell_report::table::{Align, Table, painted, wrap};
use serde_json::json;

/// Returns the options for reading the files.
///
/// # Errors
///
/// A name is mapped twice.
pub fn options(a: &Foreign) -> Result<Options, Failure> {
    let mut once = Once::default();
    for (name, new) in &a.map {
        let taken = once.take(name, &format!("{name}={new}"));
        taken.map_err(|what| Failure::input(format!("--map {name}={new}: {what}")))?;
    }
    Ok(Options {
        format: a.format.clone(),
        scheduler_from: a.scheduler_from.map(Into::into),
        renamed: a.map.clone(),
        columns: a.columns.clone(),
        device: a.device.clone(),
        ..Options::default()
    })
}

fn list(out: &mut Out) -> Result<(), Failure> {
    let mut t = Table::new(&[
        ("FORMAT", Align::Left),
        ("WHAT IT IS", Align::Left),
        ("GIVES", Align::Left),
        ("SCHEDULER, DEVICE, WORKLOAD", Align::Left),
    ]);
    for f in formats() {
        t.row(vec![
            painted(f.name, NAME),
            f.summary.into(),
            f.gives.into(),
            f.becomes.into(),
        ]);
    }
    out.text(&t.render_within(0, columns()))
}

/// Reads, analyses and prints the results.
pub fn run(a: &Import, quiet: bool) -> Result<(), Failure> {
    let mut out = Out::open(None)?;
    if a.list {
        match a.details {
            true => list(&mut out)?,
            false => {
                out.text(&brief::imports(formats(), width()))?;
                out.prose(
                    "\nWhich parts become device, scheduler and workload: --list --details.",
                )?;
            }
        }
        return out.done();
    }
    let failed = |e: seekwell_lab::import::ImportError| Failure::input(e.to_string());
    let mut inputs = Vec::new();
    for file in &a.files {
        inputs.push(Input::read(file).map_err(failed)?);
    }
    let options = Options {
        reference: a.reference.clone(),
        margin: Some(a.margin),
        ..options(&a.foreign)?
    };
    let results = import(&inputs, &options).map_err(failed)?;
    if let Some(folder) = &a.output {
        Folder::store(folder, &results).map_err(super::results::failure)?;
    }
    let analysis = analyse(&results);
    if a.json {
        out.json(&json!({
            "schema": 1, "command": "import", "results": results, "analysis": analysis,
        }))?;
        return out.done();
    }
    let view = show::View {
        results: &results,
        analysis: &analysis,
        all_pairs: a.all_pairs,
        width: columns(),
    };
    out.text(&view.head(width()))?;
    let (matrix, foot) = (view.matrix(), view.foot());
    let wrapped: usize = foot
        .lines()
        .map(|l| wrap(l, 0, width()).lines().count().max(1))
        .sum();
    // The line with the description of the files may be wrapped, and a note takes another line.
    let room = (LINES - 2).saturating_sub(wrapped);
    if a.details {
        out.text(&matrix)?;
        out.text(&view.details())?;
    } else if matrix.lines().count() <= room {
        out.text(&matrix)?;
    } else {
        out.text(&view.held(room))?;
    }
    out.prose(&foot)?;
    out.done()?;
    for n in &results.about.notes {
        note(quiet, n);
    }
    if let Some(folder) = &a.output {
        note(quiet, &format!("kept in {}", folder.display()));
    }
    Ok(())
}
