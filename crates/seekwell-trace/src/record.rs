//! The common record, to which every format is mapped and which every replay reads.

use seekwell_core::{CgroupId, Flags, IoPrio, Op, Sector, Sectors, TaskId};

/// Sectors are below 2^54: then a byte address fits into a signed 64-bit offset, as in all kernels.
pub const SECTOR_END_MAX: u64 = 1 << 54;

/// Largest time after the first record in ns, 285 years. This is seven years below the limit of
/// signed 64-bit nanoseconds, so that the later times of a replay also stay below it.
pub const TIME_MAX_NS: u64 = 9_000_000_000_000_000_000;

/// A recorded I/O. Information that a format does not have is `None`, never invented.
///
/// A [`crate::Reader`] guarantees: `t_ns` never decreases; later times never precede earlier ones;
/// no time is beyond [`TIME_MAX_NS`]; `sectors` is zero only for a flush; and the range ends below
/// [`SECTOR_END_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Submission, in ns since the first record of the trace.
    pub t_ns: u64,
    /// Operation.
    pub op: Op,
    /// Modifiers that the format can express.
    pub flags: Flags,
    /// First sector; 0 for a flush.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Submitting task: the pid (or thread id) on the recorded machine.
    pub task: Option<TaskId>,
    /// CPU of the submission.
    pub cpu: Option<u16>,
    /// Priority, if recorded.
    pub ioprio: Option<IoPrio>,
    /// Cgroup number; the root if not recorded.
    pub cgroup: CgroupId,
    /// Device, `major << 20 | minor`; 0 if the format has only one device.
    pub device: u32,
    /// Time of insertion into the scheduler, on the clock of `t_ns`.
    pub insert_ns: Option<u64>,
    /// Time of issue to the driver, on the same clock.
    pub issue_ns: Option<u64>,
    /// Time of completion, on the same clock.
    pub complete_ns: Option<u64>,
    /// Error code of the completion; 0 is success.
    pub error: u16,
}

impl Record {
    /// A record with time, operation and place only.
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
    /// Time from submission to completion, in ns, if known.
    pub fn latency_ns(&self) -> Option<u64> {
        Some(self.complete_ns?.saturating_sub(self.t_ns))
    }
    /// The sector after its last one.
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }
}

/// Packs a device number as in traces.
pub const fn device_number(major: u32, minor: u32) -> u32 {
    (major << 20) | (minor & 0xf_ffff)
}
