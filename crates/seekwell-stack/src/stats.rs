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
