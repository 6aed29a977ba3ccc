//! Counters of the kernel model, and marks on its time axis.

use seekwell_core::{Bio, Flags, Op};

/// Number and bytes of the bios of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Bios.
    pub bios: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, b: &Bio) {
        self.bios += 1;
        self.bytes += b.sectors.bytes();
    }
}

/// Counters of the kernel model since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Completed system calls.
    pub calls: u64,
    /// Reads.
    pub reads: Count,
    /// Writes with the SYNC flag.
    pub sync_writes: Count,
    /// Writes without the SYNC flag.
    pub async_writes: Count,
    /// Flushes: empty ones, and writes with the PREFLUSH or FUA flag.
    pub flushes: u64,
    /// Discards.
    pub discards: Count,
    /// Bios that failed.
    pub bio_errors: u64,
    /// Blocks written to the journal, including commit records.
    pub journal: Count,
    /// Journal commits.
    pub commits: u64,
    /// Journal writes that failed.
    pub journal_errors: u64,
    /// Number of times that a task had to write metadata to its home location because the journal
    /// was full.
    pub checkpoints: u64,
    /// Flushes without data.
    pub empty_flushes: u64,
    /// Calls of fsync and fdatasync, and O_SYNC writes.
    pub fsyncs: u64,
    /// Metadata blocks read because they were not in memory.
    pub metadata_reads: u64,
    /// Pages read because a write covered only a part of them.
    pub partial_reads: u64,
    /// Writes that waited for a page under writeback.
    pub stable_waits: u64,
    /// Page faults that read from the disk.
    pub major_faults: u64,
    /// Reads of the block device through its cache.
    pub device_reads: u64,
    /// Clean pages evicted.
    pub evicted: u64,
    /// Dirty pages dropped because no blocks were free.
    pub lost_pages: u64,
    /// Block allocations.
    pub allocations: u64,
    /// Files and directories made.
    pub created: u64,
    /// Files and directories removed.
    pub removed: u64,
    /// Time for which tasks were throttled for dirty pages, ns, summed over tasks.
    pub throttled_ns: u64,
    /// How often a submitter slept because no request was free.
    pub request_waits: u64,
}

impl Stats {
    pub(crate) fn bio(&mut self, b: &Bio) {
        match b.op {
            Op::Read => self.reads.add(b),
            Op::Discard => self.discards.add(b),
            Op::Flush => {}
            _ if b.flags.contains(Flags::SYNC) => self.sync_writes.add(b),
            _ => self.async_writes.add(b),
        }
        let flushing = Flags::PREFLUSH.union(Flags::FUA).union(Flags::BARRIER);
        self.flushes += u64::from(b.op == Op::Flush || b.flags.intersects(flushing));
    }
}

/// An event that is marked on the time axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A journal commit begins.
    CommitBegin,
    /// A commit is on the medium. The number is that of its metadata blocks.
    CommitEnd(u32),
    /// A flush without data is sent.
    Flush,
    /// A task is throttled, while no other task is.
    ThrottleBegin,
    /// The last throttled task continues.
    ThrottleEnd,
}
