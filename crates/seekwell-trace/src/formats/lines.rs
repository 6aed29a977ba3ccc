//! Block events as lines of text. blkparse, the kernel's tracefs, perf and biosnoop print different
//! lines, but parsed lines are processed in the same way.

use super::volumes::DiskNames;
use crate::blk::{BlkEvent, Rwbs};
use crate::error::{ErrorKind, Place, TraceError, shown};
use crate::input::Input;
use crate::join::Join;
use crate::notes::Notes;
use crate::options::ReadOptions;
use crate::record::{Record, device_number};
use crate::source::{Source, device_text};
use crate::text::number;
use seekwell_core::{Action, Op};
use std::collections::BTreeMap;

/// The content of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    /// An event, and the name of its process (empty if the line has no name).
    Event(BlkEvent, &'a [u8]),
    /// A whole request.
    Request(Request<'a>),
    /// The recorder reports lost events.
    Lost,
    /// A line that is not needed for records.
    Nothing,
    /// The end of the events.
    End,
}

/// A request with its completion, as in a line of biosnoop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request<'a> {
    /// The issue.
    pub issue: BlkEvent,
    /// Time at which the request was queued, in ns, if known.
    pub queue_ns: Option<u64>,
    /// Time of the completion, in ns.
    pub complete_ns: u64,
    /// Name of the process.
    pub process: &'a [u8],
    /// Name of the disk; empty if the device number of the issue identifies the disk.
    pub disk: &'a [u8],
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
    /// True if each line is a request, in order of completion.
    pub(super) requests: bool,
}

/// Number of lines that are searched for the first event.
const HEAD_LINES: usize = 200;

/// Returns true if the first lines can be parsed up to an event or a request.
pub(super) fn begins(
    head: &[u8],
    parse: for<'a> fn(&'a [u8]) -> Result<Line<'a>, Wrong<'a>>,
) -> bool {
    for line in head.split(|&c| c == b'\n').take(HEAD_LINES) {
        match parse(line) {
            Ok(Line::Event(..) | Line::Request(_)) => return true,
            // Other formats have similar lines about lost events.
            Ok(Line::Nothing | Line::End | Line::Lost) => {}
            Err(_) => return false,
        }
    }
    false
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
    action: Action::Queue,
    op: Op::Read,
    flags: seekwell_core::Flags::empty(),
    sector: 0,
    sectors: 0,
    task: 0,
    cpu: 0,
    device: 0,
    error: 0,
    ioprio: None,
    write_bit: false,
};

/// Maximum length of a stored process name, in bytes.
const NAME_BYTES: usize = 64;

/// Names of processes.
struct Tasks {
    names: BTreeMap<u32, String>,
    names_max: usize,
    last: Option<u32>,
}

impl Tasks {
    /// Stores the name of a process. The name changes only with exec, so it is checked only if
    /// another process follows.
    fn add(&mut self, task: u32, name: &[u8]) {
        if self.last == Some(task) || name.is_empty() {
            return;
        }
        self.last = Some(task);
        if self.names.len() < self.names_max && !self.names.contains_key(&task) {
            let name = &name[..name.len().min(NAME_BYTES)];
            let name = String::from_utf8_lossy(name).into_owned();
            self.names.insert(task, name);
        }
    }
}

/// Converts lines to records.
pub(super) struct LineReader {
    dialect: Dialect,
    input: Input,
    join: Join,
    tasks: Tasks,
    device: Option<u32>,
    line: u64,
    ended: bool,
    disks: DiskNames,
    /// The disk that the user selected.
    disk: Option<String>,
    /// Events of the current request that are not processed yet, the last first.
    later: Vec<BlkEvent>,
}

impl LineReader {
    pub(super) fn new(dialect: Dialect, input: Input, options: &ReadOptions) -> Self {
        LineReader {
            dialect,
            input,
            join: Join::new(options, dialect.requests),
            tasks: Tasks {
                names: BTreeMap::new(),
                names_max: options.limits.names_max,
                last: None,
            },
            device: options.device,
            line: 0,
            ended: false,
            disks: DiskNames::new(options.limits.names_max),
            disk: options.volume.clone().filter(|_| options.device.is_none()),
            later: Vec::with_capacity(3),
        }
    }

    /// Processes one line. Returns false at the end.
    fn step(&mut self, notes: &mut Notes) -> Result<bool, TraceError> {
        if let Some(e) = self.later.pop() {
            self.join.push(&e, notes, Place::Line(self.line));
            return Ok(true);
        }
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
                self.tasks.add(e.task, name);
                self.join.push(&e, notes, place);
                return Ok(true);
            }
            Ok(Line::Request(r)) => {
                let mut e = r.issue;
                if !r.disk.is_empty() {
                    let Some(n) = self.disks.number(r.disk) else {
                        return Err(self.disks.too_many(&self.input, place));
                    };
                    e.device = n;
                }
                let not_asked = self.disk.as_ref().is_some_and(|d| d.as_bytes() != r.disk);
                let other = self.device.is_some_and(|d| d != e.device);
                let at = |action, t_ns| BlkEvent { action, t_ns, ..e };
                self.later.push(at(Action::Complete, r.complete_ns));
                self.later.push(e);
                self.later
                    .extend(r.queue_ns.map(|t_ns| at(Action::Queue, t_ns)));
                for e in &self.later {
                    self.join.device(e, notes);
                }
                if not_asked || other {
                    self.later.clear();
                } else {
                    self.tasks.add(e.task, r.process);
                }
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
        Some(&self.tasks.names)
    }
    fn take_events(&mut self, into: &mut Vec<BlkEvent>) {
        self.join.take_events(into);
    }
    fn tells_events(&self) -> bool {
        true
    }
    fn device_name(&self, device: u32) -> String {
        let name = self.disks.name(device);
        name.map_or_else(|| device_text(device), str::to_owned)
    }
}
