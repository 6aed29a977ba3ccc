//! Common parts of CSV collections with many volumes. Each line is one request, in bytes, on a
//! named volume.
//!
//! A collection has one file per volume, or one file with all volumes. `ReadOptions::volume`
//! selects a volume. If it is not set, all volumes are read, and [`Record::device`] distinguishes
//! them.

use crate::error::{ErrorKind, Place, TraceError, shown};
use crate::input::Input;
use crate::notes::Notes;
use crate::options::ReadOptions;
use crate::record::{Record, SECTOR_END_MAX};
use crate::source::{NOTE_UNALIGNED, Source};
use seekwell_core::Op;
use seekwell_core::units::SECTOR_BYTES;
use std::collections::BTreeMap;

/// Note that counts lines without a request.
const NO_OPERATION: &str = "lines without an operation (nothing was captured) skipped";

/// A parsed line.
pub(super) struct Row<'a> {
    /// Time on the clock of the collection, in ns.
    pub t_ns: u64,
    /// Operation; `None` if the line has none.
    pub op: Option<Op>,
    /// Position of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Volume of the request.
    pub volume: Volume<'a>,
    /// Time from `t_ns` to the completion, in ns.
    pub response_ns: Option<u64>,
}

/// The name of a volume in a collection.
#[derive(Clone, Copy)]
pub(super) enum Volume<'a> {
    /// A number.
    Number(u32),
    /// The name of a host, and the number of a disk.
    Disk(&'a [u8], &'a [u8]),
}

/// Name of the column and content of an invalid field.
pub(super) type Wrong<'a> = (&'static str, &'a [u8]);
/// The function that parses a line.
pub(super) type Parse = fn(&[u8]) -> Result<Row<'_>, Wrong<'_>>;

/// Splits a line at commas into exactly `N` fields.
#[inline]
pub(super) fn fields<const N: usize>(line: &[u8]) -> Result<[&[u8]; N], Wrong<'_>> {
    exactly(line, line.split(|&c| c == b','))
}

/// Splits a line at blanks and tabs into exactly `N` fields.
#[inline]
pub(super) fn blank_fields<const N: usize>(line: &[u8]) -> Result<[&[u8]; N], Wrong<'_>> {
    let words = line.split(|c| c.is_ascii_whitespace());
    exactly(line, words.filter(|w| !w.is_empty()))
}

