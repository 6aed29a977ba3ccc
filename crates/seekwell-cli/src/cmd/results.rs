//! `seekwell results [DIR...]`: lists results folders.

use crate::cli::Results;
use crate::fail::Failure;
use crate::out::Out;
use seekwell_core::foreign::plain;
use seekwell_lab::results::{Listed, State, list};
use seekwell_report::style::{BAD, DIM, GOOD, WARN};
use seekwell_report::table::{Align, Cell, Table, painted};
use serde_json::{Value, json};
use std::path::PathBuf;

pub use crate::fail::results_failure as failure;

fn state(of: &Listed) -> Cell {
    match &of.state {
        State::Complete => painted("complete", GOOD),
        State::Resumable => painted("can be resumed", WARN),
        State::Running => painted("running", WARN),
        State::Broken(why) => painted(format!("broken: {}", plain(why)), BAD),
    }
}

fn table(all: &[Listed]) -> Table {
    let mut table = Table::new(&[
        ("folder", Align::Left),
        ("experiment", Align::Left),
        ("date, UTC", Align::Left),
        ("cells", Align::Right),
        ("runs", Align::Right),
        ("state", Align::Left),
    ]);
    for one in all {
        table.row(vec![
            plain(&one.path.display().to_string()).into(),
            plain(&one.name).into(),
            painted(one.date.clone().unwrap_or_default(), DIM),
            one.cells.to_string().into(),
            one.runs.to_string().into(),
            state(one),
        ]);
    }
    table
}

/// Lists the results folders.
pub fn run(a: &Results) -> Result<(), Failure> {
    let here = [PathBuf::from(".")];
    let asked: &[PathBuf] = if a.dirs.is_empty() { &here } else { &a.dirs };
    let mut out = Out::open(a.output.output.as_deref())?;
    let all = list(asked).map_err(failure)?;
    if a.json {
        let folders = serde_json::to_value(&all).unwrap_or(Value::Null);
        out.json(&json!({ "schema": 1, "folders": folders }))?;
    } else if all.is_empty() {
        let names: Vec<String> = asked.iter().map(|p| p.display().to_string()).collect();
        out.prose(&format!(
            "No results folders in {}. To create one, run an experiment: seekwell compare FILE",
            names.join(", "),
        ))?;
    } else {
        out.text(&table(&all).render(0))?;
    }
    out.done()
}
