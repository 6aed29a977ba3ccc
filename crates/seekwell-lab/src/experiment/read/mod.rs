//! Reads experiment files in TOML. All faults are reported together. Each fault has a line, a
//! column and a field, and if possible the nearest valid word.
//!
//! The parser of the command line ([`seekwell::words`]) reads the names of schedulers, devices,
//! machines and workloads. This module adds what only files can contain: tables, lists that form
//! grids, and paths relative to the folder of the file.

mod grid;
mod machine;
mod system;
mod top;
mod value;
mod work;

pub(super) use machine::QUEUE;
pub(super) use top::{NAME_MAX, ORDERS, PICKS, SETTINGS, STATES, STOPS, complement};
pub(super) use work::{FIO, FITS, STREAMS, TRACE, WORK, is_job};

use super::Experiment;
use super::design::Design;
use super::expand::{Places, expand};
use super::fault::{Faults, Place};
use seekwell::words::{Kernel, TypedScheduler};
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Largest size of an experiment file in bytes, including the job files and presets that it
/// contains.
pub const TEXT_MAX: usize = 16 << 20;

impl Experiment {
    /// Reads an experiment file. `dir` is the folder of the file; relative paths start there.
    ///
    /// # Errors
    /// Returns all faults, in the order of the file.
    pub fn from_toml(text: &str, dir: &Path) -> Result<Experiment, Faults> {
        let (design, places) = design(text, dir)?;
        expand(design, &places, text)
    }
}

impl Design {
    /// Reads an experiment file without expanding it. See [`Experiment::from_toml`].
    ///
    /// # Errors
    /// Returns all faults of the single factors.
    pub fn from_toml(text: &str, dir: &Path) -> Result<Design, Faults> {
        design(text, dir).map(|read| read.0)
    }
}

fn design(text: &str, dir: &Path) -> Result<(Design, Places), Faults> {
    let mut r = Reader::new(text, dir);
    if text.len() > TEXT_MAX {
        let what = format!(
            "{} bytes, more than the limit of {TEXT_MAX} for an experiment file",
            text.len()
        );
        return Err(Faults::single("", what));
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        for e in errors {
            let at = e.span().map_or(Place::default(), |s| r.place(s.start));
            r.faults.push(at, "", format!("not TOML: {}", e.message()));
        }
        r.faults.or(())?;
        return Err(Faults::single("", "not TOML"));
    }
    r.file(table.get_ref());
    let Reader {
        design,
        places,
        faults,
        ..
    } = r;
    faults.or((design, places))
}

/// The state of the reader.
struct Reader<'t> {
    text: &'t str,
    /// Byte offset of the start of each line.
    lines: Vec<usize>,
    dir: PathBuf,
    design: Design,
    places: Places,
    /// The state of all devices that have states and do not name one.
    state: Option<String>,
    /// The kernel of all schedulers and machines, if the file names a kernel.
    kernel: Option<Kernel>,
    /// The schedulers as typed.
    typed: Vec<TypedScheduler>,
    faults: Faults,
}

