//! CSV in UTF-8 according to RFC 4180, with one line per value and the columns of `runs.parquet`.
//! Imported results that have only a mean and a spread get lines with `summary` as the `outcome`
//! and the mean as the `value`. Three more columns for these lines come last. They exist only if
//! there are such lines.

use crate::results::columns::{RUN, RUNS};
use crate::results::rows::{self, Named};
use crate::results::tables::Item;
use crate::results::{Results, Run, RunKey, Summary};
use std::io::{self, Write};

/// The columns for results without single runs.
const OF_SUMMARIES: [&str; 3] = ["se", "sd", "runs"];

/// Formats a number exactly. An integer value keeps its decimal point, so that all values of a
/// column have one type.
fn text(item: Item<'_>) -> String {
    match item {
        Item::Null => String::new(),
        Item::Text(t) => t.to_owned(),
        Item::Int(n) | Item::Unsigned(n) => n.to_string(),
        Item::Float(x) => format!("{x:?}"),
        Item::Bool(b) => b.to_string(),
    }
}

pub(super) fn write(results: &Results, _date: Option<&str>, to: &mut dyn Write) -> io::Result<()> {
    let axes = rows::axes(&results.cells);
    let mut csv = csv::Writer::from_writer(to);
    let fixed = RUN.iter().chain(RUNS.columns).map(|c| c.name.to_owned());
    let mut head: Vec<String> = fixed
        .chain(axes.iter().map(|a| format!("axis.{a}")))
        .collect();
    let columns = head.len();
    let summaries = !results.summaries.is_empty();
    if summaries {
        head.extend(OF_SUMMARIES.map(str::to_owned));
    }
    csv.write_record(&head)?;
    let mut line = |row: &[Item<'_>], more: &[String]| -> io::Result<()> {
        let mut fields: Vec<String> = row.iter().map(|i| text(*i)).collect();
        fields.resize(columns, String::new());
        fields.extend_from_slice(more);
        fields.resize(head.len(), String::new());
        Ok(csv.write_record(&fields)?)
    };
    for (number, run) in results.runs.iter().enumerate() {
        let Some(named) = named(results, number as u64, run) else {
            continue;
        };
        rows::of_run(&named, &axes, |row| line(row, &[]))?;
    }
    let outcome = place("outcome");
    for s in &results.summaries {
        let run = stand_in(s);
        let Some(named) = named(results, 0, &run) else {
            continue;
        };
        let or_none = |x: Option<f64>| text(Item::float(x));
        let n = s.n.map(|n| n.to_string()).unwrap_or_default();
        let more = [or_none(s.se), or_none(s.sd), n];
        rows::of_run(&named, &axes, |row| {
            let mut row = row.to_vec();
            row[0] = Item::Null;
            row[outcome] = Item::Text("summary");
            line(&row, &more)
        })?;
    }
    csv.flush()
}

fn place(name: &str) -> usize {
    let mut all = RUN.iter().chain(RUNS.columns);
    all.position(|c| c.name == name).unwrap_or_default()
}

/// Represents a result without single runs as one run whose value is the mean.
fn stand_in(s: &Summary) -> Run {
    Run {
        key: RunKey {
            cell: s.cell,
            block: 0,
            treatment: s.treatment,
        },
        values: vec![crate::results::Value {
            metric: s.metric.clone().into(),
            value: s.mean,
            n: 0,
        }],
        ..Run::default()
    }
}

pub(super) fn named<'a>(results: &'a Results, number: u64, run: &'a Run) -> Option<Named<'a>> {
    Some(Named {
        number,
        about: &results.about,
        cell: results.cells.get(run.key.cell)?,
        treatment: results.treatments.get(run.key.treatment)?,
        run,
    })
}
