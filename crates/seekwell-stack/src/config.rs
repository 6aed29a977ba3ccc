//! Configuration of the model: kernel, memory, cores, file system, and switches that disable a
//! mechanism.

use crate::constants::Constants;
use seekwell_core::Era;

/// The file system on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fs {
    /// Extents, delayed allocation, jbd2.
    Ext4,
    /// Blocks allocated in write(), jbd: a commit writes all data of its transaction.
    Ext3,
}

/// Switches that disable single mechanisms, to measure their effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ablations {
    /// No plugs: every bio goes to the queue immediately.
    pub no_plugging: bool,
    /// No read-ahead.
    pub no_readahead: bool,
    /// No task waits for a page under writeback.
    pub no_stable_pages: bool,
    /// Commits do not write or wait for data (data=writeback).
    pub no_ordered_data: bool,
    /// Logged blocks can always be changed.
    pub no_shadows: bool,
    /// Metadata are always in memory: directories, inodes and bitmaps are never read.
    pub metadata_cached: bool,
    /// Dirtiers are never throttled.
    pub no_throttling: bool,
    /// CPU time is free: calls, copies and schedulers cost nothing, and computing needs no core.
    pub no_cpu_limit: bool,
    /// Sync writes do not carry NOIDLE.
    pub no_noidle: bool,
    /// Schedulers cost no CPU time, and no task waits for their locks. (Both matter on flash only.)
    pub no_scheduler_cpu: bool,
}

impl Ablations {
    /// Whether tasks are charged for the schedulers' CPU time.
    pub fn schedulers_cost(&self) -> bool {
        !self.no_scheduler_cpu && !self.no_cpu_limit
    }
}

/// Configuration of a modelled machine, without its disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Kernel version.
    pub era: Era,
    /// The kernel's constants. The caller is responsible for changed ones.
    pub constants: Constants,
    /// Number of cores.
    pub cores: u16,
    /// Speed of a core, in thousandths of the core that the constants refer to. CPU costs are
    /// divided by it.
    pub cpu_permille: u32,
    /// vm.dirty_bytes, which replaces the constant's share of memory.
    pub dirty_bytes: Option<u64>,
    /// vm.dirty_background_bytes, likewise.
    pub dirty_background_bytes: Option<u64>,
    /// Memory of the machine, bytes.
    pub memory_bytes: u64,
    /// Memory for the page cache, bytes, if not derived from `memory_bytes`.
    pub cache_bytes: Option<u64>,
    /// File system.
    pub fs: Fs,
    /// Whether barriers or flushes are on; `None`: the kernel's default.
    pub barriers: Option<bool>,
    /// Fragmentation of files: mean length of a run in blocks (0: a fresh file system).
    pub aged_run_blocks: u32,
    /// On a fresh file system, directories of the root go to the first group with room instead of a
    /// random one.
    pub first_placement: bool,
    /// Disabled mechanisms.
    pub ablations: Ablations,
    /// Keep the [`crate::Mark`]s of throttling.
    pub marks: bool,
    /// Also keep the marks of commits and flushes. There are several per fsync, so memory grows
    /// with the length of the run.
    pub commit_marks: bool,
    /// Keep a sample of the state every second.
    pub series: bool,
    /// Seed of the random choices (placement of directories, fragmentation of an aged file system).
    pub seed: u64,
}

impl Config {
    /// A machine typical of the kernel's time: four cores, 4 GiB, the usual file system.
    pub fn new(era: Era) -> Self {
        let constants = Constants::of(era);
        Config {
            era,
            cores: 4,
            cpu_permille: 1000,
            dirty_bytes: None,
            dirty_background_bytes: None,
            memory_bytes: 4 << 30,
            cache_bytes: None,
            fs: if constants.delayed_allocation != 0 {
                Fs::Ext4
            } else {
                Fs::Ext3
            },
            constants,
            barriers: None,
            aged_run_blocks: 0,
            first_placement: false,
            ablations: Ablations::default(),
            marks: true,
            commit_marks: false,
            series: true,
            seed: 1,
        }
    }
    /// Size of the page cache in pages.
    pub fn cache_pages(&self) -> u64 {
        let fixed = self.constants.fixed_use_mib << 20;
        let left = self.memory_bytes.saturating_sub(fixed);
        // A machine with little memory has a cache, too.
        let bytes = self.cache_bytes.unwrap_or(left.max(self.memory_bytes / 4));
        (bytes / 4096).max(64)
    }
    /// Whether the drive's cache is flushed.
    pub fn flushes(&self) -> bool {
        self.barriers.unwrap_or(self.constants.barriers != 0)
    }
}
