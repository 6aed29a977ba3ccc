//! How to read and how to write: everything a caller may choose, with defaults that suit most.

use std::collections::{BTreeMap, BTreeSet};

/// Which event of a block trace becomes a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stream {
    /// Q: bios as they were submitted, before merging. Right for replay through a scheduler. Of a
    /// trace without them D, and a note says so.
    #[default]
    Queue,
    /// D: requests as the recorded scheduler sent them to the driver. Shows the device's view.
    Issue,
}

/// Unit of a time stamp whose unit a format leaves open.
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
    /// Nanoseconds in one.
    pub const fn ns(self) -> u64 {
        match self {
            TimeUnit::Ns => 1,
            TimeUnit::Us => 1_000,
            TimeUnit::Ms => 1_000_000,
        }
    }
}

/// Bounds that keep a broken or hostile file from taking the machine along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Records of one trace.
    pub records_max: u64,
    /// Bytes of one line of text, or of the data attached to one binary record.
    pub line_bytes_max: usize,
    /// Decompressed bytes per compressed byte, once `ratio_floor_bytes` have come out.
    pub ratio_max: u64,
    /// Decompressed bytes below which the ratio is not looked at.
    pub ratio_floor_bytes: u64,
    /// Records waiting for their completion at one time; the oldest is given up beyond it.
    pub pending_max: usize,
    /// Events of a block trace within which they are sorted by time. Farther out of order, a
    /// time is raised to its predecessor's.
    pub reorder_max: usize,
    /// Trace time a record waits for its completion, in ns.
    pub pending_ns: u64,
    /// File names in one iolog, process names in one block trace, volumes of a collection.
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

/// How to read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Event that becomes a record (blktrace, blkparse, ftrace).
    pub stream: Stream,
    /// Only this device, `major << 20 | minor` (blktrace, blkparse, ftrace, csv).
    pub device: Option<u32>,
    /// Only this volume, as the trace names it (collections of many volumes).
    pub volume: Option<String>,
    /// Only records submitted so long after the first of the trace, in ns; their times then count
    /// from here.
    pub from_ns: u64,
    /// Only records submitted before this time after the first of the trace, in ns.
    pub until_ns: Option<u64>,
    /// Only records of these processes; empty: of all.
    pub pids: BTreeSet<u32>,
    /// A trace cut off in the middle (recorder killed) ends with a warning, not an error.
    pub allow_truncated: bool,
    /// Unit of the time stamps of fio iolog version 3. fio writes microseconds.
    pub iolog_unit: TimeUnit,
    /// Address range given to each file of an iolog that comes through a pipe and so cannot be
    /// looked through first, in sectors.
    pub iolog_span_sectors: u64,
    /// Unit of the response time of vscsi version 2. No public text says it, so completions are
    /// taken from it only if you name the unit.
    pub vscsi_response: Option<TimeUnit>,
    /// Keep the events of block traces for [`crate::Reader::take_events`].
    pub keep_events: bool,
    /// Bounds.
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

/// How to write.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Name of the stream for error messages.
    pub name: String,
    /// Device number for records and events that know none.
    pub device: u32,
    /// File name to write into an iolog: at most 256 bytes, no blanks.
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
