//! Seekwell's own interchange: a CSV with a header, one record a line, nothing lost.
//!
//! Columns, of which `op`, `sector` and `sectors` must be there, in any order: `t_ns`, `op` (R, W,
//! D discard, F flush, Z write-zeroes), `flags` (names joined by `+`), `sector`, `sectors`, `pid`,
//! `cpu`, `ioprio` (`class:level`, class 0 to 3), `cgroup`, `device` (`major:minor`), `t_insert`,
//! `t_issue`, `t_complete` (ns on the clock of `t_ns`), `error`. An empty field is an unknown one.
//! No quotes, no blanks. A line that begins with `#` is a comment.

use crate::error::{ErrorKind, Place, TraceError, shown};
use crate::input::Input;
use crate::notes::Notes;
use crate::options::{ReadOptions, WriteOptions};
use crate::reader::Source;
use crate::record::{Record, device_number};
use crate::registry::{Carries, FormatInfo, Has};
use crate::text::{number, push_number};
use crate::writer::{Output, Writer};
use seekwell_core::{CgroupId, Flags, IoPrio, Op, Sector, Sectors, TaskId};
use std::io::Write;

/// Its line in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "csv",
    summary: "Seekwell's own interchange: CSV with a header",
    extensions: &["csv"],
    help: "Everything a record can tell, for exchange with scripts and notebooks. Columns: t_ns, \
           op (R, W, D, F, Z), flags (sync+meta+...), sector, sectors, pid, cpu, ioprio \
           (class:level), cgroup, device (major:minor), t_insert, t_issue, t_complete, error. \
           Columns but op, sector and sectors may be missing, fields may be empty.",
    carries: Carries {
        pids: Has::Maybe,
        completions: Has::Maybe,
        issues: Has::Maybe,
        ioprio: Has::Maybe,
        flags: Has::Yes,
        time: "1 ns",
    },
    detect,
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        Ok(Box::new(CsvReader::new(input, options)?))
    },
    create: Some(|out, options| Ok(Box::new(CsvWriter::new(out, options)))),
};

/// The columns, in the order in which they are written.
const COLUMNS: [&str; 14] = [
    "t_ns",
    "op",
    "flags",
    "sector",
    "sectors",
    "pid",
    "cpu",
    "ioprio",
    "cgroup",
    "device",
    "t_insert",
    "t_issue",
    "t_complete",
    "error",
];
/// Indices into [`COLUMNS`] of those that must be there.
const NEEDED: [usize; 3] = [1, 3, 4];

const OPS: [(Op, u8); 5] = [
    (Op::Read, b'R'),
    (Op::Write, b'W'),
    (Op::Discard, b'D'),
    (Op::Flush, b'F'),
    (Op::WriteZeroes, b'Z'),
];

const FLAGS: [(Flags, &str); 10] = [
    (Flags::SYNC, "sync"),
    (Flags::NOIDLE, "noidle"),
    (Flags::META, "meta"),
    (Flags::PRIO, "prio"),
    (Flags::RAHEAD, "ahead"),
    (Flags::PREFLUSH, "preflush"),
    (Flags::FUA, "fua"),
    (Flags::NOMERGE, "nomerge"),
    (Flags::BARRIER, "barrier"),
    (Flags::ASYNC_READ, "async"),
];

/// The columns a header names; the name that is not one.
fn header(line: &[u8]) -> Result<Vec<usize>, &[u8]> {
    let find = |w| COLUMNS.iter().position(|c| c.as_bytes() == w).ok_or(w);
    let columns = line
        .split(|&c| c == b',')
        .map(find)
        .collect::<Result<Vec<_>, _>>()?;
    match columns
        .iter()
        .enumerate()
        .find(|(i, c)| columns[..*i].contains(c))
    {
        Some((_, &twice)) => Err(COLUMNS[twice].as_bytes()),
        None => Ok(columns),
    }
}

fn is_comment(line: &[u8]) -> bool {
    line.is_empty() || line[0] == b'#'
}

fn detect(head: &[u8]) -> bool {
    let mut lines = head
        .split(|&c| c == b'\n')
        .map(|l| l.strip_suffix(b"\r").unwrap_or(l));
    let first = lines.find(|l| !is_comment(l));
    first.is_some_and(|l| header(l).is_ok_and(|c| NEEDED.iter().all(|n| c.contains(n))))
}

struct CsvReader {
    input: Input,
    columns: Vec<usize>,
    device: Option<u32>,
    line: u64,
}

impl CsvReader {
    fn new(mut input: Input, options: &ReadOptions) -> Result<Self, TraceError> {
        let mut n = 0;
        let line = loop {
            n += 1;
            match input.line(Place::Line(n))? {
                Some(line) if is_comment(line) => {}
                line => break line.unwrap_or(b"").to_vec(),
            }
        };
        let place = Place::Line(n);
        let columns = header(&line).map_err(|w| {
            let what = format!("no column is called {}, or it comes twice", shown(w));
            let remedy = format!("the columns are {}", COLUMNS.join(","));
            input.error(ErrorKind::Broken, place, what, remedy)
        })?;
        if let Some(missing) = NEEDED.iter().find(|n| !columns.contains(n)) {
            let what = format!("the column {} is missing", COLUMNS[*missing]);
            return Err(input.error(ErrorKind::Broken, place, what, "add it to the header"));
        }
        Ok(CsvReader {
            input,
            columns,
            device: options.device,
            line: n,
        })
    }
}

fn pair(w: &[u8]) -> Option<(u64, u64)> {
    let colon = memchr::memchr(b':', w)?;
    Some((number(&w[..colon])?, number(&w[colon + 1..])?))
}

