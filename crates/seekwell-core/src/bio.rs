//! The bio: one contiguous transfer as its submitter asked for it.

use crate::ioc::{CgroupId, Era, IoPrio, TaskId};
use crate::units::{Sector, Sectors};

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Op {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Empty the device's volatile write cache; no sectors.
    Flush,
    /// Tell the device that sectors hold nothing.
    Discard,
    /// Write zeroes without sending them.
    WriteZeroes,
}

impl Op {
    /// Data direction as schedulers see it: everything but a read counts as a write.
    pub const fn is_write(self) -> bool {
        !matches!(self, Op::Read)
    }
    /// 0 for reads, 1 for writes: an index into per-direction arrays.
    pub const fn dir(self) -> usize {
        self.is_write() as usize
    }
}

bitflags::bitflags! {
    /// Modifiers of a bio or request, in the kernel's words.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Flags: u16 {
        /// Somebody waits for it (REQ_SYNC). Reads are sync without it.
        const SYNC = 1;
        /// Do not idle for the submitter after this one (REQ_NOIDLE: fsync, O_SYNC).
        const NOIDLE = 1 << 1;
        /// File-system metadata (REQ_META).
        const META = 1 << 2;
        /// Boosted by CFQ (REQ_PRIO).
        const PRIO = 1 << 3;
        /// Read-ahead: may be dropped under congestion (REQ_RAHEAD).
        const RAHEAD = 1 << 4;
        /// Flush the write cache before (REQ_PREFLUSH; FLUSH until 4.8).
        const PREFLUSH = 1 << 5;
        /// On the medium before completion (REQ_FUA).
        const FUA = 1 << 6;
        /// Must not be merged (REQ_NOMERGE).
        const NOMERGE = 1 << 7;
        /// 2.6 barrier: nothing passes it in either direction.
        const BARRIER = 1 << 8;
        /// Read-ahead submitted without a SYNC mark by a tracer that says so: an async read.
        const ASYNC_READ = 1 << 9;
        /// Written by a flusher that nobody waits for (REQ_BACKGROUND, 4.10 and later).
        const BACKGROUND = 1 << 10;
    }
}

/// Most sectors that one entry of a scatter list holds (`max_segment_size`, 64 KiB).
pub const SEGMENT_SECTORS: u16 = 128;
/// Sectors of a page: an entry of a scatter list where every page lies by itself.
pub const PAGE_SECTORS: u16 = 8;

/// The submitter's name for a bio; it comes back with the completion. Not an index.
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
    /// Whose io context it carries.
    pub task: TaskId,
    /// The bio's own priority where the submitter set one (AIO, loop); else the context's counts.
    pub ioprio: Option<IoPrio>,
    /// Who pays.
    pub cgroup: CgroupId,
    /// CPU it is submitted on (software context of blk-mq).
    pub cpu: u16,
    /// Sectors of it that lie together in memory, on average: what one entry of a scatter list
    /// holds. From [`PAGE_SECTORS`], single pages, to [`SEGMENT_SECTORS`], large folios and what a
    /// trace says nothing about.
    pub segment: u16,
}

impl Bio {
    /// A plain bio of task `task`; flags as given.
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
    /// Entries of a scatter list it takes.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.sectors.0.div_ceil(u32::from(self.segment.max(1)))
    }
    /// First sector behind it.
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }
    /// Is somebody waiting, as kernels of `era` derive it (block-layer section 2)?
    pub fn is_sync(&self, era: Era) -> bool {
        is_sync(self.op, self.flags, era)
    }
}

/// "Is sync": reads always (unless marked otherwise); writes with SYNC. From 3.x on, a flush or
/// FUA write counts as sync too (`rw_is_sync` and `op_is_sync` of 4.10 and later).
pub fn is_sync(op: Op, flags: Flags, era: Era) -> bool {
    if op == Op::Read {
        return !flags.contains(Flags::ASYNC_READ);
    }
    flags.contains(Flags::SYNC)
        || (era >= Era::Mq && flags.intersects(Flags::PREFLUSH.union(Flags::FUA)))
}
