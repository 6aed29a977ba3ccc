//! Specification of the machine above a queue: kernel, cores, memory, file system.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Smallest memory of a modelled machine, in bytes.
pub const MIN_MEMORY_BYTES: u64 = 16 << 20;
/// Largest memory and largest page cache, in bytes: 4 TiB, that is 2^30 pages.
pub const MAX_MEMORY_BYTES: u64 = 4 << 40;
/// Largest mean length of the contiguous runs in an aged file system, in blocks. (A run cannot be
/// longer than a block group.)
pub const MAX_AGED_RUN_BLOCKS: u32 = 32_768;
/// Allowed speeds of a core, in thousandths of the usual speed.
pub const CPU_PERMILLE: RangeInclusive<u32> = 50..=20_000;
/// Longest time between journal commits, in seconds: one day.
pub const MAX_COMMIT_S: u32 = 86_400;
/// Largest value of the `vm.*_centisecs` settings, in 1/100 s: one day.
pub const MAX_CENTISECS: u32 = 8_640_000;
/// Smallest value of the `vm.*_bytes` settings, in bytes: two pages.
pub const MIN_DIRTY_BYTES: u64 = 8192;
/// Smallest page cache, in bytes.
pub const MIN_CACHE_BYTES: u64 = 1 << 20;

/// A modelled machine. A field that is absent has the kernel's usual value. A checked specification
/// states kernel, cores, memory, file system and barriers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    /// Kernel release, 2.6.18 to 7.0; a checked specification states the kernel that models it.
    /// Absent: the kernel of the scheduler's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Number of cores, 1 to 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u16>,
    /// Memory in bytes, [`MIN_MEMORY_BYTES`] to [`MAX_MEMORY_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Page cache in bytes, [`MIN_CACHE_BYTES`] to [`MAX_MEMORY_BYTES`]. Absent: the memory that is
    /// not used otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
    /// File system: ext3 or ext4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<String>,
    /// True if the file system is mounted with barriers (flushes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barriers: Option<bool>,
    /// Fragmentation of files: the mean length of their contiguous runs, in blocks, at most
    /// [`MAX_AGED_RUN_BLOCKS`]. 0: a new file system without fragmentation.
    #[serde(default)]
    pub aged_run_blocks: u32,
    /// Block groups of the root's directories on a new file system. `drawn`: at random by the seed,
    /// as mke2fs does. `first`: the first group that has room. Absent: drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Start of the program. `boot`: at the same time as all clocks of the machine. `drawn`: at a
    /// random time between two runs of the flusher; each task of the program also starts after the
    /// wake-up delay of a sleeping core. Absent: boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Value of queue/read_ahead_kb, 0 to 65,536. Absent: the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_kb: Option<u32>,
    /// Speed of a core in thousandths of the usual speed at the kernel's time ([`CPU_PERMILLE`]).
    /// All CPU costs of the kernel and of programs are divided by it. Absent: 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_permille: Option<u32>,
    /// Mode of the journal (mount option `data`): ordered or writeback. Absent: ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Time between journal commits in seconds (mount option `commit`), at most [`MAX_COMMIT_S`].
    /// Absent or 0: the kernel's default, 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_s: Option<u32>,
    /// Value of vm.dirty_ratio, in percent of dirtyable memory, 1 to 100. Absent: the kernel's
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_ratio: Option<u32>,
    /// Value of vm.dirty_background_ratio, in percent, 0 to 100. Absent: the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_background_ratio: Option<u32>,
    /// Value of vm.dirty_bytes, [`MIN_DIRTY_BYTES`] to [`MAX_MEMORY_BYTES`]. It replaces the ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_bytes: Option<u64>,
    /// Value of vm.dirty_background_bytes, with the same range. It replaces the ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_background_bytes: Option<u64>,
    /// Value of vm.dirty_expire_centisecs in 1/100 s, at most [`MAX_CENTISECS`]. Absent: 3000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_expire_centisecs: Option<u32>,
    /// Value of vm.dirty_writeback_centisecs in 1/100 s, at most [`MAX_CENTISECS`]; 0: never.
    /// Absent: 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_writeback_centisecs: Option<u32>,
    /// Cgroups by name (`bulk`, `bulk/copy`) with their settings, for example
    /// `tasks=writer:wbps=2097152`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroups: BTreeMap<String, String>,
    /// Mechanisms of the model that are switched off, to measure their effect.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub without: BTreeSet<String>,
}