fn flags_of(w: &[u8]) -> Option<Flags> {
    let mut flags = Flags::empty();
    for name in w.split(|&c| c == b'+') {
        flags |= FLAGS.iter().find(|f| f.1.as_bytes() == name)?.0;
    }
    Some(flags)
}

/// Puts one field where it belongs; `None` if it cannot be read.
fn set(r: &mut Record, column: usize, w: &[u8]) -> Option<()> {
    if w.is_empty() {
        // Unknown is fine where a record can say so, and time may stand still.
        return (!NEEDED.contains(&column)).then_some(());
    }
    match column {
        0 => r.t_ns = number(w)?,
        1 => r.op = OPS.iter().find(|o| w == [o.1])?.0,
        2 => r.flags = flags_of(w)?,
        3 => r.sector = Sector(number(w)?),
        4 => r.sectors = Sectors(number(w)?.try_into().ok()?),
        5 => r.task = Some(TaskId(number(w)?.try_into().ok()?)),
        6 => r.cpu = Some(number(w)?.try_into().ok()?),
        7 => {
            let (class, level) = pair(w)?;
            r.ioprio = Some(IoPrio::from_numbers(class, level)?);
        }
        8 => r.cgroup = CgroupId(number(w)?.try_into().ok()?),
        9 => {
            let (major, minor) = pair(w)?;
            if major >= 1 << 12 || minor >= 1 << 20 {
                return None;
            }
            r.device = device_number(major as u32, minor as u32);
        }
        10 => r.insert_ns = Some(number(w)?),
        11 => r.issue_ns = Some(number(w)?),
        12 => r.complete_ns = Some(number(w)?),
        _ => r.error = number(w)?.try_into().ok()?,
    }
    Some(())
}

fn parse<'a>(line: &'a [u8], columns: &[usize]) -> Result<Record, (&'static str, &'a [u8])> {
    let mut r = Record::new(0, Op::Read, 0, 0);
    let mut words = line.split(|&c| c == b',');
    for &column in columns {
        let w = words.next().ok_or((COLUMNS[column], &line[line.len()..]))?;
        set(&mut r, column, w).ok_or((COLUMNS[column], w))?;
    }
    match words.next() {
        Some(w) => Err(("end of the line", w)),
        None => Ok(r),
    }
}

impl Source for CsvReader {
    fn next(&mut self, notes: &mut Notes) -> Result<Option<Record>, TraceError> {
        loop {
            self.line += 1;
            let place = Place::Line(self.line);
            let Some(line) = self.input.line(place)? else {
                self.input.note_cut(notes);
                return Ok(None);
            };
            if is_comment(line) {
                continue;
            }
            match parse(line, &self.columns) {
                Ok(r) if self.device.is_some_and(|d| d != r.device) => {}
                Ok(r) => return Ok(Some(r)),
                Err((column, found)) => {
                    let what = format!("cannot read {column}: {}", shown(found));
                    if self.input.forgive_line() {
                        self.input.note_cut(notes);
                        return Ok(None);
                    }
                    let remedy = "fields are as the header names them, separated by commas";
                    return Err(self.input.error(ErrorKind::Broken, place, what, remedy));
                }
            }
        }
    }
    fn place(&self) -> (&str, Place) {
        (self.input.name(), Place::Line(self.line))
    }
}

/// Writes all columns.
pub struct CsvWriter {
    out: Output,
}

impl CsvWriter {
    /// Writes to `out`.
    pub fn new(out: Box<dyn Write + Send>, options: &WriteOptions) -> Self {
        let mut out = Output::new(out, options);
        out.buffer().extend_from_slice(COLUMNS.join(",").as_bytes());
        out.buffer().push(b'\n');
        CsvWriter { out }
    }
}

impl Writer for CsvWriter {
    fn write(&mut self, r: &Record) -> Result<(), TraceError> {
        let buf = self.out.buffer();
        push_number(buf, r.t_ns, 0, b' ');
        buf.push(b',');
        buf.extend(OPS.iter().find(|o| o.0 == r.op).map(|o| o.1));
        buf.push(b',');
        let mut names = FLAGS.iter().filter(|f| r.flags.contains(f.0));
        if let Some(first) = names.next() {
            buf.extend_from_slice(first.1.as_bytes());
        }
        for f in names {
            buf.push(b'+');
            buf.extend_from_slice(f.1.as_bytes());
        }
        let mut field = |n: Option<u64>| {
            buf.push(b',');
            if let Some(n) = n {
                push_number(buf, n, 0, b' ');
            }
        };
        field(Some(r.sector.0));
        field(Some(u64::from(r.sectors.0)));
        field(r.task.map(|t| u64::from(t.0)));
        field(r.cpu.map(u64::from));
        field(r.ioprio.map(|p| p.class as u64));
        if let Some(p) = r.ioprio {
            buf.push(b':');
            push_number(buf, u64::from(p.level), 0, b' ');
        }
        let mut field = |n: Option<u64>| {
            buf.push(b',');
            if let Some(n) = n {
                push_number(buf, n, 0, b' ');
            }
        };
        field(Some(u64::from(r.cgroup.0)));
        field(Some(u64::from(r.device >> 20)));
        buf.push(b':');
        push_number(buf, u64::from(r.device & 0xf_ffff), 0, b' ');
        for n in [
            r.insert_ns,
            r.issue_ns,
            r.complete_ns,
            Some(u64::from(r.error)),
        ] {
            buf.push(b',');
            if let Some(n) = n {
                push_number(buf, n, 0, b' ');
            }
        }
        buf.push(b'\n');
        self.out.done_one()
    }
    fn finish(&mut self) -> Result<(), TraceError> {
        self.out.finish()
    }
}
