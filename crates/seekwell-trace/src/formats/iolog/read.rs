//! The reader of iologs. It assigns consecutive address ranges to the files of an iolog.

use crate::error::{ErrorKind, Place, TraceError, shown};
use crate::input::Input;
use crate::notes::Notes;
use crate::options::ReadOptions;
use crate::record::{Record, SECTOR_END_MAX};
use crate::source::{NOTE_UNALIGNED, Source};
use crate::text::{number, word};
use seekwell_core::Op;
use seekwell_core::units::SECTOR_BYTES;
use std::collections::BTreeMap;

const REMEDY: &str = "the line should read \"[TIME] FILE read|write|trim|sync|datasync|wait OFFSET \
                      LENGTH\" or \"[TIME] FILE add|open|close\", TIME in version 3 only";
/// The address range of each file begins at a multiple of this number of sectors (1 MiB).
const ALIGN_SECTORS: u64 = 2048;
/// Maximum length of a file name in fio, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Returns the version that the first line gives.
pub(super) fn version_of(head: &[u8]) -> Option<u64> {
    let line = head.split(|&c| c == b'\n').next()?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let digits = line
        .strip_prefix(b"fio version ")?
        .strip_suffix(b" iolog")?;
    number(digits)
}

#[derive(Clone, Copy)]
enum Act {
    Wait,
    File,
    Io(Op),
}

/// A parsed line.
struct Parsed<'a> {
    time: u64,
    file: &'a [u8],
    act: Act,
    offset: u64,
    length: u64,
}

type Wrong<'a> = (&'static str, &'a [u8]);

fn parse(line: &[u8], version: u32) -> Result<Option<Parsed<'_>>, Wrong<'_>> {
    let mut at = 0;
    let mut next = || word(line, &mut at);
    let mut first = next();
    if first.is_empty() {
        return Ok(None);
    }
    let mut time = 0;
    if version == 3 {
        time = number(first).ok_or(("time", first))?;
        first = next();
    }
    let file = first;
    if file.is_empty() || file.len() > NAME_BYTES_MAX {
        return Err(("file name (1 to 256 bytes)", file));
    }
    let action = next();
    let act = match action {
        b"read" => Act::Io(Op::Read),
        b"write" => Act::Io(Op::Write),
        b"trim" => Act::Io(Op::Discard),
        b"sync" | b"datasync" => Act::Io(Op::Flush),
        b"wait" if version == 2 => Act::Wait,
        b"add" | b"open" | b"close" => Act::File,
        _ => return Err(("action", action)),
    };
    let (mut offset, mut length) = (0, 0);
    if !matches!(act, Act::File) {
        let w = next();
        offset = number(w).ok_or(("offset", w))?;
        let w = next();
        length = number(w).ok_or(("length", w))?;
    }
    let rest = next();
    if !rest.is_empty() {
        return Err(("end of the line (file names have no blanks)", rest));
    }
    Ok(Some(Parsed {
        time,
        file,
        act,
        offset,
        length,
    }))
}

/// Returns the first sector and the end sector of a byte range, extended to whole sectors. Returns
/// `None` if the range is beyond any device.
fn sectors_of(offset: u64, length: u64) -> Option<(u64, u64)> {
    let end = offset.checked_add(length)?.div_ceil(SECTOR_BYTES);
    (end <= SECTOR_END_MAX).then_some((offset / SECTOR_BYTES, end))
}

/// The address range of a file, in sectors.
#[derive(Clone, Copy)]
struct Range {
    base: u64,
    span: u64,
}

pub(super) struct IologReader {
    input: Input,
    version: u32,
    unit_ns: u64,
    pipe_span: u64,
    names_max: usize,
    files: BTreeMap<Vec<u8>, Range>,
    last: (Vec<u8>, Range),
    clock_ns: u64,
    line: u64,
}

