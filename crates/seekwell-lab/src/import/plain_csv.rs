//! Reads a simple CSV with named columns: one line per run, or one line per published mean.
//!
//! The separator (comma, semicolon or tab) is detected from the header line. Column names have the
//! synonyms in [`COLUMNS`]. Other columns are ignored, and a note lists them.

use super::harvest::{
    Harvest, HarvestFigure, HarvestRun, Number, Of, better_by_words, metric, number, short, value,
};
use super::{Format, ImportError, Input, NameFrom, Place};
use crate::data::{MetricInfo, Outcome};
use std::collections::{BTreeMap, BTreeSet};

pub const FORMAT: Format = Format {
    name: "csv",
    summary: "a header line, then one line per run (or published mean)",
    becomes: "columns device, machine, scheduler, workload; each metric is a cell of its own",
    gives: "runs, or means with se or sd and n if these columns exist",
    scheduler_from: NameFrom::System,
    known: |t| {
        let first = t.lines().find(|l| !l.trim().is_empty()).unwrap_or("");
        let names: Vec<Option<Column>> = split(first, delimiter(first)).map(column).collect();
        let has = |c: Column| names.contains(&Some(c));
        has(Column::Value) && (has(Column::Scheduler) || has(Column::Workload))
    },
    part_of: None,
    read,
};

/// The meaning of a column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Column {
    Device,
    Machine,
    Scheduler,
    Workload,
    Run,
    Block,
    Metric,
    Unit,
    Better,
    Value,
    Se,
    Sd,
    Error,
    ErrorKind,
    N,
}

/// Names of the columns. The first name of each column is the documented one.
const COLUMNS: &[(Column, &[&str])] = &[
    (Column::Device, &["device", "disk", "drive"]),
    (Column::Machine, &["machine", "system", "host"]),
    (
        Column::Scheduler,
        &["scheduler", "treatment", "elevator", "iosched"],
    ),
    (Column::Workload, &["workload", "test", "benchmark"]),
    (Column::Run, &["run", "repeat", "rep", "iteration"]),
    (Column::Block, &["block", "round"]),
    (Column::Metric, &["metric", "measure"]),
    (Column::Unit, &["unit", "scale"]),
    (Column::Better, &["better", "direction", "proportion"]),
    (Column::Value, &["value", "mean", "result"]),
    (Column::Se, &["se", "stderr", "standard error"]),
    (Column::Sd, &["sd", "stdev", "stddev", "standard deviation"]),
    (Column::Error, &["error", "se or stdev"]),
    (Column::ErrorKind, &["kind of error", "error kind"]),
    (Column::N, &["n", "runs", "count"]),
];

fn column(name: &str) -> Option<Column> {
    let name = name
        .trim()
        .trim_matches('"')
        .to_lowercase()
        .replace('_', " ");
    let found = COLUMNS.iter().find(|c| c.1.contains(&name.as_str()));
    found.map(|c| c.0)
}

/// Returns the most frequent separator in the header line.
fn delimiter(line: &str) -> u8 {
    let count = |c: u8| line.bytes().filter(|b| *b == c).count();
    [b',', b';', b'\t']
        .into_iter()
        .rev()
        .max_by_key(|c| count(*c))
        .unwrap_or(b',')
}

fn split(line: &str, by: u8) -> impl Iterator<Item = &str> {
    line.split(char::from(by))
}

/// Accesses the fields of a line by column.
struct Row<'a> {
    record: &'a csv::StringRecord,
    at: &'a BTreeMap<Column, usize>,
}

impl Row<'_> {
    fn get(&self, c: Column) -> &str {
        let found = self.at.get(&c).and_then(|i| self.record.get(*i));
        found.unwrap_or("").trim()
    }
    /// Returns a number; `None` for an empty field.
    fn number(&self, c: Column) -> Result<Option<Number>, String> {
        match self.get(c) {
            "" => Ok(None),
            t => number(t)
                .map(Some)
                .map_err(|why| format!("{}: {why}", name_of(c))),
        }
    }
    fn count(&self, c: Column) -> Result<Option<u32>, String> {
        match self.get(c) {
            "" => Ok(None),
            t => t
                .parse()
                .map(Some)
                .map_err(|_| format!("{}: \"{}\" is not a whole number", name_of(c), short(t))),
        }
    }
}

