//! Reads complete results folders, including damaged and untrusted folders. All sizes are limited,
//! all data is checked before it is used, and nothing panics.

use super::columns::{Kind, OPERATIONS, RECORDS, RUN, RUNS, SERIES, Table};
use super::entry::{Layer, OperationRow, QUANTILES, SeriesRow};
use super::folder::stored;
use super::plan::{Finished, damaged, in_range, newer, own, read_json};
use super::tables::{TABLE_KEY, VERSION_KEY};
use super::{Interned, Outcome, RESULTS_VERSION, Results, Run, RunKey, StoreError, Value};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchReader, StringArray,
    UInt64Array,
};
use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use std::fs::File;
use std::path::Path;

/// Largest number of table rows of `runs.parquet`: a hundred times the largest known experiment.
const ROWS_MAX: i64 = 2_000_000;
/// Largest uncompressed size of a column chunk in bytes, as stated in the file.
const CHUNK_MAX: i64 = 256 << 20;
/// Largest size of the text of a file in memory, in bytes.
const TEXT_MAX: usize = 1 << 30;
const BATCH_ROWS: usize = 1024;

/// Reads the results of a complete folder.
pub(super) fn finished(dir: &Path) -> Result<Results, StoreError> {
    let done: Finished = read_json(dir, super::folder::RESULTS)?;
    let path = dir.join(super::folder::RESULTS);
    in_range(&path, &done.cells, &done.treatments)?;
    let (cells, treatments) = (done.cells.len(), done.treatments.len());
    let fits = |cell: usize, treatment: usize| cell < cells && treatment < treatments;
    if !done.summaries.iter().all(|s| fits(s.cell, s.treatment)) {
        return Err(damaged(&path, "a figure belongs to no cell"));
    }
    unchanged(dir, &done, RUNS.file)?;
    let runs = dir.join(RUNS.file);
    let told = |e: String| damaged(&runs, &e);
    let all = guarded(&runs, || read_runs(&runs))?;
    if !all.iter().all(|r| fits(r.key.cell, r.key.treatment)) {
        return Err(told("a run belongs to no cell of results.json".to_owned()));
    }
    if all.len() as u64 != done.runs {
        return Err(told(format!(
            "it has {} runs, but {} were stored",
            all.len(),
            done.runs
        )));
    }
    Ok(Results {
        about: done.about,
        cells: done.cells,
        treatments: done.treatments,
        runs: all,
        summaries: done.summaries,
    })
}

/// Returns an error if a file has changed since it was written.
pub(super) fn unchanged(dir: &Path, done: &Finished, name: &str) -> Result<(), StoreError> {
    let path = own(dir, name)?;
    let Some(was) = done.files.get(name) else {
        return Err(damaged(
            &dir.join(super::folder::RESULTS),
            &format!("{name} is not listed"),
        ));
    };
    let size = path
        .metadata()
        .map_err(|e| StoreError::bad(&path, e.to_string()))?
        .len();
    if size != was.bytes {
        let what = format!("it has {size} bytes, but {} were written", was.bytes);
        return Err(damaged(&path, &what));
    }
    let is = stored(&path).map_err(|e| StoreError::bad(&path, e.to_string()))?;
    if is != *was {
        return Err(damaged(&path, "its checksum differs"));
    }
    Ok(())
}

/// Calls `read`. The library can panic on malicious files; a panic becomes an error.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let read = seekwell_files::guarded(read);
    read.unwrap_or_else(|| Err(damaged(path, "not a readable Parquet file")))
}

