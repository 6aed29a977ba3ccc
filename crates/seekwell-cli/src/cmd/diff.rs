//! `seekwell diff A B`: the changes between two results.

use super::import::options;
use super::results::failure;
use crate::cli::{Diff as Arguments, Foreign};
use crate::fail::Failure;
use crate::out::{Out, columns, note};
use seekwell_lab::diff::{Basis, Change, Diff, Options, Session, diff, environment};
use seekwell_lab::import::{Input, import};
use seekwell_lab::results::{Results, read};
use seekwell_report::style::{BAD, GOOD, HEAD, PLAIN, WARN};
use seekwell_report::table::{Align, Table, paint, painted};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// Up to this number of changes, all changes are shown.
const SHOWN: usize = 20;

/// Loads a results folder, or a file of another program, with the record of its environment.
fn load(path: &Path, a: &Foreign) -> Result<(Results, BTreeMap<String, String>), Failure> {
    if path.is_dir() {
        return Ok((read(path).map_err(failure)?, environment(path)));
    }
    let failed = |e: seekwell_lab::import::ImportError| Failure::input(e.to_string());
    let input = Input::read(path).map_err(failed)?;
    Ok((
        import(&[input], &options(a)?).map_err(failed)?,
        BTreeMap::new(),
    ))
}

fn environment_table(d: &Diff, width: usize) -> String {
    let mut t = Table::new(&[
        ("DIFFERS", Align::Left),
        ("A", Align::Left),
        ("B", Align::Left),
    ]);
    let or_none = |text: &str| match text {
        "" => "-".to_owned(),
        text => text.to_owned(),
    };
    for e in &d.environment {
        t.row(vec![
            painted(e.name.clone(), WARN),
            or_none(&e.old).into(),
            or_none(&e.new).into(),
        ]);
    }
    match t.is_empty() {
        true => String::new(),
        false => t.render_within(2, width) + "\n",
    }
}

fn changes_table(all: &[&Change], width: usize) -> String {
    let mut t = Table::new(&[
        ("CELL", Align::Left),
        ("SCHEDULER", Align::Left),
        ("RUNS", Align::Right),
        ("AGAINST", Align::Left),
        ("CHANGE", Align::Left),
    ]);
    for c in all {
        let style = match (c.worse, c.better) {
            (true, _) => BAD,
            (_, true) => GOOD,
            _ => PLAIN,
        };
        let against = match (c.basis, &c.control) {
            (Basis::Seeds, _) => "same seeds".to_owned(),
            (Basis::AbsoluteHistory, _) => "history".to_owned(),
            (Basis::History, Some(control)) => format!("{control}, history"),
            (_, Some(control)) => control.clone(),
            (_, None) => "itself".to_owned(),
        };
        t.row(vec![
            c.cell.clone().into(),
            c.treatment.clone().into(),
            match c.n {
                (a, b) if a == b => a.to_string(),
                (a, b) => format!("{a}/{b}"),
            }
            .into(),
            against.into(),
            painted(c.words.clone(), style),
        ]);
    }
    t.render_within(2, width)
}

/// Returns all changes as text and tables.
fn shown(d: &Diff, details: bool, width: usize) -> String {
    let mut out = environment_table(d, width);
    let notable = |c: &&Change| c.worse || c.better;
    let all: Vec<&Change> = match details || d.changes.len() <= SHOWN {
        true => d.changes.iter().collect(),
        false => d.changes.iter().filter(notable).collect(),
    };
    if !all.is_empty() {
        out += &changes_table(&all, width);
        out.push('\n');
    }
    let same = d.changes.iter().filter(|c| c.identical).count();
    let line = format!(
        "{} compared: {} worse, {} better, {same} identical, {} other",
        d.changes.len(),
        d.worse,
        d.better,
        d.changes.len() - d.worse - d.better - same
    );
    paint(&mut out, &line, HEAD);
    let hidden = d.changes.len() - all.len();
    if hidden > 0 {
        out += &format!(" ({hidden} not shown: --details)");
    }
    out.push('\n');
    for (side, only) in [("A", &d.only_old), ("B", &d.only_new)] {
        if !only.is_empty() {
            let some: Vec<&str> = only.iter().take(6).map(String::as_str).collect();
            let more = match only.len().saturating_sub(6) {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            out += &format!("Only in {side}: {}{more}\n", some.join("; "));
        }
    }
    out
}

/// Compares the results, and returns an error if a scheduler got worse.
pub fn run(a: &Arguments, quiet: bool) -> Result<(), Failure> {
    let mut out = Out::open(a.output.output.as_deref())?;
    let (old, old_environment) = load(&a.old, &a.foreign)?;
    let (new, new_environment) = load(&a.new, &a.foreign)?;
    let mut history = Vec::new();
    for path in &a.history {
        history.push(load(path, &a.foreign)?.0);
    }
    let options = Options {
        control: a.control.clone(),
        absolute: a.absolute,
        strict_family: a.strict_family,
        sigma: a.session,
        margin: a.margin,
    };
    let d = diff(
        Session {
            results: &old,
            environment: &old_environment,
        },
        Session {
            results: &new,
            environment: &new_environment,
        },
        &history.iter().collect::<Vec<_>>(),
        &options,
    )
    .map_err(|e| Failure::input(e.to_string()))?;
    match a.json {
        true => out.json(&json!({ "schema": 1, "command": "diff", "diff": d }))?,
        false => out.text(&shown(&d, a.details, columns()))?,
    }
    out.done()?;
    for n in &d.notes {
        note(quiet, n);
    }
    match d.worse {
        0 => Ok(()),
        _ => Err(Failure::Difference),
    }
}