fn name_of(c: Column) -> &'static str {
    COLUMNS.iter().find(|x| x.0 == c).map_or("", |x| x.1[0])
}

fn better(row: &Row, harvest: &mut Harvest) -> Result<bool, String> {
    match row.get(Column::Better).to_lowercase().as_str() {
        "higher" | "more" | "hib" | "true" => Ok(true),
        "lower" | "less" | "fewer" | "lib" | "false" => Ok(false),
        "" => {
            let (unit, name) = (row.get(Column::Unit), row.get(Column::Metric));
            let guess = better_by_words(unit)
                .or_else(|| better_by_words(name))
                .unwrap_or(true);
            let what = if name.is_empty() { "value" } else { name };
            let side = if guess { "more" } else { "less" };
            harvest.note(format!(
                "{}: no column `better`; assumed: {side} is better",
                short(what)
            ));
            Ok(guess)
        }
        other => Err(format!(
            "better: \"{}\" is neither higher nor lower",
            short(other)
        )),
    }
}

/// Returns the standard error and the standard deviation of a published mean.
fn errors(row: &Row) -> Result<(Option<Number>, Option<Number>), String> {
    let (mut se, mut sd) = (row.number(Column::Se)?, row.number(Column::Sd)?);
    if let Some(error) = row.number(Column::Error)? {
        match row.get(Column::ErrorKind).to_uppercase().as_str() {
            "SE" => se = Some(error),
            "SD" => sd = Some(error),
            "" => {
                return Err(
                    "the kind of the error is missing; add a column `kind_of_error` with SE or SD"
                        .to_owned(),
                );
            }
            other => {
                return Err(format!(
                    "kind_of_error: \"{}\" is not SE or SD",
                    short(other)
                ));
            }
        }
    }
    match [se, sd].iter().flatten().find(|e| e.value < 0.0) {
        Some(e) => Err(format!(
            "an error of {} is impossible, because errors are not negative",
            e.value
        )),
        None => Ok((se, sd)),
    }
}