/// Calls `take` with each batch of table rows in a table of a complete folder.
fn each(
    dir: &Path,
    table: &Table,
    mut take: impl FnMut(&Columns<'_>, usize) -> Result<(), String>,
) -> Result<(), StoreError> {
    let done: Finished = read_json(dir, super::folder::RESULTS)?;
    unchanged(dir, &done, table.file)?;
    let path = dir.join(table.file);
    guarded(&path, || {
        for batch in open(&path, table, i64::MAX)? {
            let batch = batch.map_err(|e| damaged(&path, &e.to_string()))?;
            take(&Columns(&batch), batch.num_rows()).map_err(|e| damaged(&path, &e))?;
        }
        Ok(())
    })
}

fn layer(column: &StringArray, row: usize) -> Result<Layer, String> {
    let known = [Layer::Workload, Layer::Block];
    let found = known.into_iter().find(|l| l.name() == column.value(row));
    found.ok_or_else(|| format!("the layer `{}`", column.value(row)))
}

fn maybe(column: &Int64Array, row: usize) -> Result<Option<u64>, String> {
    column
        .is_valid(row)
        .then(|| number(column, row))
        .transpose()
}

/// Reads the operations of all runs in a complete folder. Calls the function with the index of the
/// run in [`Results::runs`] and the table row of each kind of operation.
///
/// # Errors
/// Returns an error if the file is missing, damaged, or belongs to other results.
pub fn operations(dir: &Path, mut row: impl FnMut(usize, OperationRow)) -> Result<(), StoreError> {
    each(dir, &OPERATIONS, |c, rows| {
        let (run, of, kind) = (c.int("run")?, c.text("layer")?, c.text("kind")?);
        let (count, bytes, errors) = (c.int("count")?, c.int("bytes")?, c.int("errors")?);
        let (mean, min, max) = (c.float("mean_ns")?, c.int("min_ns")?, c.int("max_ns")?);
        let (held, began, ended) = (c.int("held_ns")?, c.int("began_ns")?, c.int("ended_ns")?);
        let mut quantiles = Vec::new();
        for (_, name) in QUANTILES {
            quantiles.push(c.int(name)?);
        }
        for i in 0..rows {
            let mut quantiles_ns = [0; QUANTILES.len()];
            for (out, column) in quantiles_ns.iter_mut().zip(&quantiles) {
                *out = number(column, i)?;
            }
            let one = OperationRow {
                layer: layer(of, i)?,
                kind: text(kind, i),
                count: number(count, i)?,
                bytes: number(bytes, i)?,
                errors: maybe(errors, i)?,
                mean_ns: mean.value(i),
                min_ns: number(min, i)?,
                quantiles_ns,
                max_ns: number(max, i)?,
                held_ns: maybe(held, i)?,
                began_ns: maybe(began, i)?,
                ended_ns: maybe(ended, i)?,
            };
            row(number(run, i)?, one);
        }
        Ok(())
    })
}

/// Reads the seconds of a complete folder in which an operation ended. Calls the function with the
/// index of the run in [`Results::runs`], the layer, the kind and the table row. The calls are
/// ordered by run, kind and time.
///
/// # Errors
/// Returns the errors of [`operations`].
pub fn series(
    dir: &Path,
    mut row: impl FnMut(usize, Layer, &str, SeriesRow),
) -> Result<(), StoreError> {
    each(dir, &SERIES, |c, rows| {
        let (run, of, kind) = (c.int("run")?, c.text("layer")?, c.text("kind")?);
        let (second, ops, bytes) = (c.int("second")?, c.int("ops")?, c.int("bytes")?);
        let (sum, max) = (c.int("latency_sum_ns")?, c.int("latency_max_ns")?);
        let (writes, square) = (c.int("writes")?, c.int("latency_square_us2")?);
        for i in 0..rows {
            let layer = layer(of, i)?;
            let last = if layer == Layer::Block {
                writes
            } else {
                square
            };
            let one = SeriesRow(
                number(second, i)?,
                number(ops, i)?,
                number(bytes, i)?,
                number(sum, i)?,
                number(max, i)?,
                number(last, i)?,
            );
            row(number(run, i)?, layer, kind.value(i), one);
        }
        Ok(())
    })
}

/// Reads the specification and the record of every run in a complete folder, both as JSON. Calls
/// the function with the index of the run in [`Results::runs`] and these two texts, as far as they
/// exist.
///
/// # Errors
/// Returns the errors of [`operations`].
pub fn records(
    dir: &Path,
    mut row: impl FnMut(usize, Option<&str>, Option<&str>),
) -> Result<(), StoreError> {
    each(dir, &RECORDS, |c, rows| {
        let (run, spec, record) = (c.int("run")?, c.text("spec")?, c.text("record")?);
        for i in 0..rows {
            let of = |column: &StringArray| column.is_valid(i).then(|| column.value(i).to_owned());
            row(number(run, i)?, of(spec).as_deref(), of(record).as_deref());
        }
        Ok(())
    })
}

/// Reads a table of a complete folder as it is, including the columns for the parameters that the
/// experiment varies. Returns the schema and the batches.
///
/// # Errors
/// Returns the errors of [`operations`].
pub fn batches(dir: &Path, table: &Table) -> Result<(SchemaRef, Vec<RecordBatch>), StoreError> {
    let done: Finished = read_json(dir, super::folder::RESULTS)?;
    unchanged(dir, &done, table.file)?;
    let path = dir.join(table.file);
    guarded(&path, || {
        let reader = opened(&path, table, i64::MAX, true)?;
        let schema = reader.schema();
        let all: Result<Vec<RecordBatch>, _> = reader.collect();
        Ok((schema, all.map_err(|e| damaged(&path, &e.to_string()))?))
    })
}

/// Opens a table to read the columns that this version knows.
fn open(path: &Path, table: &Table, rows_max: i64) -> Result<ParquetRecordBatchReader, StoreError> {
    opened(path, table, rows_max, false)
}

/// Opens a table. If the last argument is `true`, all columns are read.
fn opened(
    path: &Path,
    table: &Table,
    rows_max: i64,
    all: bool,
) -> Result<ParquetRecordBatchReader, StoreError> {
    let told = |e: &dyn std::fmt::Display| damaged(path, &e.to_string());
    let file = File::open(path).map_err(|e| StoreError::bad(path, e.to_string()))?;
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)
        .map_err(|e| told(&e))?;
    let metadata = builder.metadata().clone();
    let said = metadata.file_metadata().key_value_metadata();
    let value = |key: &str| {
        let found = said?.iter().find(|k| k.key == key)?;
        found.value.clone()
    };
    if value(TABLE_KEY).as_deref() != Some(table.file) {
        return Err(StoreError::bad(
            path,
            "is a Parquet file, but not one of a results folder; `seekwell import` reads figures \
             made elsewhere",
        ));
    }
    match value(VERSION_KEY).and_then(|v| v.parse::<u32>().ok()) {
        Some(v) if v > RESULTS_VERSION => return Err(newer(path, &v.to_string())),
        Some(_) => {}
        None => return Err(told(&"no version")),
    }
    if !(0..=rows_max).contains(&metadata.file_metadata().num_rows()) {
        let n = metadata.file_metadata().num_rows();
        return Err(told(&format!("it claims to have {n} rows")));
    }
    let chunks = metadata.row_groups().iter().flat_map(|g| g.columns());
    let size = |c: &parquet::file::metadata::ColumnChunkMetaData| c.uncompressed_size();
    if let Some(c) = chunks.clone().find(|c| !(0..=CHUNK_MAX).contains(&size(c))) {
        let what = format!("a column claims to have {} bytes", size(c));
        return Err(told(&what));
    }
    let mut roots = Vec::new();
    for c in RUN.iter().chain(table.columns) {
        match builder.schema().fields().find(c.name) {
            Some((at, f)) if *f.data_type() == c.kind.arrow() => roots.push(at),
            Some((_, f)) => {
                let (is, name) = (f.data_type(), c.name);
                let what = format!("column `{name}` is {is}, not {}", c.kind.name());
                return Err(told(&what));
            }
            None if c.added => {}
            None => return Err(told(&format!("no column `{}`", c.name))),
        }
    }
    let mask = match all {
        true => ProjectionMask::all(),
        false => ProjectionMask::roots(builder.parquet_schema(), roots),
    };
    let builder = builder.with_projection(mask).with_batch_size(BATCH_ROWS);
    builder.build().map_err(|e| told(&e))
}

