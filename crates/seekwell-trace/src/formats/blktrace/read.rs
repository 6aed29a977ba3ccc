//! The reader of blktrace files. It reads one file, or merges the files of all CPUs by time.

use super::{CGROUP, FLAG_BITS, MAGIC, RECORD_BYTES, VERSION, kind, notify};
use crate::blk::{BlkEvent, action_of_number};
use crate::error::{ErrorKind, Place, TraceError};
use crate::input::Input;
use crate::join::Join;
use crate::notes::Notes;
use crate::options::ReadOptions;
use crate::record::Record;
use crate::source::Source;
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{Flags, Op};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::{Path, PathBuf};

/// Returns the byte order of a record, from its magic number, and the version.
pub(super) fn byte_order(head: &[u8]) -> Option<(Order, u32)> {
    let b: [u8; 4] = head.get(..4)?.try_into().ok()?;
    let (le, be) = (u32::from_le_bytes(b), u32::from_be_bytes(b));
    if le & !0xff == MAGIC {
        Some((Order::Little, le & 0xff))
    } else if be & !0xff == MAGIC {
        Some((Order::Big, be & 0xff))
    } else {
        None
    }
}

/// Byte order of the machine that recorded the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, b: &[u8], i: usize) -> u16 {
        let w = [b[i], b[i + 1]];
        match self {
            Order::Little => u16::from_le_bytes(w),
            Order::Big => u16::from_be_bytes(w),
        }
    }
    fn u32(self, b: &[u8], i: usize) -> u32 {
        let (first, second) = (u32::from(self.u16(b, i)), u32::from(self.u16(b, i + 2)));
        match self {
            Order::Little => first | second << 16,
            Order::Big => first << 16 | second,
        }
    }
    fn u64(self, b: &[u8], i: usize) -> u64 {
        let (first, second) = (u64::from(self.u32(b, i)), u64::from(self.u32(b, i + 4)));
        match self {
            Order::Little => first | second << 32,
            Order::Big => first << 32 | second,
        }
    }
}

/// Returns the files of all CPUs in order of CPU. `path` is the first file or the base name of the
/// files; otherwise returns `None`.
pub(super) fn parts(path: &Path) -> Option<Vec<PathBuf>> {
    let name = path.file_name()?.to_str()?;
    let base = match name.split_once(".blktrace.") {
        Some((base, rest)) if cpu_of(rest) == Some(0) => base,
        Some(_) => return None,
        None if path.exists() => return None,
        None => name,
    };
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let prefix = format!("{base}.blktrace.");
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name();
            let cpu = cpu_of(name.to_str()?.strip_prefix(&prefix)?)?;
            Some((cpu, entry.path()))
        })
        .collect();
    found.sort();
    // If a CPU has two files (plain and compressed), only one of them is used.
    found.dedup_by_key(|f| f.0);
    (!found.is_empty()).then(|| found.into_iter().map(|f| f.1).collect())
}

/// Returns the CPU number from the text after `.blktrace.`.
fn cpu_of(rest: &str) -> Option<u32> {
    let plain = rest.strip_suffix(".zst").or(rest.strip_suffix(".gz"));
    let digits = plain.unwrap_or(rest);
    let all = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
    all.then(|| digits.parse().ok()).flatten()
}

/// Maximum number of CPUs in a warning.
const LISTED: usize = 16;

/// Adds a warning if files of CPUs are missing. Either there are gaps in the CPU numbers, or the
/// user named only one of several files.
fn note_missing(inputs: &[Input], notes: &mut Notes) {
    let of_name = |name: &str| cpu_of(name.rsplit_once(".blktrace.")?.1);
    let cpus: Vec<u32> = inputs.iter().filter_map(|i| of_name(i.name())).collect();
    let (Some(first), Some(&last)) = (inputs.first(), cpus.last()) else {
        return;
    };
    let base = first.name().rsplit_once(".blktrace.").map_or("", |n| n.0);
    if let (&[cpu], Some(beside)) = (&cpus[..], parts(Path::new(base)))
        && cpu > 0
        && beside.len() > 1
    {
        notes.say(format!(
            "{}: only the records of CPU {cpu} of {} CPUs; use {base} for all of them",
            first.name(),
            beside.len()
        ));
        return;
    }
    let missing = (0..last).filter(|c| !cpus.contains(c));
    let missing: Vec<String> = missing.map(|c| c.to_string()).collect();
    if !missing.is_empty() {
        let shown = missing.iter().take(LISTED).cloned().collect::<Vec<_>>();
        let more = if missing.len() > LISTED { ", ..." } else { "" };
        notes.say(format!(
            "{base}: no file of CPU {}{more} of 0 to {last}: the records of these CPUs are missing",
            shown.join(", ")
        ));
    }
}