impl IologReader {
    pub fn new(mut input: Input, options: &ReadOptions, version: u32) -> Result<Self, TraceError> {
        let place = Place::Line(1);
        let head = input.line(place)?.unwrap_or(b"");
        let (found, text) = (version_of(head), shown(head));
        if found != Some(u64::from(version)) {
            let (kind, what, remedy) = match found {
                Some(v @ (2 | 3)) => (
                    ErrorKind::UnknownFormat,
                    format!("is a fio iolog of version {v}, not {version}"),
                    format!("give the format fio-iolog-v{v}, or no format"),
                ),
                Some(v) => (
                    ErrorKind::Unsupported,
                    format!("fio iolog of version {v}; 2 and 3 are read"),
                    "convert it with the version of fio that wrote it".to_string(),
                ),
                None => (
                    ErrorKind::UnknownFormat,
                    format!("is not a fio iolog: it begins with {text}"),
                    format!("the first line should read \"fio version {version} iolog\""),
                ),
            };
            return Err(input.error(kind, place, what, remedy));
        }
        let whole = Range {
            base: 0,
            span: SECTOR_END_MAX,
        };
        Ok(IologReader {
            input,
            version,
            unit_ns: options.iolog_unit.ns(),
            pipe_span: options.iolog_span_sectors.clamp(1, SECTOR_END_MAX),
            names_max: options.limits.names_max,
            files: BTreeMap::new(),
            last: (Vec::new(), whole),
            clock_ns: 0,
            line: 1,
        })
    }

    /// Returns the address range of `file`. When a second file appears, the ranges of all files
    /// must be determined.
    fn place_file(&mut self, file: &[u8], notes: &mut Notes) -> Result<Range, TraceError> {
        if let Some(&r) = self.files.get(file) {
            return Ok(r);
        }
        let place = Place::Line(self.line);
        if self.files.len() >= self.names_max {
            let what = format!("more than {} files", self.names_max);
            return Err(self.input.error(
                ErrorKind::Limit,
                place,
                what,
                "replay the files one by one",
            ));
        }
        if self.files.is_empty() {
            self.files.insert(file.to_vec(), self.last.1);
            return Ok(self.last.1);
        }
        if self.files.len() == 1
            && let Some(again) = self.input.again()
        {
            self.look_ahead(again?, notes)?;
            if let Some(&r) = self.files.get(file) {
                return Ok(r);
            }
        }
        // If the trace is a pipe, or if the file has grown since, each further file gets a range of
        // the same size.
        let span = self.pipe_span;
        if self.files.len() == 1 {
            let first = Range { base: 0, span };
            for (name, range) in &mut self.files {
                *range = first;
                if self.last.0 == *name {
                    self.last.1 = first;
                }
            }
            notes.say(format!(
                "several files in a stream that cannot be read twice: each gets an address range \
                 of {span} sectors, in order of appearance"
            ));
        }
        let top = self
            .files
            .values()
            .map(|r| r.base.saturating_add(r.span))
            .max();
        let range = Range {
            base: top.unwrap_or(0),
            span,
        };
        if range.base.saturating_add(span) > SECTOR_END_MAX {
            let remedy = "save the trace to a file and use that: the sizes of its files are then \
                          known";
            return Err(self
                .input
                .error(ErrorKind::Range, place, "too many files", remedy));
        }
        notes.say(range_text(file, range));
        self.files.insert(file.to_vec(), range);
        Ok(range)
    }

    /// Reads the whole trace once to determine the size of each of its files.
    fn look_ahead(&mut self, mut input: Input, notes: &mut Notes) -> Result<(), TraceError> {
        // Ignore invalid lines here, because the main pass reports them.
        let mut order: Vec<(Vec<u8>, u64)> = Vec::new();
        let mut index: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        while let Ok(Some(line)) = input.line(Place::File) {
            let Ok(Some(p)) = parse(line, self.version) else {
                continue;
            };
            let i = match index.get(p.file) {
                Some(&i) => i,
                None if order.len() >= self.names_max => break,
                None => {
                    index.insert(p.file.to_vec(), order.len());
                    order.push((p.file.to_vec(), 0));
                    order.len() - 1
                }
            };
            if let (Act::Io(_), Some((_, end))) = (p.act, sectors_of(p.offset, p.length)) {
                order[i].1 = order[i].1.max(end);
            }
        }
        let mut base = 0u64;
        for (name, end) in order {
            let span = end.div_ceil(ALIGN_SECTORS).max(1) * ALIGN_SECTORS;
            let range = Range { base, span };
            base = base.saturating_add(span);
            if base > SECTOR_END_MAX {
                let remedy = "no device is that large: replay the files one by one";
                let what = "the files together exceed any device";
                return Err(self
                    .input
                    .error(ErrorKind::Range, Place::File, what, remedy));
            }
            notes.say(range_text(&name, range));
            self.files.insert(name, range);
        }
        Ok(())
    }