/// The columns of a batch, which can be looked up by name.
struct Columns<'a>(&'a RecordBatch);

impl<'a> Columns<'a> {
    fn column(&self, name: &str, kind: Kind) -> Result<&'a dyn Array, String> {
        let found = self
            .0
            .column_by_name(name)
            .filter(|c| *c.data_type() == kind.arrow());
        found
            .map(AsRef::as_ref)
            .ok_or_else(|| format!("no column `{name}`"))
    }
    fn text(&self, name: &str) -> Result<&'a StringArray, String> {
        Ok(self.column(name, Kind::Text)?.as_string::<i32>())
    }
    fn int(&self, name: &str) -> Result<&'a Int64Array, String> {
        Ok(self.column(name, Kind::Int)?.as_primitive::<Int64Type>())
    }
    fn unsigned(&self, name: &str) -> Result<&'a UInt64Array, String> {
        Ok(self
            .column(name, Kind::Unsigned)?
            .as_primitive::<UInt64Type>())
    }
    fn float(&self, name: &str) -> Result<&'a Float64Array, String> {
        Ok(self
            .column(name, Kind::Float)?
            .as_primitive::<Float64Type>())
    }
    fn truth(&self, name: &str) -> Result<&'a BooleanArray, String> {
        Ok(self.column(name, Kind::Bool)?.as_boolean())
    }
}

