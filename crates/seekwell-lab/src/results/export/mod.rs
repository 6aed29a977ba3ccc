//! Exports results for other programs. Each format has its own module. Names from experiments and
//! imports are escaped, so that they cannot end a table cell, a tag or a line.

mod csv;
mod json;
mod markdown;
mod pts;

use super::Results;
use std::io::{self, Write};

/// An export format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Name of the format on the command line.
    pub name: &'static str,
    /// What the format contains or is used for.
    pub help: &'static str,
    write: fn(&Results, Option<&str>, &mut dyn Write) -> io::Result<()>,
}

/// All export formats.
pub const FORMATS: [Format; 4] = [
    Format {
        name: "csv",
        help: "one line per run and metric, with the columns of runs.parquet",
        write: csv::write,
    },
    Format {
        name: "json",
        help: "all data for the statistics, as one document",
        write: json::write,
    },
    Format {
        name: "markdown",
        help: "one table per cell, for a pull request",
        write: markdown::write,
    },
    Format {
        name: "pts",
        help: "composite.xml for the Phoronix Test Suite",
        write: pts::write,
    },
];

impl Format {
    /// Writes results. `date` is the time at which the results were measured, as `YYYY-MM-DD
    /// hh:mm`, if it is known.
    ///
    /// # Errors
    /// Returns the errors of the writer.
    pub fn write(
        &self,
        results: &Results,
        date: Option<&str>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        (self.write)(results, date, to)
    }
}
