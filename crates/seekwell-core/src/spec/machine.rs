//! The machine above a queue: kernel, cores, memory, file system.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Smallest memory of a modelled machine, bytes.
pub const MIN_MEMORY_BYTES: u64 = 16 << 20;
/// Largest memory and cache, bytes: 4 TiB, 2^30 pages.
pub const MAX_MEMORY_BYTES: u64 = 4 << 40;
/// Longest mean run of an aged file system, blocks, because no run is longer than a group.
pub const MAX_AGED_RUN_BLOCKS: u32 = 32_768;
/// Speed of a core, in thousandths of the usual speed.
pub const CPU_PERMILLE: RangeInclusive<u32> = 50..=20_000;
/// Longest time between commits, seconds: a day.
pub const MAX_COMMIT_S: u32 = 86_400;
/// Largest value of the `vm.*_centisecs`: a day.
pub const MAX_CENTISECS: u32 = 8_640_000;
/// Smallest value of the `vm.*_bytes`, bytes: two pages.
pub const MIN_DIRTY_BYTES: u64 = 8192;
/// Smallest page cache, bytes.
pub const MIN_CACHE_BYTES: u64 = 1 << 20;

/// A modelled machine. Absent fields have the kernel's usual values; a checked specification states
/// kernel, cores, memory, file system and barriers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    /// Kernel, 2.6.18 to 7.0; stated as the modelled kernel. Absent: the kernel of the scheduler's
    /// version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Cores, 1 to 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u16>,
    /// Memory, bytes; [`MIN_MEMORY_BYTES`] to [`MAX_MEMORY_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Page cache, bytes, [`MIN_CACHE_BYTES`] to [`MAX_MEMORY_BYTES`]; absent: the rest of the
    /// memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
    /// File system: ext3 or ext4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<String>,
    /// Mounted with barriers (flushes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barriers: Option<bool>,
    /// Fragmentation of files: mean length of a contiguous run, blocks, at most
    /// [`MAX_AGED_RUN_BLOCKS`]; 0: a fresh file system.
    #[serde(default)]
    pub aged_run_blocks: u32,
    /// Place of the root's directories on a fresh file system: `drawn` at random by the seed as
    /// mke2fs does, or `first`, the first group with room. Absent: drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// When the program begins. At `boot`: together with all clocks of the machine. `drawn`: at a
    /// random time between two runs of the flusher, and each of its tasks with the delay of a
    /// sleeping core's wake-up. Absent: boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// queue/read_ahead_kb, 0 to 65,536; absent: the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_kb: Option<u32>,
    /// Speed of a core relative to the usual one of the kernel's time, thousandths
    /// ([`CPU_PERMILLE`]). All CPU costs of the kernel and of programs are divided by it. The
    /// default is 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_permille: Option<u32>,
    /// Mode of the journal (mount option `data`): ordered or writeback; absent: ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Time between commits of the journal (mount option `commit`), seconds, at most
    /// [`MAX_COMMIT_S`]; absent or 0: the kernel's default, 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_s: Option<u32>,
    /// vm.dirty_ratio, percent of dirtyable memory, 1 to 100; absent: the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_ratio: Option<u32>,
    /// vm.dirty_background_ratio, percent, 0 to 100; absent: the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_background_ratio: Option<u32>,
    /// vm.dirty_bytes, [`MIN_DIRTY_BYTES`] to [`MAX_MEMORY_BYTES`], in place of the ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_bytes: Option<u64>,
    /// vm.dirty_background_bytes, the same range, in place of its ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_background_bytes: Option<u64>,
    /// vm.dirty_expire_centisecs, 1/100 s, at most [`MAX_CENTISECS`]; absent: the kernel's, 3000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_expire_centisecs: Option<u32>,
    /// vm.dirty_writeback_centisecs, 1/100 s, at most [`MAX_CENTISECS`], 0: never; absent: the
    /// kernel's, 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_writeback_centisecs: Option<u32>,
    /// Cgroups by name (`bulk`, `bulk/copy`), with their settings: `tasks=writer:wbps=2097152`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroups: BTreeMap<String, String>,
    /// Mechanisms switched off, to measure their effect.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub without: BTreeSet<String>,
}
