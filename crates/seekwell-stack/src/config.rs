//! What is modelled: kernel, memory, cores, file system, and switches that take a mechanism out.

use crate::constants::Constants;
use seekwell_core::Era;

/// The file system on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fs {
    /// Extents, delayed allocation, jbd2.
    Ext4,
    /// Blocks chosen at write(), jbd: a commit writes all data of its transaction.
    Ext3,
}

/// Mechanisms that can be taken out one by one, to see what they were worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ablations {
    /// No plugs: every bio goes to the queue alone.
    pub no_plugging: bool,
    /// No read-ahead.
    pub no_readahead: bool,
    /// Nobody waits for a page under writeback.
    pub no_stable_pages: bool,
    /// Commits do not write or wait for data (data=writeback).
    pub no_ordered_data: bool,
    /// Logged blocks are never blocked.
    pub no_shadows: bool,
    /// Metadata are always in memory: no reads of directories, inodes, bitmaps.
    pub metadata_cached: bool,
    /// Dirtiers are never slowed, whatever is dirty.
    pub no_throttling: bool,
    /// CPU time costs nothing: calls, copies and schedulers are free, computing needs no core.
    pub no_cpu_limit: bool,
    /// Sync writes carry no NOIDLE.
    pub no_noidle: bool,
    /// Schedulers cost no CPU time, and nobody waits for their locks. (Both count on flash only.)
    pub no_scheduler_cpu: bool,
}

impl Ablations {
    /// Does somebody pay for what schedulers do?
    pub fn schedulers_cost(&self) -> bool {
        !self.no_scheduler_cpu && !self.no_cpu_limit
    }
}

/// A modelled machine above its disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Kernel.
    pub era: Era,
    /// Its constants; changed ones are the caller's business.
    pub constants: Constants,
    /// Cores.
    pub cores: u16,
    /// Speed of a core, thousandths of the one that the constants are of: CPU costs are divided by
    /// it.
    pub cpu_permille: u32,
    /// vm.dirty_bytes, instead of the constant's share of memory.
    pub dirty_bytes: Option<u64>,
    /// vm.dirty_background_bytes, the same.
    pub dirty_background_bytes: Option<u64>,
    /// Memory of the machine, bytes.
    pub memory_bytes: u64,
    /// Memory for the page cache, bytes, if not derived from `memory_bytes`.
    pub cache_bytes: Option<u64>,
    /// File system.
    pub fs: Fs,
    /// Barriers or flushes, if not the era's default.
    pub barriers: Option<bool>,
    /// Blocks of files lie scattered: mean length of a run, blocks (0: a fresh file system).
    pub aged_run_blocks: u32,
    /// On a fresh file system directories of the root go to the first group with room, not where
    /// mke2fs draws it.
    pub first_placement: bool,
    /// Mechanisms taken out.
    pub ablations: Ablations,
    /// Keep [`crate::Mark`]s of throttling.
    pub marks: bool,
    /// Keep those of commits and flushes as well: some for each fsync, so that memory grows with the
    /// length of the run.
    pub commit_marks: bool,
    /// Keep a sample of the state each second.
    pub series: bool,
    /// Seed of what is random (places of directories, scatter of an aged file system).
    pub seed: u64,
}

impl Config {
    /// A machine of a kernel's time: four cores, 4 GiB, the usual file system.
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
    /// Page cache, pages.
    pub fn cache_pages(&self) -> u64 {
        let fixed = self.constants.fixed_use_mib << 20;
        let left = self.memory_bytes.saturating_sub(fixed);
        // A machine with little memory still has a cache.
        let bytes = self.cache_bytes.unwrap_or(left.max(self.memory_bytes / 4));
        (bytes / 4096).max(64)
    }
    /// Are caches flushed?
    pub fn flushes(&self) -> bool {
        self.barriers.unwrap_or(self.constants.barriers != 0)
    }
}
