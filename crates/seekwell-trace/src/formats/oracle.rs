//! `oracleGeneral`, the binary traces of the cache simulator libCacheSim. Many block and object
//! traces are published in this format, compressed with zstd (<https://github.com/cacheMon/cache_dataset>).
//!
//! A record has 24 bytes, little-endian: time in seconds u32, object id u64, object size in bytes
//! u32, and the number of the next request to the same object i64, or -1
//! (`libCacheSim/traceReader/customizedReader/oracle/oracleGeneralBin.h`). In block traces that
//! were converted from vscsi, the object id is the first sector. The format has no operations.

use crate::error::{ErrorKind, Place, TraceError};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::input::Input;
use crate::notes::Notes;
use crate::record::{Record, SECTOR_END_MAX};
use crate::source::{NOTE_UNALIGNED, Source};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{NSEC_PER_SEC, Op};

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "oracle-general",
    summary: "oracleGeneral: the binary traces of libCacheSim",
    extensions: &["oracleGeneral", "oracleGeneral.bin"],
    help: "Records of 24 bytes that cache simulators read: time, object, size and next access. \
           Seekwell uses the object as the first sector, as in traces that were converted from \
           vscsi; traces whose objects are hashes are rejected or meaningless. The format has no \
           operations, so all requests are reads. Times are in whole seconds, so --mode timed \
           submits all requests of a second together. The format contains no process IDs and no \
           completion times.",
    carries: Carries {
        pids: Has::No,
        completions: Has::No,
        issues: Has::No,
        ioprio: Has::No,
        flags: Has::No,
        time: "1 s",
    },
    keeps: Keeps::NONE,
    volumes: Volumes::One,
    text: false,
    detect,
    parts: None,
    open: |mut inputs, _, notes| {
        let mut input = inputs.remove(0);
        if !detect(input.peek(RECORD_BYTES * RECORDS, Place::File)?) && !input.was_cut() {
            return Err(input.error(
                ErrorKind::Broken,
                Place::File,
                "is not an oracleGeneral trace: the first records are not times, objects and accesses",
                "give the correct format, or omit it for automatic detection",
            ));
        }
        notes.say(
            "the format has no operations: all requests are reads, and objects are used as sectors"
                .to_owned(),
        );
        Ok(Box::new(Oracle { input, records: 0 }))
    },
    create: None,
};

const RECORD_BYTES: usize = 24;
/// Number of records that the detection examines.
const RECORDS: usize = 64;
/// Maximum size of an object in a trace that is detected, in bytes.
const SIZE_MAX: u32 = 1 << 30;

fn u32_at(b: &[u8], i: usize) -> u32 {
    u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]])
}
fn u64_at(b: &[u8], i: usize) -> u64 {
    u64::from(u32_at(b, i)) | u64::from(u32_at(b, i + 4)) << 32
}

/// Returns true if times do not go back, sizes are plausible, and each next access is a later
/// request or -1.
fn detect(head: &[u8]) -> bool {
    let mut last = 0;
    let mut whole = head.chunks_exact(RECORD_BYTES).take(RECORDS).enumerate();
    whole.len() > 0
        && whole.all(|(i, r)| {
            let (time, size, next) = (u32_at(r, 0), u32_at(r, 12), u64_at(r, 16));
            let follows = time >= last;
            last = time;
            let later = next == u64::MAX || next > i as u64 && next < 1 << 40;
            follows && later && size > 0 && size <= SIZE_MAX
        })
}

struct Oracle {
    input: Input,
    records: u64,
}

impl Source for Oracle {
    fn next(&mut self, notes: &mut Notes) -> Result<Option<Record>, TraceError> {
        self.records += 1;
        let place = Place::Record(self.records);
        let Some(r) = self.input.block::<RECORD_BYTES>(place)? else {
            self.input.note_cut(notes);
            return Ok(None);
        };
        let (object, bytes) = (u64_at(&r, 4), u64::from(u32_at(&r, 12)));
        let sectors = bytes.div_ceil(SECTOR_BYTES) as u32;
        if object > SECTOR_END_MAX {
            return Err(self.input.error(
                ErrorKind::Range,
                place,
                format!(
                    "the object {object} is too large for a sector number: it is probably a hash"
                ),
                "use the original trace: hashes contain no positions",
            ));
        }
        if bytes % SECTOR_BYTES != 0 {
            notes.count(NOTE_UNALIGNED, place);
        }
        let t_ns = u64::from(u32_at(&r, 0)) * NSEC_PER_SEC;
        Ok(Some(Record::new(t_ns, Op::Read, object, sectors)))
    }
    fn place(&self) -> (&str, Place) {
        (self.input.name(), Place::Record(self.records))
    }
}
