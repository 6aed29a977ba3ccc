//! Options of reading and writing, with defaults for most uses.

use std::collections::{BTreeMap, BTreeSet};

/// The event of a block trace that becomes a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stream {
    /// Q: bios as submitted, before merging. The right choice for replay through a scheduler. For a
    /// trace without Q events, D is used with a warning.
    #[default]
    Queue,
    /// D: requests as the recorded scheduler sent them to the driver, which is the device's view.
    Issue,
}

/// Unit of time stamps in formats that do not define it.
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
    /// Nanoseconds per unit.
    pub const fn ns(self) -> u64 {
        match self {
            TimeUnit::Ns => 1,
            TimeUnit::Us => 1_000,
            TimeUnit::Ms => 1_000_000,
        }
    }
}

/// Limits that protect the machine from broken or malicious files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Records per trace.
    pub records_max: u64,
    /// Bytes of a line of text, or of the data attached to a binary record.
    pub line_bytes_max: usize,
    /// Decompressed bytes per compressed byte, after `ratio_floor_bytes` of output.
    pub ratio_max: u64,
    /// Decompressed bytes below which the ratio is not checked.
    pub ratio_floor_bytes: u64,
    /// Records that wait for completion at the same time; beyond this, the oldest is abandoned.
    pub pending_max: usize,
    /// Number of events of a block trace within which they are sorted by time. An event that is
    /// farther out of order gets the time of its predecessor.
    pub reorder_max: usize,
    /// Trace time for which a record waits for its completion, in ns.
    pub pending_ns: u64,
    /// File names in an iolog, process names in a block trace, volumes of a collection.
    pub names_max: usize,
    /// Bytes of a stream that are kept in a temporary file.
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

/// Options of reading.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The event that becomes a record (blktrace, blkparse, ftrace).
    pub stream: Stream,
    /// Only this device, `major << 20 | minor` (blktrace, blkparse, ftrace, csv).
    pub device: Option<u32>,
    /// Only this volume, by its name in the trace (collections of many volumes).
    pub volume: Option<String>,
    /// Only records submitted at least this time after the first of the trace, in ns; their times
    /// then count from here.
    pub from_ns: u64,
    /// Only records submitted before this time after the first of the trace, in ns.
    pub until_ns: Option<u64>,
    /// Only records of these processes; empty: all.
    pub pids: BTreeSet<u32>,
    /// A trace that is cut off (recorder killed) ends with a warning instead of an error.
    pub allow_truncated: bool,
    /// Unit of the time stamps of fio iolog version 3. fio writes microseconds.
    pub iolog_unit: TimeUnit,
    /// Address range of each file of an iolog from a pipe, which cannot be read twice, in sectors.
    pub iolog_span_sectors: u64,
    /// Unit of the response time of vscsi version 2. No public text defines it, so completions are
    /// used only if you set the unit.
    pub vscsi_response: Option<TimeUnit>,
    /// Keep the events of block traces for [`crate::Reader::take_events`].
    pub keep_events: bool,
    /// Limits.
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
            iolog_unit: TimeUnit::Us,
            iolog_span_sectors: 1 << 31,
            vscsi_response: None,
            keep_events: false,
            limits: Limits::default(),
        }
    }
}

/// Options of writing.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Name of the stream in error messages.
    pub name: String,
    /// Device number for records and events without one.
    pub device: u32,
    /// File name in an iolog: at most 256 bytes, no blanks.
    pub iolog_file: String,
    /// Process names by pid.
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
