//! Options for reading and writing. The defaults suit most uses.

use std::collections::{BTreeMap, BTreeSet};

/// The kind of event in a block trace that becomes a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stream {
    /// Queue events (Q): bios as submitted, before merging. This is the right choice to replay a
    /// trace through a scheduler. If the trace has no Q events, D events are used, with a warning.
    #[default]
    Queue,
    /// Issue events (D): requests as the recorded scheduler sent them to the driver. These are the
    /// requests that the device received.
    Issue,
}

/// Unit of time stamps, for formats that do not define the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
}

impl TimeUnit {
    /// Returns the number of nanoseconds per unit.
    pub const fn ns(self) -> u64 {
        match self {
            TimeUnit::Ns => 1,
            TimeUnit::Us => 1_000,
            TimeUnit::Ms => 1_000_000,
        }
    }
}

/// Limits that protect the computer from broken or malicious files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of records per trace.
    pub records_max: u64,
    /// Maximum number of bytes in a line of text, or in the data attached to a binary record.
    pub line_bytes_max: usize,
    /// Maximum number of decompressed bytes per compressed byte. It is checked after
    /// `ratio_floor_bytes` of output.
    pub ratio_max: u64,
    /// Number of decompressed bytes up to which the ratio is not checked.
    pub ratio_floor_bytes: u64,
    /// Maximum number of records that wait for their completion event at the same time. If there
    /// are more, the oldest record is returned without a completion.
    pub pending_max: usize,
    /// Number of events of a block trace that are held back to sort them by time. An event that is
    /// farther out of order gets the time of the event before it.
    pub reorder_max: usize,
    /// Maximum trace time between a record and its completion, in ns.
    pub pending_ns: u64,
    /// Maximum number of different names in a trace. In a fio iolog, these are the names of files.
    /// In a block trace, they are the names of processes. In a trace of many volumes, they are the
    /// names of the volumes.
    pub names_max: usize,
    /// Maximum number of bytes of a stream that are stored in a temporary file.
    pub spool_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            records_max: 100_000_000_000,
            line_bytes_max: 64 << 10,
            ratio_max: 1000,
            ratio_floor_bytes: 64 << 20,
            pending_max: 1 << 16,
            reorder_max: 1024,
            pending_ns: 60_000_000_000,
            names_max: 1 << 16,
            spool_bytes_max: 256 << 30,
        }
    }
}

/// Options for reading.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The kind of event that becomes a record (blktrace, blkparse, ftrace).
    pub stream: Stream,
    /// Read only this device, `major << 20 | minor` (blktrace, blkparse, ftrace, csv).
    pub device: Option<u32>,
    /// Read only the volume with this name (formats whose traces contain many volumes).
    pub volume: Option<String>,
    /// Read only records that were submitted at least this time after the first record of the
    /// trace, in ns. Times of records then count from this time.
    pub from_ns: u64,
    /// Read only records that were submitted earlier than this time after the first record of the
    /// trace, in ns.
    pub until_ns: Option<u64>,
    /// Read only records of these processes. If empty, read the records of all processes.
    pub pids: BTreeSet<u32>,
    /// If true, an incomplete end of the trace (for example because the recorder was killed) gives
    /// a warning instead of an error.
    pub allow_truncated: bool,
    /// The fields of a delimited text without a known header, as `NAME=NUMBER,...` with the names
    /// of the CSV and numbers from 1. The trace is then read as CSV.
    pub columns: Option<String>,
    /// Unit of the time stamps of fio iolog version 3. fio writes microseconds.
    pub iolog_unit: TimeUnit,
    /// Size of the address range of each file in an iolog from a pipe, in sectors. A pipe cannot be
    /// read twice, so the sizes of the files are not known.
    pub iolog_span_sectors: u64,
    /// Unit of the response time of vscsi version 2. No public document defines it, so completions
    /// are read only if this option is set.
    pub vscsi_response: Option<TimeUnit>,
    /// Keep the events of block traces for [`crate::Reader::take_events`].
    pub keep_events: bool,
    /// Limits that protect the computer from broken or malicious files.
    pub limits: Limits,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            stream: Stream::Queue,
            device: None,
            volume: None,
            from_ns: 0,
            until_ns: None,
            pids: BTreeSet::new(),
            allow_truncated: false,
            columns: None,
            iolog_unit: TimeUnit::Us,
            iolog_span_sectors: 1 << 31,
            vscsi_response: None,
            keep_events: false,
            limits: Limits::default(),
        }
    }
}

/// Options for writing.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Name of the output in error messages.
    pub name: String,
    /// Device number for records and events that have none.
    pub device: u32,
    /// File name in an iolog: at most 256 bytes, without blanks.
    pub iolog_file: String,
    /// Names of processes by process id.
    pub tasks: BTreeMap<u32, String>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions {
            name: "output".to_string(),
            device: crate::record::device_number(8, 0),
            iolog_file: "/dev/sda".to_string(),
            tasks: BTreeMap::new(),
        }
    }
}
