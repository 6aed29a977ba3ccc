//! A disk of the guest: requests of virtio-blk, a device model, and the bytes in an image file.

use crate::error::GuestError;
use crate::memory::Mapping;
use crate::queue::{Buffer, Chain};
use seekwell_core::{
    Bio, BioDone, BioSink, Device, DeviceFacts, Direct, Flags, Instant, Op, Sector, Sectors, TaskId,
};
use std::fs::File;
use std::os::unix::fs::FileExt;

const SECTOR: u64 = 512;
const TYPE_IN: u32 = 0;
const TYPE_OUT: u32 = 1;
const TYPE_FLUSH: u32 = 4;
const TYPE_GET_ID: u32 = 8;
const TYPE_DISCARD: u32 = 11;
const TYPE_WRITE_ZEROES: u32 = 13;
const STATUS_OK: u8 = 0;
const STATUS_IOERR: u8 = 1;
const STATUS_UNSUPPORTED: u8 = 2;
/// The header of a request: type, reserved, sector.
const HEADER_BYTES: usize = 16;
/// Most sectors of one discard; a bio's length has 32 bits.
const DISCARD_MAX_SECTORS: u32 = 1 << 22;
/// Longest scatter list of a request that the driver accepts (`VIRTIO_BLK_MAX_SG_ELEMS`, 6.12). A
/// list that is longer than the queue is in an indirect table.
pub const SEGMENTS_MAX: u32 = 1024;

/// A modelled disk with its contents.
pub struct GuestDisk {
    sink: Direct<Box<dyn Device + Send>>,
    facts: DeviceFacts,
    image: File,
    jobs: Vec<Option<Job>>,
    free: Vec<u32>,
    due: Vec<BioDone>,
    log: Vec<LogEntry>,
    bytes: Vec<u8>,
    segments: u32,
}

/// One request of the log, in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Virtual time at which the guest submitted the request, ns.
    pub arrive_ns: u64,
    /// Virtual time of the completion, ns; `None` if the run ended first.
    pub complete_ns: Option<u64>,
    /// Operation.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors; 0 for a flush.
    pub sectors: Sectors,
    /// True if the device failed the request.
    pub error: bool,
}

struct Job {
    head: u16,
    logged: usize,
    /// The buffers that receive the data of a read.
    read: Vec<Buffer>,
    sector: u64,
    status: Buffer,
}

/// A request that is finished: its chain and the number of bytes written for the guest.
#[derive(Debug, PartialEq, Eq)]
pub struct Finished {
    /// Index of the first descriptor.
    pub head: u16,
    /// Bytes that the device wrote.
    pub written: u32,
}

impl GuestDisk {
    /// Returns a disk whose requests have at most this many segments. The image must be as large as
    /// the device; holes are zeros.
    pub fn new(device: Box<dyn Device + Send>, image: File, segments: u32) -> Self {
        GuestDisk {
            facts: device.facts().clone(),
            sink: Direct::new(device),
            image,
            jobs: Vec::new(),
            free: Vec::new(),
            due: Vec::new(),
            log: Vec::new(),
            bytes: Vec::new(),
            segments: segments.clamp(1, SEGMENTS_MAX),
        }
    }
    /// Returns the facts of the device.
    pub fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    /// Returns the requests so far, in order of arrival.
    pub fn into_log(self) -> Vec<LogEntry> {
        self.log
    }