fn header(input: &Input, by: u8) -> Result<(BTreeMap<Column, usize>, Vec<String>), ImportError> {
    let first = input
        .text
        .lines()
        .find(|l| !l.trim().is_empty())
        .unwrap_or("");
    let mut at = BTreeMap::new();
    let mut passed = Vec::new();
    for (i, name) in split(first, by).enumerate() {
        match column(name) {
            None => passed.push(short(name.trim_matches('"'))),
            Some(c) if at.insert(c, i).is_some() => {
                let what = format!("has two columns for `{}`; keep one", name_of(c));
                return Err(input.error(Place::Line(1), what));
            }
            Some(_) => {}
        }
    }
    for needed in [Column::Value, Column::Scheduler] {
        if !at.contains_key(&needed) {
            let all: Vec<&str> = COLUMNS.iter().map(|c| c.1[0]).collect();
            let hint = match first.starts_with("command,mean,") {
                true => "; hyperfine's CSV has no single runs: use its --export-json",
                false => "",
            };
            let what = format!(
                "has no column `{}`{hint}; columns are {}",
                name_of(needed),
                all.join(", ")
            );
            return Err(input.error(Place::Line(1), what));
        }
    }
    Ok((at, passed))
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let first = input
            .text
            .lines()
            .find(|l| !l.trim().is_empty())
            .unwrap_or("");
        let by = delimiter(first);
        let (at, passed) = header(input, by)?;
        if !passed.is_empty() {
            let names = passed.join(", ");
            harvest.note(format!(
                "{}: ignored columns: {}",
                input.base(),
                short(&names)
            ));
        }
        let published = [Column::Se, Column::Sd, Column::Error, Column::N];
        let published =
            !at.contains_key(&Column::Run) && published.iter().any(|c| at.contains_key(c));
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(by)
            .flexible(true)
            .from_reader(input.text.as_bytes());
        let columns = split(first, by).count();
        let mut seen = BTreeSet::new();
        for record in reader.records() {
            let record = record.map_err(|e| {
                let line = e.position().map_or(0, |p| p.line());
                let at = Place::Line(usize::try_from(line).unwrap_or(0));
                input.error(at, format!("is not CSV: {e}"))
            })?;
            let line = record.position().map_or(0, |p| p.line());
            let place = Place::Line(usize::try_from(line).unwrap_or(0));
            if record.iter().all(|c| c.trim().is_empty()) {
                continue;
            }
            // More fields than columns are an error. Missing fields at the end count as empty.
            if record.len() > columns {
                let what = format!(
                    "has {} fields, but there are {columns} columns; quote fields that contain the \
                     separator",
                    record.len()
                );
                return Err(input.error(place, what));
            }
            let row = Row {
                record: &record,
                at: &at,
            };
            let wrong = |what: String| input.error(place.clone(), what);
            let (of, metric) = whose(&row, harvest).map_err(wrong)?;
            if published {
                figure(&row, of, metric, harvest).map_err(wrong)??;
                continue;
            }
            let run = row.get(Column::Run);
            let key = (
                of.device.clone(),
                of.machine.clone(),
                of.test.clone(),
                of.scheduler.clone(),
                metric.name.clone(),
                run.to_owned(),
            );
            if !run.is_empty() && !seen.insert(key) {
                let what = format!("run {} of {} occurs twice", short(run), of.test);
                return Err(wrong(what));
            }
            one_run(&row, of, metric, harvest).map_err(wrong)??;
        }
    }
    Ok(())
}

type Kept = Result<(), ImportError>;

fn whose(row: &Row, harvest: &mut Harvest) -> Result<(Of, MetricInfo), String> {
    let scheduler = short(row.get(Column::Scheduler));
    if scheduler.is_empty() {
        return Err("names no scheduler".to_owned());
    }
    let name = match row.get(Column::Metric) {
        "" => "value",
        name => name,
    };
    let metric = metric(name, row.get(Column::Unit), better(row, harvest)?);
    let told = |c: Column| match short(row.get(c)) {
        t if t == "not stated" => String::new(),
        t => t,
    };
    let of = Of {
        scheduler,
        device: told(Column::Device),
        machine: told(Column::Machine),
        test: match short(row.get(Column::Workload)) {
            t if t.is_empty() => "workload not named".to_owned(),
            t => t,
        },
        ..Of::default()
    };
    Ok((of, metric))
}

fn figure(row: &Row, of: Of, metric: MetricInfo, harvest: &mut Harvest) -> Result<Kept, String> {
    let mean = row.number(Column::Value)?.ok_or("value: empty")?;
    let (se, sd) = errors(row)?;
    Ok(harvest.figure(HarvestFigure {
        of,
        metric,
        mean,
        se,
        sd,
        n: row.count(Column::N)?,
    }))
}

fn one_run(row: &Row, of: Of, metric: MetricInfo, harvest: &mut Harvest) -> Result<Kept, String> {
    let block = row.count(Column::Block)?;
    let text = row.get(Column::Value);
    if text.is_empty() {
        harvest.note(format!(
            "{}, {}: this run has no value",
            of.test, of.scheduler
        ));
    }
    let (number, outcome) = match text {
        "" => (0.0, Outcome::Failed("no value".to_owned())),
        t => match number(t) {
            Ok(n) => (n.value, Outcome::Done),
            Err(why) => return Err(format!("value: {why}")),
        },
    };
    Ok(harvest.run(HarvestRun {
        of,
        block,
        outcome,
        values: vec![value(metric, number, 0)],
        ..HarvestRun::default()
    }))
}
