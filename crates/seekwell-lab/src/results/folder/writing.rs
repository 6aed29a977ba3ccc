//! Writes the tables of a results folder when the experiment is finished.

use super::super::columns::{OPERATIONS, RECORDS, RUNS, SERIES, Table};
use super::super::plan::{Stored, own};
use super::super::rows::{self, Named};
use super::super::tables::Rows;
use super::super::{Interned, Results, Run, RunKey, StoreError, entry, hlog};
use super::{Folder, HISTOGRAMS, JOURNAL, finished, stored};
use parquet::errors::ParquetError;
use seekwell_files::Sink;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

type To = (PathBuf, Rows<BufWriter<Sink>>);

/// Runs, sorted by key. If several runs have the same key, the last is kept.
pub(super) struct Known<'a>(pub Vec<&'a Run>);

impl<'a> Known<'a> {
    pub fn new(runs: &'a [Run]) -> Self {
        let mut all: Vec<&Run> = runs.iter().rev().collect();
        all.sort_by_key(|r| r.key);
        all.dedup_by_key(|r| r.key);
        Known(all)
    }
    fn get(&self, key: RunKey) -> Option<&'a Run> {
        let at = self.0.binary_search_by_key(&key, |r| r.key).ok()?;
        self.0.get(at).copied()
    }
}

impl Folder {
    /// Writes one table after another, because an unfinished row group takes most of the memory.
    /// Only the fields for the current table are read from each run.
    pub(super) fn write_tables(
        &self,
        results: &Results,
        known: &Known<'_>,
    ) -> Result<BTreeMap<String, Stored>, StoreError> {
        let axes = rows::axes(&results.cells);
        let columns: Vec<String> = axes.iter().map(|a| format!("axis.{a}")).collect();
        let mut files = BTreeMap::new();
        self.write_table(&RUNS, &columns, &mut files, |path, rows| {
            self.each(results, known, |of| {
                let written = rows::of_run(of, &axes, |row| rows.push(row));
                written.map_err(|e| self.not_written(path, e))
            })
        })?;
        self.write_table(&SERIES, &[], &mut files, |path, rows| {
            self.each(results, known, |of| {
                for s in &self.part::<entry::SeriesOf>(of.run.key)?.series {
                    for second in &s.seconds {
                        let pushed = rows.push(&rows::of_second(of, s, second));
                        pushed.map_err(|e| self.not_written(path, e))?;
                    }
                }
                Ok(())
            })
        })?;
        self.write_table(&OPERATIONS, &[], &mut files, |path, rows| {
            self.each(results, known, |of| {
                for o in &self.part::<entry::OperationsOf>(of.run.key)?.operations {
                    let pushed = rows.push(&rows::of_operation(of, o));
                    pushed.map_err(|e| self.not_written(path, e))?;
                }
                Ok(())
            })
        })?;
        self.write_table(&RECORDS, &[], &mut files, |path, rows| {
            self.each(results, known, |of| {
                let texts = self.part::<entry::TextsOf>(of.run.key)?;
                let pushed = rows.push(&rows::of_record(of, &texts));
                pushed.map_err(|e| self.not_written(path, e))
            })
        })?;
        let (log, mut lines) = self.sink(HISTOGRAMS)?;
        let told = |e| self.failed(&log, e);
        lines.write_all(hlog::HEAD.as_bytes()).map_err(told)?;
        self.each(results, known, |of| {
            let part = self.part::<entry::HistogramsOf>(of.run.key)?;
            lines.write_all(part.histograms.as_bytes()).map_err(told)
        })?;
        self.place(&log, lines, &mut files)?;
        Ok(files)
    }

    fn write_table(
        &self,
        table: &Table,
        more: &[String],
        files: &mut BTreeMap<String, Stored>,
        fill: impl FnOnce(&Path, &mut Rows<BufWriter<Sink>>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (path, mut rows) = self.table(table, more)?;
        fill(&path, &mut rows)?;
        let to = rows.finish().map_err(|e| self.not_written(&path, e))?;
        self.place(&path, to, files)
    }

    /// Calls `take` with each stored run, in order. The values in `known` replace the stored
    /// values.
    fn each(
        &self,
        results: &Results,
        known: &Known<'_>,
        mut take: impl FnMut(&Named<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let Some(journal) = &self.journal else {
            return Err(finished(&self.path));
        };
        let mut metrics = Interned::default();
        for (number, &key) in journal.keys().enumerate() {
            let (Some(cell), Some(treatment)) = (
                results.cells.get(key.cell),
                results.treatments.get(key.treatment),
            ) else {
                return Err(StoreError::bad(
                    &self.path,
                    "a run belongs to no cell of the results",
                ));
            };
            let stored;
            let run = match known.get(key) {
                Some(run) => run,
                None => {
                    stored = self.part::<entry::Slim>(key)?.run(&mut metrics);
                    &stored
                }
            };
            take(&Named {
                number: number as u64,
                about: &results.about,
                cell,
                treatment,
                run,
            })?;
        }
        Ok(())
    }

    /// Reads a part of the entry of a stored run.
    fn part<T: DeserializeOwned>(&self, key: RunKey) -> Result<T, StoreError> {
        let path = self.path.join(JOURNAL);
        let Some(journal) = &self.journal else {
            return Err(finished(&self.path));
        };
        journal.part(key).map_err(|e| self.failed(&path, e))
    }

    fn sink(&self, name: &str) -> Result<(PathBuf, BufWriter<Sink>), StoreError> {
        let path = self.path.join(name);
        if path.symlink_metadata().is_ok() {
            own(&self.path, name)?;
        }
        let sink = Sink::open(&path).map_err(|e| self.failed(&path, e))?;
        Ok((path, BufWriter::with_capacity(1 << 16, sink)))
    }

    fn table(&self, table: &Table, more: &[String]) -> Result<To, StoreError> {
        let (path, sink) = self.sink(table.file)?;
        let rows = Rows::new(sink, table, more).map_err(|e| self.not_written(&path, e))?;
        Ok((path, rows))
    }

    fn not_written(&self, path: &Path, e: ParquetError) -> StoreError {
        let e = match e {
            ParquetError::External(e) => match e.downcast::<io::Error>() {
                Ok(io) => *io,
                Err(other) => io::Error::other(other),
            },
            other => io::Error::other(other),
        };
        self.failed(path, e)
    }

    /// Renames a file to its final name, and adds its size and hash to `files`.
    fn place(
        &self,
        path: &Path,
        to: BufWriter<Sink>,
        files: &mut BTreeMap<String, Stored>,
    ) -> Result<(), StoreError> {
        let put = || {
            let sink = to.into_inner().map_err(|e| e.into_error())?;
            sink.finish()?;
            stored(path)
        };
        let stored = put().map_err(|e| self.failed(path, e))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        files.insert(name.into_owned(), stored);
        Ok(())
    }
}
