//! Settings of a cgroup for the block devices that its tasks use. The names are those of cgroup v2.

/// The limits of a cgroup in `io.max`; `None` is written `max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoMaxLimits {
    /// Largest number of bytes read per second.
    pub rbps: Option<u64>,
    /// Largest number of bytes written per second.
    pub wbps: Option<u64>,
    /// Largest number of reads per second.
    pub riops: Option<u64>,
    /// Largest number of writes and discards per second.
    pub wiops: Option<u64>,
}

/// The settings of a device in the root's `io.cost.qos`. `None` is the kernel's default for this
/// kind of device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoCostQos {
    /// True if the controller is on.
    pub enable: bool,
    /// Fraction of the reads that should have at most the latency `rlat_us`, in ppm; 0: no goal.
    pub rpct_ppm: Option<u32>,
    /// Latency goal of reads, us.
    pub rlat_us: Option<u32>,
    /// Fraction of the writes that should have at most the latency `wlat_us`, in ppm; 0: no goal.
    pub wpct_ppm: Option<u32>,
    /// Latency goal of writes, us.
    pub wlat_us: Option<u32>,
    /// Lowest speed of the device's virtual clock, percent.
    pub min_pct: Option<u32>,
    /// Highest speed of the device's virtual clock, percent.
    pub max_pct: Option<u32>,
}

/// The settings of a device in the root's `io.cost.model`: the assumed capacity of the device per
/// second. Each value is at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoCostModel {
    /// Bytes of large sequential reads per second.
    pub rbps: u64,
    /// Sequential reads of 4 KiB per second.
    pub rseqiops: u64,
    /// Random reads of 4 KiB per second.
    pub rrandiops: u64,
    /// Bytes of large sequential writes per second.
    pub wbps: u64,
    /// Sequential writes of 4 KiB per second.
    pub wseqiops: u64,
    /// Random writes of 4 KiB per second.
    pub wrandiops: u64,
}