/// A key of a table, with its value.
#[derive(Clone, Copy)]
struct Entry<'v, 't> {
    key: &'v str,
    at: Place,
    value: &'v Spanned<DeValue<'t>>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, dir: &Path) -> Self {
        let ends = text.bytes().enumerate().filter(|b| b.1 == b'\n');
        Reader {
            text,
            lines: std::iter::once(0).chain(ends.map(|b| b.0 + 1)).collect(),
            dir: dir.to_owned(),
            design: Design::default(),
            places: Places {
                top: Place { line: 1, column: 1 },
                ..Places::default()
            },
            state: None,
            kernel: None,
            typed: Vec::new(),
            faults: Faults::default(),
        }
    }

    /// Returns the line and column of a byte offset.
    fn place(&self, byte: usize) -> Place {
        let line = self.lines.partition_point(|l| *l <= byte).max(1);
        let before = self
            .text
            .get(self.lines[line - 1]..byte)
            .unwrap_or_default();
        Place {
            line,
            column: before.chars().count() + 1,
        }
    }

    fn at(&self, v: &Spanned<DeValue<'_>>) -> Place {
        self.place(v.span().start)
    }

    /// Returns the entries of a table in the order of the file.
    fn entries<'v, 'a>(&self, table: &'v DeTable<'a>) -> Vec<Entry<'v, 'a>> {
        let mut all: Vec<_> = table.iter().collect();
        all.sort_by_key(|(k, _)| k.span().start);
        let entry = |(k, value): (&'v Spanned<_>, _)| {
            let key: &'v std::borrow::Cow<'_, str> = k.get_ref();
            Entry {
                key,
                at: self.place(k.span().start),
                value,
            }
        };
        all.into_iter().map(entry).collect()
    }

    fn file(&mut self, table: &DeTable<'_>) {
        // The kernel is read first, wherever it is in the file, because the versions of the
        // schedulers depend on it.
        if let Some(DeValue::Table(t)) = table.get("experiment").map(Spanned::get_ref)
            && let Some(v) = t.get("kernel")
        {
            self.kernel(v);
        }
        for e in self.entries(table) {
            match e.key {
                "experiment" => match e.value.get_ref() {
                    DeValue::Table(t) => {
                        self.places.top = e.at;
                        self.experiment(t);
                    }
                    _ => self.bad(e.at, "experiment", "must be a table: [experiment]"),
                },
                _ if self.factor(e, "") => {}
                _ => {
                    let known: Vec<&str> = ["experiment"]
                        .into_iter()
                        .chain(FACTORS.iter().copied())
                        .collect();
                    let what = "there is no such table";
                    // Settings above `[experiment]` are probably meant to be in that table.
                    if top::SETTINGS.iter().any(|s| s.0 == e.key) {
                        let what = "belongs to [experiment]: write it below that line";
                        self.bad(e.at, e.key, what);
                    } else {
                        self.faults.unknown(e.at, e.key, what, e.key, &known);
                    }
                }
            }
        }
        self.finish();
    }

    /// Reads a factor or a list of picks. The key can be any of its names.
    fn factor(&mut self, e: Entry<'_, '_>, prefix: &str) -> bool {
        let path = format!("{prefix}{}", e.key);
        match e.key {
            "device" | "devices" => self.each(e, &path, Self::device),
            "scheduler" | "schedulers" => self.each(e, &path, Self::scheduler),
            "workload" | "workloads" => self.each(e, &path, Self::workload),
            "machine" | "machines" => self.each(e, &path, Self::machine),
            "queue" => self.each(e, &path, Self::queue),
            "only" | "exclude" => self.each(e, &path, Self::pick),
            _ => return false,
        }
        true
    }

    /// Reads a single value, or each value of a list with its path.
    fn each(
        &mut self,
        e: Entry<'_, '_>,
        path: &str,
        read: fn(&mut Self, &str, Place, &Spanned<DeValue<'_>>),
    ) {
        match e.value.get_ref() {
            DeValue::Array(list) => {
                if list.is_empty() {
                    self.bad(
                        e.at,
                        path,
                        "is an empty list: name at least one, or leave it out",
                    );
                }
                for (i, v) in list.iter().enumerate() {
                    // Paths in messages count from 1.
                    let one = format!("{path}[{}]", i + 1);
                    read(self, &one, self.at(v), v);
                }
            }
            DeValue::Table(_) => read(self, path, e.at, e.value),
            _ => read(self, path, self.at(e.value), e.value),
        }
    }

    fn bad(&mut self, at: Place, field: &str, what: &str) {
        self.faults.push(at, field, what);
    }
}

/// The tables of an experiment file besides `[experiment]`.
pub(super) const FACTORS: &[&str] = &[
    "device",
    "devices",
    "scheduler",
    "schedulers",
    "workload",
    "workloads",
    "machine",
    "machines",
    "queue",
    "only",
    "exclude",
];

#[cfg(test)]
mod tests;
