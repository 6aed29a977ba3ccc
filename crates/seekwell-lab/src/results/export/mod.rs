//! Results for other programs: one file a format. Names that experiments and imports brought along
//! are escaped as each format wants it; none of them can end a cell, a tag or a line.

mod csv;
mod json;
mod markdown;
mod pts;

use super::Results;
use std::io::{self, Write};

/// A format that results are written in.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// As it is asked for.
    pub name: &'static str,
    /// What it is good for.
    pub help: &'static str,
    write: fn(&Results, Option<&str>, &mut dyn Write) -> io::Result<()>,
}

/// All of them.
pub const FORMATS: [Format; 4] = [
    Format {
        name: "csv",
        help: "a line for each run and metric, with the columns of runs.parquet",
        write: csv::write,
    },
    Format {
        name: "json",
        help: "everything statistics are made of, as one document",
        write: json::write,
    },
    Format {
        name: "markdown",
        help: "a table for each cell, for a pull request",
        write: markdown::write,
    },
    Format {
        name: "pts",
        help: "composite.xml, as the Phoronix Test Suite shows and merges it",
        write: pts::write,
    },
];

impl Format {
    /// Writes results; `date` is when they were made, `YYYY-MM-DD hh:mm`, where that is known.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(
        &self,
        results: &Results,
        date: Option<&str>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        (self.write)(results, date, to)
    }
}
