//! Counters, and marks on the time axis.

use seekwell_core::{Bio, Flags, Op};

/// Bytes and numbers of bios of one kind.
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

/// What the kernel model counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// System calls ended.
    pub calls: u64,
    /// Reads.
    pub reads: Count,
    /// Writes marked sync.
    pub sync_writes: Count,
    /// Other writes.
    pub async_writes: Count,
    /// Flushes: empty ones, and writes with a flush before or FUA.
    pub flushes: u64,
    /// Discards.
    pub discards: Count,
    /// Bios that failed.
    pub bio_errors: u64,
    /// Journal blocks, commit records among them.
    pub journal: Count,
    /// Journal commits.
    pub commits: u64,
    /// Journal writes that failed.
    pub journal_errors: u64,
    /// Times somebody had to write home locations because the journal was full.
    pub checkpoints: u64,
    /// Flushes without data.
    pub empty_flushes: u64,
    /// Calls of fsync and fdatasync, O_SYNC writes too.
    pub fsyncs: u64,
    /// Metadata blocks read because they were not in memory.
    pub metadata_reads: u64,
    /// Pages read because a write covered only a part.
    pub partial_reads: u64,
    /// Writes that waited for a page under writeback.
    pub stable_waits: u64,
    /// Faults that read.
    pub major_faults: u64,
    /// Reads of the device through its cache.
    pub device_reads: u64,
    /// Clean pages evicted.
    pub evicted: u64,
    /// Dirty pages dropped for want of blocks.
    pub lost_pages: u64,
    /// Allocations of blocks.
    pub allocations: u64,
    /// Files and directories made and removed.
    pub created: u64,
    /// Files and directories removed.
    pub removed: u64,
    /// Time that dirtiers were held, ns, summed over tasks.
    pub throttled_ns: u64,
    /// Times a submitter slept for want of a request.
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

/// The state at about each second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: seekwell_core::Instant,
    /// Pages in memory.
    pub cached_pages: u64,
    /// Dirty ones, not under writeback.
    pub dirty_pages: u64,
    /// Under writeback.
    pub writeback_pages: u64,
    /// Bios with the block layer.
    pub in_flight: u32,
    /// Tasks held by the throttle.
    pub throttled: u32,
    /// Cores at work.
    pub busy_cores: u32,
}

/// Something worth a mark on the time axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A journal commit begins.
    CommitBegin,
    /// It is on the medium; metadata blocks it wrote.
    CommitEnd(u32),
    /// An empty flush is sent.
    Flush,
    /// The first dirtier is made to wait.
    ThrottleBegin,
    /// Nobody waits any more.
    ThrottleEnd,
}
