//! VMware vscsi: the format of published `vscsiStats` traces of virtual disks.
//!
//! Version 1 has 32 bytes per record, little-endian: serial number u32, length in bytes u32,
//! scatter-gather count u32, SCSI operation u16, version u16 (256), first sector u64, time in
//! microseconds u64.
//!
//! Version 2 has 40 bytes: operation u16, version u16 (512), serial number u32, length u32,
//! scatter-gather count u32, first sector u64, time u64, response time u64. This layout is
//! used by the publicly available readers. None of these readers defines the unit of the response
//! time, so the response time is used only if [`ReadOptions::vscsi_response`] is set.
//!
//! Serial numbers and scatter-gather counts are not used. SCSI commands that do not transfer data,
//! trim or flush are skipped and counted.

use crate::error::{ErrorKind, Place, TraceError};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::input::Input;
use crate::notes::Notes;
use crate::options::{ReadOptions, TimeUnit, WriteOptions};
use crate::record::Record;
use crate::source::Source;
use crate::writer::{Output, Writer};
use seekwell_core::Op;
use seekwell_core::units::SECTOR_BYTES;
use std::io::Write;

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "vscsi",
    summary: "VMware vscsi, versions 1 and 2 (written: 1)",
    extensions: &["vscsi"],
    help: "SCSI commands of one virtual disk, in the format that CloudPhysics published and that \
           cache simulators read. The format contains no process IDs and no completion times, so \
           replay it with --mode timed, scaled:FACTOR or depth:N. Version 2 contains response \
           times in an undocumented unit. Seekwell uses them only if --response-unit states the \
           unit.",
    carries: Carries {
        pids: Has::No,
        completions: Has::Maybe,
        issues: Has::No,
        ioprio: Has::No,
        flags: Has::No,
        time: "1 us",
    },
    keeps: Keeps {
        write_zeroes: true,
        ..Keeps::NONE
    },
    volumes: Volumes::One,
    text: false,
    detect: |head| version_of(head).is_some(),
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        Ok(Box::new(VscsiReader::new(input, options)?))
    },
    create: Some(|out, options| Ok(Box::new(VscsiWriter::new(out, options)))),
};

const SKIPPED: &str = "SCSI commands that move no data skipped";
const UNALIGNED: &str = "lengths that are no multiple of 512 bytes rounded up";

/// SCSI operation codes with their operations. The writer uses the first code of each operation.
const CODES: &[(u16, Op)] = &[
    (0x28, Op::Read),
    (0x2a, Op::Write),
    (0x88, Op::Read),
    (0x8a, Op::Write),
    (0x08, Op::Read),
    (0x0a, Op::Write),
    (0xa8, Op::Read),
    (0xaa, Op::Write),
    (0x2e, Op::Write),
    (0x35, Op::Flush),
    (0x91, Op::Flush),
    (0x42, Op::Discard),
    (0x93, Op::WriteZeroes),
    (0x41, Op::WriteZeroes),
];

/// Returns the operation of a SCSI command, or `None` for a command that moves no data.
pub(super) fn scsi_operation(code: u16) -> Option<Op> {
    CODES.iter().find(|c| c.0 == code).map(|c| c.1)
}

fn u16_at(b: &[u8], i: usize) -> u16 {
    u16::from_le_bytes([b[i], b[i + 1]])
}
fn u32_at(b: &[u8], i: usize) -> u32 {
    u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]])
}
fn u64_at(b: &[u8], i: usize) -> u64 {
    u64::from(u32_at(b, i)) | u64::from(u32_at(b, i + 4)) << 32
}

/// Returns the version (1 or 2) if all records at the start of the file contain its version number.
fn version_of(head: &[u8]) -> Option<u32> {
    let marked = |size: usize, at: usize, mark: u16| {
        let mut whole = head.chunks_exact(size).take(8);
        whole.len() > 0 && whole.all(|r| u16_at(r, at) == mark)
    };
    if marked(32, 14, 0x100) {
        Some(1)
    } else if marked(40, 2, 0x200) {
        Some(2)
    } else {
        None
    }
}

struct VscsiReader {
    input: Input,
    version: u32,
    response: Option<TimeUnit>,
    records: u64,
}

impl VscsiReader {
    fn new(mut input: Input, options: &ReadOptions) -> Result<Self, TraceError> {
        let head = input.peek(8 * 40, Place::File)?;
        let (version, short) = (version_of(head), head.len() < 32);
        let Some(version) = version else {
            let (kind, what) = if short {
                (ErrorKind::Truncated, "is shorter than one vscsi record")
            } else {
                let what =
                    "is not a vscsi trace of version 1 or 2: the records lack the version mark";
                (ErrorKind::Unsupported, what)
            };
            let remedy = "give the correct format, or omit it for automatic detection";
            return Err(input.error(kind, Place::File, what, remedy));
        };
        Ok(VscsiReader {
            input,
            version,
            response: options.vscsi_response,
            records: 0,
        })
    }

