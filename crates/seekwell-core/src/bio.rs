//! The bio: one contiguous transfer, as it was submitted.

use crate::ioc::{CgroupId, Era, IoPrio, TaskId};
use crate::units::{Sector, Sectors};

/// The operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Op {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Write the device's volatile write cache to the medium. A flush has no sectors.
    Flush,
    /// Tell the device that the sectors contain no data.
    Discard,
    /// Write zeroes, without sending them.
    WriteZeroes,
}

impl Op {
    /// Returns true if schedulers treat the operation as a write. Only a read is not a write.
    pub const fn is_write(self) -> bool {
        !matches!(self, Op::Read)
    }
    /// Returns 0 for reads and 1 for writes, as an index into arrays by direction.
    pub const fn dir(self) -> usize {
        self.is_write() as usize
    }
}

bitflags::bitflags! {
    /// Flags of a bio or request, with the kernel's names.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Flags: u16 {
        /// A task waits for the bio (REQ_SYNC). Reads are sync without this flag.
        const SYNC = 1;
        /// The scheduler should not idle for the submitter after this bio (REQ_NOIDLE: fsync,
        /// O_SYNC).
        const NOIDLE = 1 << 1;
        /// The bio transfers file-system metadata (REQ_META).
        const META = 1 << 2;
        /// CFQ gives the bio precedence (REQ_PRIO).
        const PRIO = 1 << 3;
        /// The bio is a read-ahead, which may be dropped under congestion (REQ_RAHEAD).
        const RAHEAD = 1 << 4;
        /// The device flushes its write cache first (REQ_PREFLUSH; FLUSH until 4.8).
        const PREFLUSH = 1 << 5;
        /// The data are on the medium before the completion (REQ_FUA).
        const FUA = 1 << 6;
        /// The bio must not be merged (REQ_NOMERGE).
        const NOMERGE = 1 << 7;
        /// The bio is a barrier of 2.6. No request passes it in either direction.
        const BARRIER = 1 << 8;
        /// The bio is an async read: a read-ahead that a trace marks as submitted without SYNC.
        const ASYNC_READ = 1 << 9;
        /// A flusher wrote the bio, and no task waits for it (REQ_BACKGROUND, 4.10 and later).
        const BACKGROUND = 1 << 10;
    }
}

/// The largest number of sectors in one entry of a scatter list (`max_segment_size`, 64 KiB).
pub const SEGMENT_SECTORS: u16 = 128;
/// Number of sectors in a page. A page is one entry of a scatter list if pages are not contiguous
/// in memory.
pub const PAGE_SECTORS: u16 = 8;

/// The submitter's identifier of a bio, which its completion contains. It is not an index.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BioId(pub u64);

/// One contiguous transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// Identifier, which the completion contains.
    pub id: BioId,
    /// Operation.
    pub op: Op,
    /// Modifiers.
    pub flags: Flags,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors; 0 only for a flush.
    pub sectors: Sectors,
    /// The task whose io context the bio uses.
    pub task: TaskId,
    /// Priority of the bio, if the submitter set one (AIO, loop). Otherwise the priority of the io
    /// context applies.
    pub ioprio: Option<IoPrio>,
    /// The cgroup that is charged for the bio.
    pub cgroup: CgroupId,
    /// The CPU that submits the bio (the software context of blk-mq).
    pub cpu: u16,
    /// Average number of sectors that are contiguous in memory and so use one entry of a scatter
    /// list. The range is [`PAGE_SECTORS`] (single pages) to [`SEGMENT_SECTORS`] (large folios, and
    /// traces without this information).
    pub segment: u16,
}

impl Bio {
    /// Returns a bio of task `task` with the given flags, in the root cgroup.
    pub const fn new(id: u64, task: TaskId, op: Op, flags: Flags, sector: u64, n: u32) -> Self {
        Bio {
            id: BioId(id),
            op,
            flags,
            sector: Sector(sector),
            sectors: Sectors(n),
            task,
            ioprio: None,
            cgroup: CgroupId::ROOT,
            cpu: 0,
            segment: SEGMENT_SECTORS,
        }
    }
    /// Returns the number of entries that the bio needs in a scatter list.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.sectors.0.div_ceil(u32::from(self.segment.max(1)))
    }
    /// Returns the first sector after the bio.
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }
    /// Returns true if kernels of `era` treat the bio as sync, that is as if a task waits for it.
    pub fn is_sync(&self, era: Era) -> bool {
        is_sync(self.op, self.flags, era)
    }
}

/// Returns true if a bio is sync: a read (unless marked as async), or a write with SYNC. Since 3.x
/// a write with flush or FUA is sync too (`rw_is_sync`; `op_is_sync` of 4.10 and later).
pub fn is_sync(op: Op, flags: Flags, era: Era) -> bool {
    if op == Op::Read {
        return !flags.contains(Flags::ASYNC_READ);
    }
    flags.contains(Flags::SYNC)
        || (era >= Era::Mq && flags.intersects(Flags::PREFLUSH.union(Flags::FUA)))
}
