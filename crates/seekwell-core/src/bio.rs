//! The bio: one contiguous transfer as its submitter requested it.

use crate::ioc::{CgroupId, Era, IoPrio, TaskId};
use crate::units::{Sector, Sectors};

/// The operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Op {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Writes back the device's volatile write cache; no sectors.
    Flush,
    /// Tells the device that sectors hold no data.
    Discard,
    /// Write zeroes without sending them.
    WriteZeroes,
}

impl Op {
    /// Data direction as schedulers see it: every operation except a read counts as a write.
    pub const fn is_write(self) -> bool {
        !matches!(self, Op::Read)
    }
    /// 0 for reads, 1 for writes: an index into per-direction arrays.
    pub const fn dir(self) -> usize {
        self.is_write() as usize
    }
}

bitflags::bitflags! {
    /// Modifiers of a bio or request, with the kernel's names.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Flags: u16 {
        /// A task waits for it (REQ_SYNC). Reads are sync without this flag.
        const SYNC = 1;
        /// Do not idle for the submitter after this one (REQ_NOIDLE: fsync, O_SYNC).
        const NOIDLE = 1 << 1;
        /// File-system metadata (REQ_META).
        const META = 1 << 2;
        /// Boosted by CFQ (REQ_PRIO).
        const PRIO = 1 << 3;
        /// Read-ahead: may be dropped under congestion (REQ_RAHEAD).
        const RAHEAD = 1 << 4;
        /// Flush the write cache first (REQ_PREFLUSH; FLUSH until 4.8).
        const PREFLUSH = 1 << 5;
        /// On the medium before completion (REQ_FUA).
        const FUA = 1 << 6;
        /// Must not be merged (REQ_NOMERGE).
        const NOMERGE = 1 << 7;
        /// 2.6 barrier: no request passes it in either direction.
        const BARRIER = 1 << 8;
        /// A read-ahead that a trace marks as submitted without SYNC: an async read.
        const ASYNC_READ = 1 << 9;
        /// Written by a flusher; no task waits for it (REQ_BACKGROUND, 4.10 and later).
        const BACKGROUND = 1 << 10;
    }
}

/// The largest number of sectors in one entry of a scatter list (`max_segment_size`, 64 KiB).
pub const SEGMENT_SECTORS: u16 = 128;
/// Sectors of a page: one entry of a scatter list if pages are not contiguous in memory.
pub const PAGE_SECTORS: u16 = 8;

/// The submitter's identifier of a bio; the completion carries it. Not an index.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BioId(pub u64);

/// One contiguous transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// Returned with the completion.
    pub id: BioId,
    /// Operation.
    pub op: Op,
    /// Modifiers.
    pub flags: Flags,
    /// First sector.
    pub sector: Sector,
    /// Length; 0 only for a flush.
    pub sectors: Sectors,
    /// The task whose io context it carries.
    pub task: TaskId,
    /// The bio's own priority if the submitter set one (AIO, loop); else the context's priority
    /// counts.
    pub ioprio: Option<IoPrio>,
    /// The cgroup that is charged.
    pub cgroup: CgroupId,
    /// The CPU that submits it (software context of blk-mq).
    pub cpu: u16,
    /// Average number of sectors that are contiguous in memory, which fit one entry of a scatter
    /// list. From [`PAGE_SECTORS`] (single pages) to [`SEGMENT_SECTORS`] (large folios, and traces
    /// without this information).
    pub segment: u16,
}

impl Bio {
    /// A plain bio of task `task` with the given flags.
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
    /// Number of entries it takes in a scatter list.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.sectors.0.div_ceil(u32::from(self.segment.max(1)))
    }
    /// The first sector after it.
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }
    /// Whether a task waits for it, as kernels of `era` decide (block-layer section 2).
    pub fn is_sync(&self, era: Era) -> bool {
        is_sync(self.op, self.flags, era)
    }
}

/// "Is sync": reads always (unless marked otherwise), and writes with SYNC. From 3.x on, a flush or
/// FUA write counts as sync too (`rw_is_sync`, and `op_is_sync` of 4.10 and later).
pub fn is_sync(op: Op, flags: Flags, era: Era) -> bool {
    if op == Op::Read {
        return !flags.contains(Flags::ASYNC_READ);
    }
    flags.contains(Flags::SYNC)
        || (era >= Era::Mq && flags.intersects(Flags::PREFLUSH.union(Flags::FUA)))
}