fn number<T: TryFrom<i64>>(column: &Int64Array, row: usize) -> Result<T, String> {
    let value = if column.is_null(row) {
        -1
    } else {
        column.value(row)
    };
    T::try_from(value).map_err(|_| format!("the number {value} in row {row}"))
}

fn word(column: &StringArray, row: usize) -> &str {
    if column.is_null(row) {
        ""
    } else {
        column.value(row)
    }
}

fn text(column: &StringArray, row: usize) -> String {
    word(column, row).to_owned()
}

fn read_runs(path: &Path) -> Result<Vec<Run>, StoreError> {
    let told = |e: String| damaged(path, &e);
    let mut runs: Vec<Run> = Vec::new();
    let mut metrics = Interned::default();
    let (mut last, mut bytes) = (None, 0);
    for batch in open(path, &RUNS, ROWS_MAX)? {
        let batch = batch.map_err(|e| told(e.to_string()))?;
        bytes += batch.get_array_memory_size();
        if bytes > TEXT_MAX {
            return Err(told("too much text for an experiment".to_owned()));
        }
        take_runs(&batch, &mut runs, &mut last, &mut metrics).map_err(told)?;
    }
    let sorted = runs.is_sorted_by(|a, b| a.key < b.key);
    if sorted {
        Ok(runs)
    } else {
        Err(told("runs out of order".to_owned()))
    }
}

fn take_runs(
    batch: &RecordBatch,
    runs: &mut Vec<Run>,
    last: &mut Option<i64>,
    metrics: &mut Interned,
) -> Result<(), String> {
    let c = Columns(batch);
    let (run, cell, treatment) = (
        c.int("run")?,
        c.int("cell_place")?,
        c.int("treatment_place")?,
    );
    let (block, place, seed) = (c.int("block")?, c.int("place")?, c.unsigned("seed")?);
    let (hash, outcome, why) = (c.text("spec_hash")?, c.text("outcome")?, c.text("why")?);
    // The files of older versions do not have this column.
    let starved = c.text("starved").ok();
    let (began, duration) = (c.int("began_unix_ns")?, c.int("duration_ns")?);
    let (metric, unit, better) = (
        c.text("metric")?,
        c.text("unit")?,
        c.truth("higher_is_better")?,
    );
    let (step, value, n) = (c.float("step")?, c.float("value")?, c.int("n")?);
    for row in 0..batch.num_rows() {
        let number_of = number(run, row)?;
        if *last != Some(number_of) {
            *last = Some(number_of);
            runs.push(Run {
                key: RunKey {
                    cell: number(cell, row)?,
                    block: number(block, row)?,
                    treatment: number(treatment, row)?,
                },
                place: number(place, row)?,
                seed: seed.value(row),
                spec_hash: text(hash, row),
                outcome: match outcome.value(row) {
                    "done" => Outcome::Done,
                    "early" => Outcome::Early(text(why, row)),
                    "censored" => Outcome::Censored(text(why, row)),
                    "failed" => Outcome::Failed(text(why, row)),
                    other => return Err(format!("the outcome \"{other}\"")),
                },
                values: Vec::new(),
                starved: match starved.map_or("", |c| word(c, row)) {
                    "" => Vec::new(),
                    all => serde_json::from_str(all).map_err(|e| format!("`starved`: {e}"))?,
                },
                began_unix_ns: match began.is_null(row) {
                    true => None,
                    false => Some(number(began, row)?),
                },
                duration_ns: number(duration, row)?,
                others: None,
                wbt_lat_usec: None,
                pace: None,
            });
        }
        let Some(run) = runs.last_mut().filter(|_| metric.is_valid(row)) else {
            continue;
        };
        run.values.push(Value {
            metric: metrics.metric(
                word(metric, row),
                word(unit, row),
                better.is_valid(row) && better.value(row),
                step.is_valid(row).then(|| step.value(row)),
            ),
            value: if value.is_null(row) {
                f64::NAN
            } else {
                value.value(row)
            },
            n: number(n, row)?,
        });
    }
    Ok(())
}
