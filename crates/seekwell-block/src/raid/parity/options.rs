//! What can be set about a parity array, what it tells those who watch, and what it counts.

use super::plan::How;
use seekwell_core::{Nanos, TaskId};

/// How the array works.
#[derive(Clone, Copy, Debug)]
pub struct ParityOptions {
    /// stripe_cache_size: heads of 4 KiB a member.
    pub stripe_cache: u32,
    /// preread_bypass_threshold: rows that need no reads go before those that do, at most so often
    /// in a row.
    pub preread_bypass: u32,
    /// Read-modify-write if reconstruction costs as many operations.
    pub modify_on_tie: bool,
    /// The thread's time for each row handled.
    pub handling: Nanos,
    /// Time to compute one page of parity.
    pub compute: Nanos,
    /// The thread.
    pub thread: TaskId,
}

impl Default for ParityOptions {
    fn default() -> Self {
        ParityOptions {
            stripe_cache: 256,
            preread_bypass: 1,
            modify_on_tie: true,
            handling: Nanos::from_us(1),
            compute: Nanos(1_500),
            thread: TaskId(u32::MAX),
        }
    }
}

/// What the thread did, for those who watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A page came from a member.
    Read {
        /// In 4 KiB of a member.
        row: u64,
        /// Whose.
        member: usize,
    },
    /// Lost pages were computed from the others.
    Recover {
        /// In 4 KiB of a member.
        row: u64,
    },
    /// New data of these sectors (a bit each) entered the page.
    Drain {
        /// In 4 KiB of a member.
        row: u64,
        /// Whose.
        member: usize,
        /// Which.
        sectors: u8,
    },
    /// Parity was computed; then everything drained and all parity went out.
    Compute {
        /// In 4 KiB of a member.
        row: u64,
        /// How.
        how: How,
    },
    /// A page went out.
    Write {
        /// In 4 KiB of a member.
        row: u64,
        /// To whom.
        member: usize,
    },
}

/// What the array counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParityStats {
    /// Pages read before a write.
    pub prereads: u64,
    /// Pages written, parity included.
    pub pages_written: u64,
    /// Rows written by read-modify-write.
    pub modified: u64,
    /// Rows written by reconstruction with reads or from the cache.
    pub reconstructed: u64,
    /// Rows overwritten wholly.
    pub full_rows: u64,
    /// Pieces of bios that waited for a head.
    pub waits: u64,
}