/// The content of a record.
enum Said {
    Event(BlkEvent),
    Name(u32, String),
    Nothing,
}

/// One file of the trace.
struct Stream {
    input: Input,
    order: Order,
    record: u64,
}

impl Stream {
    fn new(mut input: Input) -> Result<Stream, TraceError> {
        let place = Place::Record(1);
        let found = byte_order(input.peek(4, place)?);
        let Some((order, version)) = found else {
            return Err(input.error(
                ErrorKind::Broken,
                place,
                "does not begin with blktrace's magic number",
                "give the correct format, or omit it for automatic detection",
            ));
        };
        if version != VERSION {
            return Err(input.error(
                ErrorKind::Unsupported,
                place,
                format!("blktrace records of version {version}; only {VERSION} is read"),
                "convert it with blkparse on the machine that recorded it, and use the text",
            ));
        }
        Ok(Stream {
            input,
            order,
            record: 0,
        })
    }

    fn place(&self) -> Place {
        Place::Record(self.record)
    }

    /// Returns the time of the next record, or `None` at the end.
    fn peek_time(&mut self) -> Result<Option<u64>, TraceError> {
        let order = self.order;
        let head = self
            .input
            .peek(RECORD_BYTES, Place::Record(self.record + 1))?;
        // The method `next` handles an incomplete record, so the time of such a record does not
        // matter.
        Ok(match head.len() {
            0 => None,
            n if n < 16 => Some(0),
            _ => Some(order.u64(head, 8)),
        })
    }

    /// Returns the next record, or `None` at the end.
    fn next(&mut self) -> Result<Option<Said>, TraceError> {
        self.record += 1;
        let place = self.place();
        let order = self.order;
        let Some(b) = self.input.block::<RECORD_BYTES>(place)? else {
            return Ok(None);
        };
        if order.u32(&b, 0) != MAGIC | VERSION {
            return Err(self.input.error(
                ErrorKind::Broken,
                place,
                "no magic number where a record should begin",
                "bytes are missing or damaged before it: fetch the file again",
            ));
        }
        let action = order.u32(&b, 28);
        let pid = order.u32(&b, 32);
        let pdu_len = usize::from(order.u16(&b, 46));
        let pdu = match pdu_len {
            0 => &[][..],
            n => match self.input.bytes(n, place)? {
                Some(pdu) => pdu,
                None => return Ok(None),
            },
        };
        if action & kind::NOTIFY != 0 {
            let own = if action & CGROUP != 0 { 8 } else { 0 };
            let text = pdu.get(own..).unwrap_or(&[]);
            if action & 0xff == notify::PROCESS {
                let end = text.iter().position(|&c| c == 0).unwrap_or(text.len());
                let name = String::from_utf8_lossy(&text[..end.min(64)]).into_owned();
                return Ok(Some(Said::Name(pid, name)));
            }
            return Ok(Some(Said::Nothing));
        }
        Ok(Some(match event(order, &b, action, pid) {
            Some(e) => Said::Event(e.normal()),
            None => Said::Nothing,
        }))
    }
}

