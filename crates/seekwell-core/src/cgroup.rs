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
