//! The common record: what every format maps to and every replay reads.

use seekwell_core::{CgroupId, Flags, IoPrio, Op, Sector, Sectors, TaskId};

/// Sectors reach up to 2^54: a byte address then fits a signed 64-bit offset, as on every kernel.
pub const SECTOR_END_MAX: u64 = 1 << 54;

/// Times reach up to this many ns after the first record, 285 years: seven years before a signed
/// 64-bit count of ns ends, so that what a replay makes of the last record ends before it, too.
pub const TIME_MAX_NS: u64 = 9_000_000_000_000_000_000;

/// One recorded I/O. What a format does not tell is `None`, never a made-up value.
///
/// A [`crate::Reader`] promises: `t_ns` never decreases, the later times never precede the
/// earlier ones, none is beyond [`TIME_MAX_NS`], `sectors` is zero only for a flush, and the range
/// ends below [`SECTOR_END_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Submission, in ns since the first record of the trace.
    pub t_ns: u64,
    /// Operation.
    pub op: Op,
    /// Modifiers, as far as the format has words for them.
    pub flags: Flags,
    /// First sector; 0 for a flush.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Submitting task: the pid (or thread id) of the recorded machine.
    pub task: Option<TaskId>,
    /// CPU it was submitted on.
    pub cpu: Option<u16>,
    /// Priority, if recorded.
    pub ioprio: Option<IoPrio>,
    /// Cgroup by number; the root if not recorded.
    pub cgroup: CgroupId,
    /// Device, `major << 20 | minor`; 0 where the format has one device only.
    pub device: u32,
    /// When it entered the scheduler, same clock as `t_ns`.
    pub insert_ns: Option<u64>,
    /// When it went to the driver, same clock.
    pub issue_ns: Option<u64>,
    /// When it was done, same clock.
    pub complete_ns: Option<u64>,
    /// Error code of the completion; 0 is success.
    pub error: u16,
}

impl Record {
    /// A record that knows time, operation and place only.
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
    /// First sector behind it.
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }
}

/// Packs a device number as traces do.
pub const fn device_number(major: u32, minor: u32) -> u32 {
    (major << 20) | (minor & 0xf_ffff)
}
