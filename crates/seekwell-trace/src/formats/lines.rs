//! Block events as lines of text. blkparse and the kernel's tracefs print different lines, but
//! parsed lines are processed in the same way.

use crate::blk::{BlkEvent, Rwbs};
use crate::error::{ErrorKind, Place, TraceError, shown};
use crate::input::Input;
use crate::join::Join;
use crate::notes::Notes;
use crate::options::ReadOptions;
use crate::record::{Record, device_number};
use crate::source::Source;
use crate::text::number;
use seekwell_core::Op;
use std::collections::BTreeMap;

/// The content of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    /// An event, and the name of its process (empty if the line has no name).
    Event(BlkEvent, &'a [u8]),
    /// The recorder reports lost events.
    Lost,
    /// A line that is not needed for records.
    Nothing,
    /// The end of the events.
    End,
}

/// Description of the expected field, and the invalid content.
pub type Wrong<'a> = (&'static str, &'a [u8]);

/// The differences between the text formats.
#[derive(Clone, Copy)]
pub(super) struct Dialect {
    /// Parses a line without its newline.
    pub(super) parse: for<'a> fn(&'a [u8]) -> Result<Line<'a>, Wrong<'a>>,
    /// Remedy in the message about an invalid line.
    pub(super) remedy: &'static str,
    /// Note that counts the places where events were lost.
    pub(super) lost: &'static str,
}

/// Parses a device number `major,minor`.
pub(super) fn device(w: &[u8]) -> Option<u32> {
    let comma = memchr::memchr(b',', w)?;
    let (major, minor) = (number(&w[..comma])?, number(&w[comma + 1..])?);
    (major < 1 << 12 && minor < 1 << 20).then(|| device_number(major as u32, minor as u32))
}

/// Parses the error number of a completion. The sign is ignored: `5` equals `-5`.
pub(super) fn error_number(w: &[u8]) -> Option<u16> {
    let e = number(w.strip_prefix(b"-").unwrap_or(w))?;
    Some(u16::try_from(e).unwrap_or(u16::MAX))
}

/// Adds the contents of an RWBS field to an event. Returns `None` if the field has no operation.
pub(super) fn with_rwbs(rwbs: Rwbs, event: BlkEvent) -> Option<BlkEvent> {
    let all = BlkEvent {
        op: rwbs.op?,
        flags: rwbs.flags,
        write_bit: rwbs.write_bit,
        ..event
    };
    Some(all.normal())
}

/// An event without the contents of its RWBS field.
pub(super) const BLANK: BlkEvent = BlkEvent {
    t_ns: 0,
    action: seekwell_core::Action::Queue,
    op: Op::Read,
    flags: seekwell_core::Flags::empty(),
    sector: 0,
    sectors: 0,
    task: 0,
    cpu: 0,
    device: 0,
    error: 0,
    write_bit: false,
};

/// Maximum length of a stored process name, in bytes.
const NAME_BYTES: usize = 64;

/// Converts lines to records.
pub(super) struct LineReader {
    dialect: Dialect,
    input: Input,
    join: Join,
    tasks: BTreeMap<u32, String>,
    names_max: usize,
    device: Option<u32>,
    line: u64,
    last_task: Option<u32>,
    ended: bool,
}

impl LineReader {
    pub(super) fn new(dialect: Dialect, input: Input, options: &ReadOptions) -> Self {
        LineReader {
            dialect,
            input,
            join: Join::new(options),
            tasks: BTreeMap::new(),
            names_max: options.limits.names_max,
            device: options.device,
            line: 0,
            last_task: None,
            ended: false,
        }
    }

    /// Processes one line. Returns false at the end.
    fn step(&mut self, notes: &mut Notes) -> Result<bool, TraceError> {
        self.line += 1;
        let place = Place::Line(self.line);
        let Some(line) = self.input.line(place)? else {
            return Ok(false);
        };
        let (what, found) = match (self.dialect.parse)(line) {
            Ok(Line::Nothing) => return Ok(true),
            Ok(Line::End) => return Ok(false),
            Ok(Line::Lost) => {
                notes.count(self.dialect.lost, place);
                return Ok(true);
            }
            Ok(Line::Event(e, name)) => {
                self.join.device(&e, notes);
                if self.device.is_some_and(|d| d != e.device) {
                    return Ok(true);
                }
                // A process name changes only with exec, so check it only when another process
                // follows.
                if self.last_task != Some(e.task) && !name.is_empty() {
                    self.last_task = Some(e.task);
                    if self.tasks.len() < self.names_max && !self.tasks.contains_key(&e.task) {
                        let name = &name[..name.len().min(NAME_BYTES)];
                        let name = String::from_utf8_lossy(name).into_owned();
                        self.tasks.insert(e.task, name);
                    }
                }
                self.join.push(&e, notes, place);
                return Ok(true);
            }
            Err((what, found)) => (what, shown(found)),
        };
        if self.input.forgive_line() {
            return Ok(false);
        }
        let what = format!("cannot read the {what}: {found}");
        let remedy = self.dialect.remedy;
        Err(self.input.error(ErrorKind::Broken, place, what, remedy))
    }
}

impl Source for LineReader {
    fn next(&mut self, notes: &mut Notes) -> Result<Option<Record>, TraceError> {
        loop {
            if let Some(r) = self.join.pop(notes, Place::Line(self.line)) {
                return Ok(Some(r));
            }
            if self.ended {
                return Ok(None);
            }
            if !self.step(notes)? {
                self.ended = true;
                self.join.end();
                self.input.note_cut(notes);
            }
        }
    }
    fn place(&self) -> (&str, Place) {
        (self.input.name(), Place::Line(self.line))
    }
    fn tasks(&self) -> Option<&BTreeMap<u32, String>> {
        Some(&self.tasks)
    }
    fn take_events(&mut self, into: &mut Vec<BlkEvent>) {
        self.join.take_events(into);
    }
    fn tells_events(&self) -> bool {
        true
    }
}
