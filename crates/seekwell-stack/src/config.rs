//! Configuration of the kernel model: kernel version, memory, cores, file system, and switches that
//! disable a mechanism.

use crate::constants::Constants;
use seekwell_core::Era;

/// The file system on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fs {
    /// ext4: extents, delayed allocation, and the jbd2 journal.
    Ext4,
    /// ext3: blocks are allocated in write(). A commit of its journal (jbd) writes all data of the
    /// transaction.
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
    /// A block that is being logged can be changed at any time.
    pub no_shadows: bool,
    /// Metadata are always in memory: directories, inodes and bitmaps are never read.
    pub metadata_cached: bool,
    /// Dirtiers are never throttled.
    pub no_throttling: bool,
    /// System calls, copies and schedulers cost no CPU time, and computing needs no core.
    pub no_cpu_limit: bool,
    /// Sync writes do not have the NOIDLE flag.
    pub no_noidle: bool,
    /// Schedulers cost no CPU time, and no task waits for their locks. This matters on flash only.
    pub no_scheduler_cpu: bool,
    /// The pages of a file are contiguous in memory, so that a bio of written data is as long as
    /// the file's run of blocks. On a machine whose memory is not fragmented, most are.
    pub contiguous_memory: bool,
}

impl Ablations {
    /// Returns whether tasks are charged for the schedulers' CPU time.
    pub fn schedulers_cost(&self) -> bool {
        !self.no_scheduler_cpu && !self.no_cpu_limit
    }
}

/// Configuration of a modelled machine, without its disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Kernel version.
    pub era: Era,
    /// The kernel's constants. A caller that changes a constant is responsible for the result.
    pub constants: Constants,
    /// Number of cores.
    pub cores: u16,
    /// Speed of a core, in thousandths of the reference core that the constants refer to. CPU costs
    /// are multiplied by 1000 and divided by this speed.
    pub cpu_permille: u32,
    /// vm.dirty_bytes. It replaces the fraction of memory in the constants (`dirty_limit_percent`).
    pub dirty_bytes: Option<u64>,
    /// vm.dirty_background_bytes. It replaces `dirty_background_percent`.
    pub dirty_background_bytes: Option<u64>,
    /// Memory of the machine, bytes.
    pub memory_bytes: u64,
    /// Memory for the page cache, bytes. `None`: derived from `memory_bytes`.
    pub cache_bytes: Option<u64>,
    /// File system.
    pub fs: Fs,
    /// Whether the file system sends barriers or flushes. `None`: the kernel's default.
    pub barriers: Option<bool>,
    /// Fragmentation of files: mean length of a contiguous run, blocks. 0: a fresh file system.
    pub aged_run_blocks: u32,
    /// On a fresh file system, directories in the root go to the first group with free space
    /// instead of a random group.
    pub first_placement: bool,
    /// Disabled mechanisms.
    pub ablations: Ablations,
    /// Whether to record the [`crate::Mark`]s of throttling.
    pub marks: bool,
    /// Whether to record also the marks of commits and flushes. One fsync makes several marks, so
    /// memory grows with the length of the run.
    pub commit_marks: bool,
    /// Seed of the random choices (placement of directories, fragmentation of an aged file system).
    pub seed: u64,
}

impl Config {
    /// Returns a machine that is typical of the kernel's time: four cores, 4 GiB, and the kernel's
    /// usual file system.
    pub fn new(era: Era) -> Self {
        let constants = Constants::for_era(era);
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
            seed: 1,
        }
    }
    /// Returns the size of the page cache in pages.
    pub fn cache_pages(&self) -> u64 {
        let fixed = self.constants.fixed_use_mib << 20;
        let left = self.memory_bytes.saturating_sub(fixed);
        // A machine with little memory also has a page cache.
        let bytes = self.cache_bytes.unwrap_or(left.max(self.memory_bytes / 4));
        (bytes / 4096).max(64)
    }
    /// Returns whether the file system flushes the drive's cache.
    pub fn flushes(&self) -> bool {
        self.barriers.unwrap_or(self.constants.barriers != 0)
    }
}
