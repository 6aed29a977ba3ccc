//! The common record. Every format is converted to it, and every replay reads it.

use seekwell_core::{CgroupId, Flags, IoPrio, Op, Sector, Sectors, TaskId};

/// Upper limit of sector numbers, 2^54. A byte address then fits into a signed 64-bit offset, as in
/// all kernels.
pub const SECTOR_END_MAX: u64 = 1 << 54;

/// Maximum time after the first record in ns: 285 years. This is seven years less than the limit of
/// signed 64-bit nanoseconds, so that the later times of a replay also stay below that limit.
pub const TIME_MAX_NS: u64 = 9_000_000_000_000_000_000;

/// A recorded I/O. Information that a format does not contain is `None`.
///
/// A [`crate::Reader`] guarantees:
/// - `t_ns` never decreases.
/// - Insertion, issue and completion never precede the submission or each other.
/// - No time exceeds [`TIME_MAX_NS`].
/// - `sectors` is zero only for a flush.
/// - The range ends below [`SECTOR_END_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Time of submission, in ns since the first record of the trace.
    pub t_ns: u64,
    /// Operation.
    pub op: Op,
    /// Flags of the operation that the format can express.
    pub flags: Flags,
    /// First sector; 0 for a flush.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: Sectors,
    /// Task that submitted the I/O: its process id (or thread id) on the recorded machine.
    pub task: Option<TaskId>,
    /// CPU of the submission.
    pub cpu: Option<u16>,
    /// I/O priority, if it was recorded.
    pub ioprio: Option<IoPrio>,
    /// Cgroup number; the root cgroup if it was not recorded.
    pub cgroup: CgroupId,
    /// Device number, `major << 20 | minor`; 0 if the format has only one device.
    pub device: u32,
    /// Time of insertion into the scheduler, in ns since the first record.
    pub insert_ns: Option<u64>,
    /// Time of issue to the driver, in ns since the first record.
    pub issue_ns: Option<u64>,
    /// Time of completion, in ns since the first record.
    pub complete_ns: Option<u64>,
    /// Error number of the completion; 0 means success.
    pub error: u16,
}

impl Record {
    /// Makes a record with time, operation and position only.
    pub const fn new(t_ns: u64, op: Op, sector: u64, sectors: u32) -> Self {
        Record {
            t_ns,
            op,
            flags: Flags::empty(),
            sector: Sector(sector),
            sectors: Sectors(sectors),
            task: None,
            cpu: None,
            ioprio: None,
            cgroup: CgroupId::ROOT,
            device: 0,
            insert_ns: None,
            issue_ns: None,
            complete_ns: None,
            error: 0,
        }
    }
    /// Returns the time from submission to completion in ns, if the completion is known.
    pub fn latency_ns(&self) -> Option<u64> {
        Some(self.complete_ns?.saturating_sub(self.t_ns))
    }
    /// Returns the sector after the last sector of the record.
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }
}

/// Packs a device number as in traces (`major << 20 | minor`).
pub const fn device_number(major: u32, minor: u32) -> u32 {
    (major << 20) | (minor & 0xf_ffff)
}
