//! The reader of CSV.

use super::columns::{Columns, is_comment, is_control};
use crate::error::{ErrorKind, Place, TraceError, shown};
use crate::input::Input;
use crate::notes::Notes;
use crate::options::ReadOptions;
use crate::record::Record;
use crate::source::{NOTE_UNALIGNED, Source};

const CONTROLS: &str = "control rows (exits, priorities, plugs ...) skipped; only `explain` uses \
                        them";

pub(in crate::formats) struct CsvReader {
    input: Input,
    columns: Columns,
    /// The first line, if it is a record and not a header.
    first: Option<Vec<u8>>,
    device: Option<u32>,
    line: u64,
}

/// Returns the first line that is no comment, with its number.
fn first_line(input: &mut Input) -> Result<(u64, Vec<u8>), TraceError> {
    let mut n = 0;
    loop {
        n += 1;
        match input.line(Place::Line(n))? {
            Some(line) if is_comment(line) => {}
            line => return Ok((n, line.unwrap_or(b"").to_vec())),
        }
    }
}

impl CsvReader {
    /// Makes a reader of a file with these columns. The first line is skipped if it is no record.
    pub fn with(
        mut input: Input,
        options: &ReadOptions,
        mut columns: Columns,
        notes: &mut Notes,
    ) -> Result<Self, TraceError> {
        let (n, first) = first_line(&mut input)?;
        columns.separate(&first);
        let record = columns.parse(&first).is_ok();
        if !record && options.columns.is_some() {
            notes.say(format!("line {n} skipped as a header: {}", shown(&first)));
        }
        Ok(CsvReader {
            input,
            columns,
            first: record.then_some(first),
            device: options.device,
            line: if record { n - 1 } else { n },
        })
    }

    pub fn new(mut input: Input, options: &ReadOptions) -> Result<Self, TraceError> {
        let (n, line) = first_line(&mut input)?;
        let positional = Columns::positional();
        let headless = positional.parse(&line).is_ok() || is_control(&line);
        let columns = if headless {
            positional
        } else {
            Columns::of_header(&line).map_err(|(what, remedy)| {
                input.error(ErrorKind::Broken, Place::Line(n), what, remedy)
            })?
        };
        Ok(CsvReader {
            input,
            columns,
            first: headless.then_some(line),
            device: options.device,
            line: if headless { n - 1 } else { n },
        })
    }
}

impl Source for CsvReader {
    fn next(&mut self, notes: &mut Notes) -> Result<Option<Record>, TraceError> {
        loop {
            self.line += 1;
            let place = Place::Line(self.line);
            let first = self.first.take();
            let line = match &first {
                Some(line) => line.as_slice(),
                None => match self.input.line(place)? {
                    Some(line) => line,
                    None => {
                        self.input.note_cut(notes);
                        return Ok(None);
                    }
                },
            };
            if is_comment(line) {
                continue;
            }
            match self.columns.parse(line) {
                Ok(row) => {
                    notes.device(row.record.device);
                    if self.device.is_some_and(|d| d != row.record.device) {
                        continue;
                    }
                    if row.unaligned {
                        notes.count(NOTE_UNALIGNED, place);
                    }
                    return Ok(Some(row.record));
                }
                Err(_) if self.columns.is_positional() && is_control(line) => {
                    notes.count(CONTROLS, place);
                }
                Err((column, found)) => {
                    let what = format!("cannot read {column}: {}", shown(found));
                    if self.input.forgive_line() {
                        self.input.note_cut(notes);
                        return Ok(None);
                    }
                    let remedy = "fields are as the header or --columns names them";
                    return Err(self.input.error(ErrorKind::Broken, place, what, remedy));
                }
            }
        }
    }
    fn place(&self) -> (&str, Place) {
        (self.input.name(), Place::Line(self.line))
    }
}
