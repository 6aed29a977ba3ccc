//! What cgroups are told about the block devices that their tasks use, in the words of cgroup v2.

/// A cgroup's line in `io.max`: bytes and operations a second; `None` is `max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoMaxLimits {
    /// Bytes read a second.
    pub rbps: Option<u64>,
    /// Bytes written a second.
    pub wbps: Option<u64>,
    /// Reads a second.
    pub riops: Option<u64>,
    /// Writes (and discards) a second.
    pub wiops: Option<u64>,
}

/// The line of a device in the root's `io.cost.qos`; `None`: as the kernel has it for a device of
/// its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoCostQos {
    /// Is the controller on?
    pub enable: bool,
    /// Reads that are to be within their latency, ppm; 0: no goal.
    pub rpct_ppm: Option<u32>,
    /// Latency of reads, us.
    pub rlat_us: Option<u32>,
    /// Writes that are to be within theirs, ppm; 0: no goal.
    pub wpct_ppm: Option<u32>,
    /// Latency of writes, us.
    pub wlat_us: Option<u32>,
    /// Least rate of the device's clock, percent.
    pub min_pct: Option<u32>,
    /// Highest rate of the device's clock, percent.
    pub max_pct: Option<u32>,
}

/// The line of a device in the root's `io.cost.model`: what a device is thought to do in a second,
/// each at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoCostModel {
    /// Bytes of reads, by large requests one behind the other.
    pub rbps: u64,
    /// Reads of 4 KiB, one behind the other.
    pub rseqiops: u64,
    /// Reads of 4 KiB here and there.
    pub rrandiops: u64,
    /// Bytes of writes.
    pub wbps: u64,
    /// Writes of 4 KiB, one behind the other.
    pub wseqiops: u64,
    /// Writes of 4 KiB here and there.
    pub wrandiops: u64,
}