    /// Reads the next record. Returns operation code, version number, length in bytes, sector, time
    /// and response time.
    fn fields(&mut self) -> Result<Option<[u64; 6]>, TraceError> {
        let place = Place::Record(self.records);
        Ok(if self.version == 1 {
            self.input.block::<32>(place)?.map(|b| {
                let [code, mark] = [u16_at(&b, 12), u16_at(&b, 14)].map(u64::from);
                [
                    code,
                    mark,
                    u64::from(u32_at(&b, 4)),
                    u64_at(&b, 16),
                    u64_at(&b, 24),
                    0,
                ]
            })
        } else {
            self.input.block::<40>(place)?.map(|b| {
                let [code, mark] = [u16_at(&b, 0), u16_at(&b, 2)].map(u64::from);
                let len = u64::from(u32_at(&b, 8));
                [
                    code,
                    mark,
                    len,
                    u64_at(&b, 16),
                    u64_at(&b, 24),
                    u64_at(&b, 32),
                ]
            })
        })
    }
}

impl Source for VscsiReader {
    fn next(&mut self, notes: &mut Notes) -> Result<Option<Record>, TraceError> {
        loop {
            self.records += 1;
            let place = Place::Record(self.records);
            let Some([code, mark, bytes, sector, time_us, response]) = self.fields()? else {
                self.input.note_cut(notes);
                return Ok(None);
            };
            if mark != u64::from(self.version) << 8 {
                return Err(self.input.error(
                    ErrorKind::Broken,
                    place,
                    format!("version mark {mark} in a trace of version {}", self.version),
                    "bytes are missing or damaged before it: fetch the file again",
                ));
            }
            let Some(op) = u16::try_from(code).ok().and_then(scsi_operation) else {
                notes.count(SKIPPED, place);
                continue;
            };
            let Some(t_ns) = time_us.checked_mul(1000) else {
                return Err(self.input.error(
                    ErrorKind::Range,
                    place,
                    format!("time {time_us} us is beyond 584 years"),
                    "is this a vscsi trace?",
                ));
            };
            if bytes % SECTOR_BYTES != 0 {
                notes.count(UNALIGNED, place);
            }
            let sectors = bytes.div_ceil(SECTOR_BYTES) as u32;
            let mut r = Record::new(t_ns, op, sector, sectors);
            r.complete_ns = match (self.version, self.response) {
                (2, Some(unit)) => response
                    .checked_mul(unit.ns())
                    .and_then(|ns| t_ns.checked_add(ns)),
                _ => None,
            };
            return Ok(Some(r));
        }
    }
    fn place(&self) -> (&str, Place) {
        (self.input.name(), Place::Record(self.records))
    }
    fn version(&self) -> Option<u32> {
        Some(self.version)
    }
}

/// Writes version 1. Times are rounded down to microseconds. Process IDs, flags and completion
/// times are not written. A length above 4 GiB is an error.
pub struct VscsiWriter {
    out: Output,
    serial: u32,
}

impl VscsiWriter {
    /// Makes a writer that writes to `out`.
    pub fn new(out: Box<dyn Write + Send>, options: &WriteOptions) -> Self {
        VscsiWriter {
            out: Output::new(out, options),
            serial: 0,
        }
    }
}

impl Writer for VscsiWriter {
    fn write(&mut self, r: &Record) -> Result<(), TraceError> {
        let Ok(bytes) = u32::try_from(r.sectors.bytes()) else {
            let what = format!(
                "{} sectors do not fit the format's 32-bit byte count",
                r.sectors
            );
            return Err(self.out.error(ErrorKind::Range, what, "split the request"));
        };
        let code = CODES.iter().find(|c| c.1 == r.op).map_or(0, |c| c.0);
        self.serial = self.serial.wrapping_add(1);
        let buf = self.out.buffer();
        buf.extend_from_slice(&self.serial.to_le_bytes());
        buf.extend_from_slice(&bytes.to_le_bytes());
        buf.extend_from_slice(&1u32.to_le_bytes());
        buf.extend_from_slice(&code.to_le_bytes());
        buf.extend_from_slice(&0x100u16.to_le_bytes());
        buf.extend_from_slice(&r.sector.0.to_le_bytes());
        buf.extend_from_slice(&(r.t_ns / 1000).to_le_bytes());
        self.out.done_one()
    }
    fn finish(&mut self) -> Result<(), TraceError> {
        self.out.finish()
    }
}
