//! The binary trace of blktrace, version 7. It consists of records of 48 bytes in either byte
//! order. Each record is followed by `pdu_len` bytes of data.
//!
//! | offset | field | | offset | field |
//! | --- | --- | --- | --- | --- |
//! | 0 | magic `0x65617400` + version, u32 | | 32 | pid u32 |
//! | 4 | sequence u32 | | 36 | device u32, `major << 20 \| minor` |
//! | 8 | time u64, ns | | 40 | cpu u32 |
//! | 16 | first sector u64 | | 44 | error u16 |
//! | 24 | bytes u32 | | 46 | pdu_len u16 |
//! | 28 | action u32: low half what, high half which kind | | | |
//!
//! A trace has one file per CPU (`DEV.blktrace.0`, `DEV.blktrace.1`, ...) or is one merged file.
//! The reader leaves out SCSI packet commands, bounces, driver data and the texts of messages.
//! Other versions are rejected, because their records may have another size.

mod read;
mod write;

use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
pub use write::BlktraceWriter;

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "blktrace",
    summary: "binary trace of the Linux block layer, one file or one per CPU",
    extensions: &["blktrace", "blktrace.0", "bin"],
    help: "The binary files that blktrace records. Give DEV.blktrace.0, or only DEV; the files of \
           all CPUs are then merged by time. Records are made from the Q events (or from the D \
           events, if requested). The I, D and C events of the same sectors supply the times of \
           insertion, issue and completion. Write-zeroes cannot be distinguished from writes.",
    carries: Carries {
        pids: Has::Yes,
        completions: Has::Maybe,
        issues: Has::Maybe,
        ioprio: Has::No,
        flags: Has::Yes,
        time: "1 ns",
    },
    keeps: Keeps::EVENTS,
    volumes: Volumes::Numbered,
    text: false,
    detect: |head| read::byte_order(head).is_some(),
    parts: Some(read::parts),
    open: |inputs, options, notes| Ok(Box::new(read::BlktraceReader::new(inputs, options, notes)?)),
    create: Some(|out, options| Ok(Box::new(BlktraceWriter::new(out, options)))),
};

/// The magic number, without the version.
const MAGIC: u32 = 0x6561_7400;
/// The supported version.
const VERSION: u32 = 7;
const RECORD_BYTES: usize = 48;
/// Flag in the low half of the action word: a cgroup id of 8 bytes precedes the data.
const CGROUP: u32 = 0x100;

/// Bits of the action word for the categories.
mod kind {
    pub const READ: u32 = 1 << 16;
    pub const WRITE: u32 = 1 << 17;
    pub const FLUSH: u32 = 1 << 18;
    pub const SYNC: u32 = 1 << 19;
    pub const QUEUE: u32 = 1 << 20;
    pub const REQUEUE: u32 = 1 << 21;
    pub const ISSUE: u32 = 1 << 22;
    pub const COMPLETE: u32 = 1 << 23;
    pub const PC: u32 = 1 << 25;
    pub const NOTIFY: u32 = 1 << 26;
    pub const AHEAD: u32 = 1 << 27;
    pub const META: u32 = 1 << 28;
    pub const DISCARD: u32 = 1 << 29;
    pub const DRV_DATA: u32 = 1 << 30;
    pub const FUA: u32 = 1 << 31;
}

/// Numbers of notifications: the low half of the action word.
mod notify {
    pub const PROCESS: u32 = 0;
    pub const MESSAGE: u32 = 2;
}

/// Flags with their category bits.
const FLAG_BITS: [(seekwell_core::Flags, u32); 4] = {
    use seekwell_core::Flags;
    [
        (Flags::SYNC, kind::SYNC),
        (Flags::META, kind::META),
        (Flags::RAHEAD, kind::AHEAD),
        (Flags::FUA, kind::FUA),
    ]
};