    fn record(
        &mut self,
        op: Op,
        bytes: (u64, u64),
        notes: &mut Notes,
    ) -> Result<Record, TraceError> {
        let place = Place::Line(self.line);
        let (offset, length) = bytes;
        if op == Op::Flush {
            return Ok(Record::new(self.clock_ns, op, 0, 0));
        }
        let within = sectors_of(offset, length);
        let n = within.and_then(|(from, end)| u32::try_from(end - from).ok());
        let (Some((from, end)), Some(n)) = (within, n) else {
            let what = format!("offset {offset} and length {length} lie beyond any device");
            return Err(self.input.error(
                ErrorKind::Range,
                place,
                what,
                "offset and length are in bytes",
            ));
        };
        let range = self.last.1;
        if end > range.span {
            let what = format!(
                "offset {offset} lies beyond the file's {} sectors",
                range.span
            );
            let remedy = "save the trace to a file and use that: the sizes of its files are then \
                known";
            return Err(self.input.error(ErrorKind::Range, place, what, remedy));
        }
        if offset % SECTOR_BYTES != 0 || length % SECTOR_BYTES != 0 {
            notes.count(NOTE_UNALIGNED, place);
        }
        let n = if length == 0 { 0 } else { n };
        Ok(Record::new(self.clock_ns, op, range.base + from, n))
    }

    fn too_late(&self) -> TraceError {
        let place = Place::Line(self.line);
        let what = "the time is above 584 years";
        self.input
            .error(ErrorKind::Range, place, what, "times are in microseconds")
    }
}

fn range_text(file: &[u8], r: Range) -> String {
    let name = shown(file);
    format!(
        "file {name} lies at sectors {} to {}",
        r.base,
        r.base + r.span
    )
}

impl Source for IologReader {
    fn next(&mut self, notes: &mut Notes) -> Result<Option<Record>, TraceError> {
        loop {
            self.line += 1;
            let place = Place::Line(self.line);
            let version = self.version;
            let Some(line) = self.input.line(place)? else {
                self.input.note_cut(notes);
                return Ok(None);
            };
            let p = match parse(line, version) {
                Ok(None) => continue,
                Ok(Some(p)) => p,
                Err((what, found)) => {
                    let what = format!("cannot read the {what}: {}", shown(found));
                    if self.input.forgive_line() {
                        self.input.note_cut(notes);
                        return Ok(None);
                    }
                    return Err(self.input.error(ErrorKind::Broken, place, what, REMEDY));
                }
            };
            let (act, time, bytes) = (p.act, p.time, (p.offset, p.length));
            let new_file = (self.last.0 != p.file).then(|| p.file.to_vec());
            if let Some(file) = new_file {
                let range = self.place_file(&file, notes)?;
                self.last = (file, range);
            }
            if version == 3 {
                let t = time.checked_mul(self.unit_ns);
                self.clock_ns = t.ok_or_else(|| self.too_late())?;
            }
            match act {
                Act::Io(op) => return self.record(op, bytes, notes).map(Some),
                Act::File => {}
                Act::Wait => {
                    let wait_ns = bytes.0.checked_mul(1000);
                    let t = wait_ns.and_then(|w| self.clock_ns.checked_add(w));
                    self.clock_ns = t.ok_or_else(|| self.too_late())?;
                }
            }
        }
    }
    fn place(&self) -> (&str, Place) {
        (self.input.name(), Place::Line(self.line))
    }
    fn version(&self) -> Option<u32> {
        Some(self.version)
    }
}