    /// Returns the config space of virtio-blk.
    pub fn config(&self) -> [u8; 60] {
        let mut c = [0u8; 60];
        let mut put = |at: usize, bytes: &[u8]| c[at..at + bytes.len()].copy_from_slice(bytes);
        let physical = self.facts.physical_block_bytes.max(512);
        put(0, &self.facts.capacity.0.to_le_bytes());
        put(12, &self.segments.to_le_bytes());
        put(20, &512u32.to_le_bytes());
        put(24, &[(physical / 512).ilog2() as u8]);
        put(26, &1u16.to_le_bytes());
        put(28, &(self.facts.io_opt_bytes / 512).to_le_bytes());
        put(32, &[u8::from(self.facts.write_cache)]);
        put(34, &1u16.to_le_bytes());
        put(36, &DISCARD_MAX_SECTORS.to_le_bytes());
        put(40, &1u32.to_le_bytes());
        put(44, &(physical / 512).to_le_bytes());
        put(48, &DISCARD_MAX_SECTORS.to_le_bytes());
        put(52, &1u32.to_le_bytes());
        c
    }
    /// Returns the feature bits of virtio-blk.
    pub fn features(&self) -> u64 {
        const SEG_MAX: u64 = 1 << 2;
        const BLK_SIZE: u64 = 1 << 6;
        const FLUSH: u64 = 1 << 9;
        const TOPOLOGY: u64 = 1 << 10;
        const CONFIG_WCE: u64 = 1 << 11;
        const DISCARD: u64 = 1 << 13;
        const WRITE_ZEROES: u64 = 1 << 14;
        let cache = if self.facts.write_cache {
            FLUSH | CONFIG_WCE
        } else {
            0
        };
        let trim = if self.facts.rotational {
            0
        } else {
            DISCARD | WRITE_ZEROES
        };
        SEG_MAX | BLK_SIZE | TOPOLOGY | cache | trim
    }