fn event(order: Order, b: &[u8; RECORD_BYTES], action: u32, pid: u32) -> Option<BlkEvent> {
    if action & (kind::PC | kind::DRV_DATA) != 0 {
        return None;
    }
    let what = action_of_number((action & 0xffff & !CGROUP) as u16)?;
    let bytes = order.u32(b, 24);
    let op = if action & kind::DISCARD != 0 {
        Op::Discard
    } else if action & kind::WRITE != 0 {
        Op::Write
    } else if bytes > 0 {
        Op::Read
    } else if action & kind::FLUSH != 0 {
        Op::Flush
    } else {
        return None;
    };
    let mut flags = Flags::empty();
    if action & kind::FLUSH != 0 {
        flags |= Flags::PREFLUSH;
    }
    for (flag, bit) in FLAG_BITS {
        if action & bit != 0 {
            flags |= flag;
        }
    }
    Some(BlkEvent {
        t_ns: order.u64(b, 8),
        action: what,
        op,
        flags,
        sector: order.u64(b, 16),
        sectors: u64::from(bytes).div_ceil(SECTOR_BYTES) as u32,
        task: pid,
        cpu: order.u32(b, 40),
        device: order.u32(b, 36),
        error: order.u16(b, 44),
        ioprio: None,
        write_bit: action & kind::WRITE != 0,
    })
}

pub(super) struct BlktraceReader {
    streams: Vec<Stream>,
    /// (time of the next record, stream number); used if there are several streams.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// Number of the stream that was read last.
    at: usize,
    join: Join,
    tasks: BTreeMap<u32, String>,
    names_max: usize,
    device: Option<u32>,
    ended: bool,
}

impl BlktraceReader {
    pub fn new(
        inputs: Vec<Input>,
        options: &ReadOptions,
        notes: &mut Notes,
    ) -> Result<Self, TraceError> {
        note_missing(&inputs, notes);
        let mut streams = Vec::new();
        let mut empty = None;
        for mut input in inputs {
            // A CPU without activity has an empty file.
            if input.peek(1, Place::File)?.is_empty() {
                empty = Some(input);
            } else {
                streams.push(Stream::new(input)?);
            }
        }
        if let (true, Some(input)) = (streams.is_empty(), empty) {
            let remedy = "give a trace with at least one record";
            return Err(input.error(ErrorKind::Empty, Place::File, "is empty", remedy));
        }
        let mut next = BinaryHeap::new();
        if streams.len() > 1 {
            for (i, s) in streams.iter_mut().enumerate() {
                next.extend(s.peek_time()?.map(|t| Reverse((t, i))));
            }
        }
        Ok(BlktraceReader {
            streams,
            next,
            at: 0,
            join: Join::new(options, false),
            tasks: BTreeMap::new(),
            names_max: options.limits.names_max,
            device: options.device,
            ended: false,
        })
    }

    /// Returns the earliest next record of all streams.
    fn earliest(&mut self) -> Result<Option<Said>, TraceError> {
        if self.streams.len() == 1 {
            return self.streams[0].next();
        }
        while let Some(Reverse((_, i))) = self.next.pop() {
            self.at = i;
            let stream = &mut self.streams[i];
            let Some(said) = stream.next()? else {
                continue;
            };
            self.next
                .extend(stream.peek_time()?.map(|t| Reverse((t, i))));
            return Ok(Some(said));
        }
        Ok(None)
    }
}

impl Source for BlktraceReader {
    fn next(&mut self, notes: &mut Notes) -> Result<Option<Record>, TraceError> {
        loop {
            let place = self.streams[self.at].place();
            if let Some(r) = self.join.pop(notes, place) {
                return Ok(Some(r));
            }
            if self.ended {
                return Ok(None);
            }
            match self.earliest()? {
                Some(Said::Event(e)) => {
                    self.join.device(&e, notes);
                    if self.device.is_none_or(|d| d == e.device) {
                        let place = self.streams[self.at].place();
                        self.join.push(&e, notes, place);
                    }
                }
                Some(Said::Name(pid, name)) => {
                    if self.tasks.len() < self.names_max || self.tasks.contains_key(&pid) {
                        self.tasks.insert(pid, name);
                    }
                }
                Some(Said::Nothing) => {}
                None => {
                    self.ended = true;
                    self.join.end();
                    for s in &self.streams {
                        s.input.note_cut(notes);
                    }
                }
            }
        }
    }
    fn place(&self) -> (&str, Place) {
        let stream = &self.streams[self.at];
        (stream.input.name(), stream.place())
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
    fn version(&self) -> Option<u32> {
        Some(VERSION)
    }
}
