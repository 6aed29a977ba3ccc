//! Settings of cgroups for the block devices that their tasks use, with the names of cgroup v2.

/// A cgroup's line in `io.max`: bytes and operations per second; `None` is `max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoMaxLimits {
    /// Bytes read per second.
    pub rbps: Option<u64>,
    /// Bytes written per second.
    pub wbps: Option<u64>,
    /// Reads per second.
    pub riops: Option<u64>,
    /// Writes (and discards) per second.
    pub wiops: Option<u64>,
}

/// The line of a device in the root's `io.cost.qos`; `None` is the kernel's default for this kind
/// of device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoCostQos {
    /// Whether the controller is on.
    pub enable: bool,
    /// Part of the reads that should be within their latency, ppm; 0: no goal.
    pub rpct_ppm: Option<u32>,
    /// Latency of reads, us.
    pub rlat_us: Option<u32>,
    /// Part of the writes that should be within their latency, ppm; 0: no goal.
    pub wpct_ppm: Option<u32>,
    /// Latency of writes, us.
    pub wlat_us: Option<u32>,
    /// Lowest rate of the device's clock, percent.
    pub min_pct: Option<u32>,
    /// Highest rate of the device's clock, percent.
    pub max_pct: Option<u32>,
}

/// The line of a device in the root's `io.cost.model`: the assumed capacity of the device per
/// second, each value at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoCostModel {
    /// Bytes of large sequential reads.
    pub rbps: u64,
    /// Sequential reads of 4 KiB.
    pub rseqiops: u64,
    /// Random reads of 4 KiB.
    pub rrandiops: u64,
    /// Bytes of large sequential writes.
    pub wbps: u64,
    /// Sequential writes of 4 KiB.
    pub wseqiops: u64,
    /// Random writes of 4 KiB.
    pub wrandiops: u64,
}
