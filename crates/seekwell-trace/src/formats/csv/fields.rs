//! Columns of text without a header of Seekwell: fields that the user numbers, and headers of other
//! programs.

use super::columns::{Columns, Fault, op_of};
use seekwell_core::{Flags, Op};

/// Highest number of a field in `--columns`.
const FIELD_MAX: usize = 256;

/// The separator of fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Separator {
    Byte(u8),
    /// One or more blanks or tabs.
    Blanks,
}

impl Separator {
    /// Returns the next field of `rest`, and removes it.
    #[inline]
    pub(super) fn next<'a>(self, rest: &mut Option<&'a [u8]>) -> Option<&'a [u8]> {
        let line = (*rest)?;
        let (line, end) = match self {
            Separator::Byte(b) => (line, memchr::memchr(b, line)),
            Separator::Blanks => {
                let line = line.trim_ascii();
                (line, line.iter().position(u8::is_ascii_whitespace))
            }
        };
        *rest = end.map(|end| &line[end + 1..]);
        Some(line[..end.unwrap_or(line.len())].trim_ascii())
    }
}

impl Columns {
    /// Parses the value of `--columns`, for example `t_s=1,op=3,sector=4,sectors=5`: names of
    /// columns with the numbers of fields, from 1. `op=read` applies to all records.
    pub fn of_option(text: &str) -> Result<Columns, Fault> {
        let mut columns = Columns {
            open: true,
            ..Columns::new([])
        };
        for part in text.split(',').map(str::trim) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let number = value.parse().ok().filter(|n| (1..=FIELD_MAX).contains(n));
            if let Some(field) = number {
                columns.put(field - 1, name.as_bytes())?;
                continue;
            }
            columns.op = op_of(value.as_bytes()).filter(|_| name == "op" && columns.op.is_none());
            if columns.op.is_none() {
                let remedy = "write NAME=NUMBER, for instance t_s=1,op=2,sector=3,sectors=4, or \
                              op=read";
                return Err((
                    format!("\"{part}\" in --columns does not give a field number"),
                    remedy.to_owned(),
                ));
            }
        }
        columns.complete("add it to --columns")
    }

    /// Returns the columns of a header with the names of another program. The names are in
    /// `others`, with the content of the field; fields with other names are not used. Returns
    /// `None` if a required column is missing.
    pub(in crate::formats) fn of_other_header(
        line: &[u8],
        others: &[(&str, &str)],
        op: Option<Op>,
    ) -> Option<Columns> {
        let mut columns = Columns {
            op: op.map(|op| (op, Flags::empty())),
            open: true,
            ..Columns::new([])
        };
        for (field, w) in line
            .split(|&c| c == b',')
            .map(<[u8]>::trim_ascii)
            .enumerate()
        {
            if let Some(other) = others
                .iter()
                .find(|o| w.eq_ignore_ascii_case(o.0.as_bytes()))
            {
                columns.put(field, other.1.as_bytes()).ok()?;
            }
        }
        columns.complete("").ok()
    }

    /// Selects the separator that gives enough fields: comma, semicolon, tab, or blanks.
    pub(super) fn separate(&mut self, line: &[u8]) {
        let enough = |b: &u8| memchr::memchr_iter(*b, line).count() + 1 >= self.fields.len();
        let byte = if self.fields.len() > 1 {
            b",;\t|".iter().find(|b| enough(b))
        } else {
            None
        };
        self.separator = byte.map_or(Separator::Blanks, |&b| Separator::Byte(b));
    }
}
