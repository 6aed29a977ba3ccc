//! Options of a parity array, the steps that an observer gets, and counters.

use super::plan::How;
use seekwell_core::{Nanos, TaskId};

/// Options of a parity array.
#[derive(Clone, Copy, Debug)]
pub struct ParityOptions {
    /// stripe_cache_size: number of stripe heads. Each head has 4 KiB per member.
    pub stripe_cache: u32,
    /// preread_bypass_threshold: how many heads that need no reads may consecutively pass a head
    /// that needs reads.
    pub preread_bypass: u32,
    /// Whether to use read-modify-write if reconstruction needs the same number of operations.
    pub modify_on_tie: bool,
    /// Time that the thread needs per row.
    pub handling: Nanos,
    /// Time to compute one page of parity.
    pub compute: Nanos,
    /// Task number of the thread.
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

/// A step of the thread, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A page was read from a member.
    Read {
        /// Number of the row, in units of 4 KiB on a member.
        row: u64,
        /// The member.
        member: usize,
    },
    /// Lost pages were computed from the other pages of the row.
    Recover {
        /// Number of the row, in units of 4 KiB on a member.
        row: u64,
    },
    /// New data were copied into a page.
    Drain {
        /// Number of the row, in units of 4 KiB on a member.
        row: u64,
        /// The member.
        member: usize,
        /// The sectors with new data, one bit each.
        sectors: u8,
    },
    /// Parity was computed. Then all new data and all parity were written.
    Compute {
        /// Number of the row, in units of 4 KiB on a member.
        row: u64,
        /// The method by which the parity was computed.
        how: How,
    },
    /// A page was written.
    Write {
        /// Number of the row, in units of 4 KiB on a member.
        row: u64,
        /// The member.
        member: usize,
    },
}

/// Counters of the array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParityStats {
    /// Pages read before a write.
    pub prereads: u64,
    /// Pages written, including parity.
    pub pages_written: u64,
    /// Rows that were written by read-modify-write.
    pub modified: u64,
    /// Rows that were written by reconstruction, with pages that were read or in the cache.
    pub reconstructed: u64,
    /// Rows that were overwritten completely.
    pub full_rows: u64,
    /// Parts of bios that waited for a stripe head.
    pub waits: u64,
}
