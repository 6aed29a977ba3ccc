//! Options of a parity array, its steps for observers, and its counters.

use super::plan::How;
use seekwell_core::{Nanos, TaskId};

/// Options of the array.
#[derive(Clone, Copy, Debug)]
pub struct ParityOptions {
    /// stripe_cache_size: number of heads, each with 4 KiB per member.
    pub stripe_cache: u32,
    /// preread_bypass_threshold: how many times one after another a head without reads may pass one that
    /// needs reads.
    pub preread_bypass: u32,
    /// Use read-modify-write if reconstruction costs the same number of operations.
    pub modify_on_tie: bool,
    /// The thread's time per row.
    pub handling: Nanos,
    /// Time to compute one page of parity.
    pub compute: Nanos,
    /// The task of the thread.
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
        /// Row number, in 4 KiB units of a member.
        row: u64,
        /// The member.
        member: usize,
    },
    /// Lost pages were computed from the others.
    Recover {
        /// Row number, in 4 KiB units of a member.
        row: u64,
    },
    /// New data of these sectors (one bit each) was copied into the page.
    Drain {
        /// Row number, in 4 KiB units of a member.
        row: u64,
        /// The member.
        member: usize,
        /// The sectors.
        sectors: u8,
    },
    /// Parity was computed; then all new data and all parity were written.
    Compute {
        /// Row number, in 4 KiB units of a member.
        row: u64,
        /// The method.
        how: How,
    },
    /// A page was written.
    Write {
        /// Row number, in 4 KiB units of a member.
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
    /// Pages written, parity included.
    pub pages_written: u64,
    /// Rows written by read-modify-write.
    pub modified: u64,
    /// Rows written by reconstruction with reads or from the cache.
    pub reconstructed: u64,
    /// Rows overwritten completely.
    pub full_rows: u64,
    /// Pieces of bios that waited for a head.
    pub waits: u64,
}