#[inline]
fn exactly<'a, const N: usize>(
    line: &'a [u8],
    mut words: impl Iterator<Item = &'a [u8]>,
) -> Result<[&'a [u8]; N], Wrong<'a>> {
    let mut out = [&line[..0]; N];
    for slot in &mut out {
        *slot = words.next().ok_or(("all fields of the format", line))?;
    }
    match words.next() {
        None => Ok(out),
        Some(more) => Err(("end of the line", more)),
    }
}

/// Returns true if the first complete lines can be parsed. `header` is an optional first line.
pub(super) fn looks_like(head: &[u8], parse: Parse, header: Option<&[u8]>) -> bool {
    let mut lines = head.split(|&c| c == b'\n').map(<[u8]>::trim_ascii_end);
    let mut seen = 0;
    for line in lines.by_ref().take(4) {
        if line.is_empty() || header.is_some_and(|h| line.eq_ignore_ascii_case(h)) {
            continue;
        }
        if parse(line).is_err() {
            // The last line may be incomplete.
            return seen > 0 && lines.next().is_none();
        }
        seen += 1;
    }
    seen > 0
}

/// Reads a collection.
pub(super) struct VolumesReader {
    input: Input,
    parse: Parse,
    header: Option<&'static [u8]>,
    remedy: &'static str,
    wanted: Option<Wanted>,
    disks: DiskNames,
    line: u64,
}

/// The disks of a trace that names them. They are numbered in the order in which they appear.
pub(super) struct DiskNames {
    /// Number of each disk, by name.
    numbers: BTreeMap<Vec<u8>, u32>,
    /// Name of each disk, by number.
    names: Vec<String>,
    names_max: usize,
}

impl DiskNames {
    /// Makes an empty list with room for `names_max` disks.
    pub fn new(names_max: usize) -> Self {
        DiskNames {
            numbers: BTreeMap::new(),
            names: Vec::new(),
            names_max,
        }
    }

    /// Returns the number of a disk, and assigns one if the disk is new. Returns `None` if there
    /// are too many disks.
    pub fn number(&mut self, name: &[u8]) -> Option<u32> {
        if let Some(&n) = self.numbers.get(name) {
            return Some(n);
        }
        if self.names.len() >= self.names_max {
            return None;
        }
        let n = self.names.len() as u32;
        let shown = String::from_utf8_lossy(&name[..name.len().min(64)]);
        self.names.push(shown.into_owned());
        self.numbers.insert(name.to_vec(), n);
        Some(n)
    }

    /// Returns the name of the disk with this number.
    pub fn name(&self, number: u32) -> Option<&str> {
        self.names.get(number as usize).map(String::as_str)
    }

    /// Returns the error for a trace with too many disks.
    pub fn too_many(&self, input: &Input, place: Place) -> TraceError {
        let what = format!("more than {} disks", self.names_max);
        let remedy = "is this the right format? No collection has as many";
        input.error(ErrorKind::Limit, place, what, remedy)
    }
}

/// The volume that the user selected.
enum Wanted {
    Number(u32),
    Disk(Vec<u8>),
}

/// Returns the name of a disk in a uniform notation, for any separator between host and number
/// (`usr_0`, `usr,0`, `usr.0`).
fn disk_name(text: &[u8]) -> Vec<u8> {
    let plain = |c: &u8| {
        if matches!(c, b',' | b'.' | b':') {
            b'_'
        } else {
            *c
        }
    };
    text.iter().map(plain).collect()
}

impl VolumesReader {
    /// Makes a reader. The first line is skipped if it equals `header`. `remedy` describes a valid
    /// line.
    pub fn new(
        input: Input,
        options: &ReadOptions,
        parse: Parse,
        header: Option<&'static [u8]>,
        remedy: &'static str,
    ) -> Self {
        let wanted = options.volume.as_deref().map(|v| match v.parse() {
            Ok(n) => Wanted::Number(n),
            Err(_) => Wanted::Disk(disk_name(v.as_bytes())),
        });
        VolumesReader {
            input,
            parse,
            header,
            remedy,
            wanted,
            disks: DiskNames::new(options.limits.names_max),
            line: 0,
        }
    }
}

impl Source for VolumesReader {
    fn next(&mut self, notes: &mut Notes) -> Result<Option<Record>, TraceError> {
        loop {
            self.line += 1;
            let place = Place::Line(self.line);
            let Some(line) = self.input.line(place)? else {
                self.input.note_cut(notes);
                return Ok(None);
            };
            let line = line.trim_ascii_end();
            let titles = self.header.is_some_and(|h| line.eq_ignore_ascii_case(h));
            if line.is_empty() || (self.line == 1 && titles) {
                continue;
            }
            let row = match (self.parse)(line) {
                Ok(row) => row,
                Err((what, found)) => {
                    let what = format!("cannot read {what}: {}", shown(found));
                    if self.input.forgive_line() {
                        self.input.note_cut(notes);
                        return Ok(None);
                    }
                    return Err(self
                        .input
                        .error(ErrorKind::Broken, place, what, self.remedy));
                }
            };
            let (device, wanted) = match row.volume {
                Volume::Number(n) => (
                    n,
                    match &self.wanted {
                        None => true,
                        Some(Wanted::Number(w)) => *w == n,
                        Some(Wanted::Disk(_)) => false,
                    },
                ),
                Volume::Disk(host, disk) => {
                    let name = [host, b"_", disk].concat();
                    let wanted = match &self.wanted {
                        None => true,
                        Some(Wanted::Disk(w)) => *w == name,
                        Some(Wanted::Number(w)) => disk == w.to_string().as_bytes(),
                    };
                    let Some(n) = self.disks.number(&name) else {
                        return Err(self.disks.too_many(&self.input, place));
                    };
                    (n, wanted)
                }
            };
            notes.device(device);
            if !wanted {
                continue;
            }
            let Some(op) = row.op else {
                notes.count(NO_OPERATION, place);
                continue;
            };
            let end = row.offset.checked_add(row.length);
            let end = end.map(|e| e.div_ceil(SECTOR_BYTES));
            let first = row.offset / SECTOR_BYTES;
            let sectors = end.and_then(|e| u32::try_from(e - first).ok());
            let (Some(sectors), true) = (sectors, end.is_some_and(|e| e <= SECTOR_END_MAX)) else {
                let (offset, length) = (row.offset, row.length);
                let what = format!("{length} bytes at {offset} lie beyond any device");
                return Err(self.input.error(ErrorKind::Range, place, what, self.remedy));
            };
            if row.offset % SECTOR_BYTES != 0 || row.length % SECTOR_BYTES != 0 {
                notes.count(NOTE_UNALIGNED, place);
            }
            let sectors = if row.length == 0 { 0 } else { sectors };
            let mut r = Record::new(row.t_ns, op, first, sectors);
            r.device = device;
            r.complete_ns = row.response_ns.and_then(|d| row.t_ns.checked_add(d));
            return Ok(Some(r));
        }
    }
    fn place(&self) -> (&str, Place) {
        (self.input.name(), Place::Line(self.line))
    }
    fn device_name(&self, device: u32) -> String {
        let name = self.disks.name(device);
        name.map_or_else(|| device.to_string(), str::to_owned)
    }
}