    /// Takes a request at virtual time `now`. Returns it at once if the device is not needed.
    pub fn submit(
        &mut self,
        now: u64,
        chain: &Chain,
        memory: &Mapping,
    ) -> Result<Option<Finished>, GuestError> {
        let Some((&status, rest)) = chain.buffers.split_last() else {
            return Err(GuestError::disk("an empty request"));
        };
        let Some((&header, data)) = rest.split_first() else {
            return Err(GuestError::disk("a request without a header"));
        };
        if header.len as usize != HEADER_BYTES || header.device_writes {
            return Err(GuestError::disk(format!(
                "a header of {} bytes",
                header.len
            )));
        }
        if status.len != 1 || !status.device_writes {
            return Err(GuestError::disk("a request without a status byte"));
        }
        let (kind, sector) = (memory.u32(header.at)?, memory.u64(header.at + 8)?);
        // Before any memory is allocated for them.
        for b in data {
            memory.check(b.at, b.len)?;
        }
        let bytes: u64 = data.iter().map(|b| u64::from(b.len)).sum();
        let answer = |code: u8, written: u32| {
            memory.write(status.at, &[code])?;
            let head = chain.head;
            Ok(Some(Finished {
                head,
                written: written + 1,
            }))
        };
        let (op, sector, sectors) = match kind {
            TYPE_IN | TYPE_OUT => {
                let reads = kind == TYPE_IN;
                if data.iter().any(|b| b.device_writes != reads) || !bytes.is_multiple_of(SECTOR) {
                    return Err(GuestError::disk("data of a wrong direction or length"));
                }
                let op = if reads { Op::Read } else { Op::Write };
                (op, sector, bytes / SECTOR)
            }
            TYPE_FLUSH => (Op::Flush, 0, 0),
            TYPE_DISCARD | TYPE_WRITE_ZEROES => {
                let op = match kind {
                    TYPE_DISCARD => Op::Discard,
                    _ => Op::WriteZeroes,
                };
                // One segment: sector, number of sectors, flags.
                let Some(segment) = data.first().filter(|s| s.len == 16) else {
                    return answer(STATUS_UNSUPPORTED, 0);
                };
                let n = memory.u32(segment.at + 8)?;
                (op, memory.u64(segment.at)?, u64::from(n))
            }
            TYPE_GET_ID => {
                let mut id = [0u8; 20];
                id[..8].copy_from_slice(b"seekwell");
                let Some(to) = data.first().filter(|b| b.len >= 20) else {
                    return answer(STATUS_UNSUPPORTED, 0);
                };
                memory.write(to.at, &id)?;
                return answer(STATUS_OK, 20);
            }
            _ => return answer(STATUS_UNSUPPORTED, 0),
        };
        let end = sector.checked_add(sectors);
        if end.is_none_or(|e| e > self.facts.capacity.0) || (sectors == 0 && op != Op::Flush) {
            return answer(STATUS_IOERR, 0);
        }
        match op {
            // The guest must not change the data of a running write, so they can be taken now.
            Op::Write => self.store(sector, data, memory)?,
            Op::Discard | Op::WriteZeroes => self.zero(sector, sectors)?,
            Op::Read | Op::Flush => {}
        }
        let read = if op == Op::Read {
            data.to_vec()
        } else {
            Vec::new()
        };
        self.start(now, op, sector, sectors as u32, chain.head, read, status);
        Ok(None)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one request")]
    fn start(
        &mut self,
        now: u64,
        op: Op,
        sector: u64,
        sectors: u32,
        head: u16,
        read: Vec<Buffer>,
        status: Buffer,
    ) {
        let id = self.free.pop().unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() as u32 - 1
        });
        self.jobs[id as usize] = Some(Job {
            head,
            logged: self.log.len(),
            read,
            sector,
            status,
        });
        self.log.push(LogEntry {
            arrive_ns: now,
            complete_ns: None,
            op,
            sector: Sector(sector),
            sectors: Sectors(sectors),
            error: false,
        });
        let flags = if op == Op::Write {
            Flags::SYNC
        } else {
            Flags::empty()
        };
        let bio = Bio::new(u64::from(id), TaskId(1), op, flags, sector, sectors);
        self.sink.submit(Instant(now), bio);
    }

    /// Returns the virtual time of the next event of the device, ns.
    pub fn next_event(&self) -> Option<u64> {
        self.sink.next_event().map(|t| t.0)
    }

    /// Runs the device up to `now` and finishes the requests that have completed.
    pub fn advance(
        &mut self,
        now: u64,
        memory: &Mapping,
        out: &mut Vec<Finished>,
    ) -> Result<(), GuestError> {
        let mut due = std::mem::take(&mut self.due);
        self.sink.advance(Instant(now), &mut due);
        for done in due.drain(..) {
            let id = done.id.0 as u32;
            let Some(job) = self.jobs.get_mut(id as usize).and_then(Option::take) else {
                continue;
            };
            self.free.push(id);
            let entry = &mut self.log[job.logged];
            entry.complete_ns = Some(done.at.0);
            entry.error = done.error;
            let mut written = 1;
            if !done.error {
                written += self.load(&job, memory)?;
            }
            let code = if done.error { STATUS_IOERR } else { STATUS_OK };
            memory.write(job.status.at, &[code])?;
            out.push(Finished {
                head: job.head,
                written,
            });
        }
        self.due = due;
        Ok(())
    }

    fn store(&mut self, sector: u64, data: &[Buffer], memory: &Mapping) -> Result<(), GuestError> {
        let mut at = sector * SECTOR;
        for b in data {
            self.bytes.resize(b.len as usize, 0);
            memory.read(b.at, &mut self.bytes)?;
            self.image
                .write_all_at(&self.bytes, at)
                .map_err(GuestError::host("write the disk's image"))?;
            at += u64::from(b.len);
        }
        Ok(())
    }

    fn load(&mut self, job: &Job, memory: &Mapping) -> Result<u32, GuestError> {
        let (mut at, mut n) = (job.sector * SECTOR, 0);
        for b in &job.read {
            self.bytes.resize(b.len as usize, 0);
            self.image
                .read_exact_at(&mut self.bytes, at)
                .map_err(GuestError::host("read the disk's image"))?;
            memory.write(b.at, &self.bytes)?;
            at += u64::from(b.len);
            n += b.len;
        }
        Ok(n)
    }

    fn zero(&mut self, sector: u64, sectors: u64) -> Result<(), GuestError> {
        use rustix::fs::{FallocateFlags, fallocate};
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.image, how, sector * SECTOR, sectors * SECTOR)
            .map_err(GuestError::host("discard a part of the disk's image"))
    }
}
