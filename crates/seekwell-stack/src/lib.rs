//! The path from system call to block layer: a model of everything between a program and its disk's
//! queue.
//!
//! Programs make calls ([`Call`]). The model turns these into bios with the kernel's order, sizes,
//! flags and io contexts, over any [`seekwell_core::BioSink`]. It handles lengths, never contents,
//! and knows no scheduler. Kernels from 2.6.18 to 6.x differ only in a table of constants.
//!
//! The modules are layers. Each uses only the layers below it, through their public items. From the
//! bottom: `executor` has actors, timers and cores. `memory` has the page cache. `fs` has the
//! layout of the disk. `machine` has all state, and the bios. `journal` has handles and commits.
//! `writeback` has the flusher, the throttle and allocation. `calls` has the system calls.
//!
//! Left out:
//! - memory reclaim that writes, swap, cgroup writeback, balance between several devices;
//! - locks other than an inode's, and CPU time of the kernel's own threads;
//! - closing a task's descriptors when it exits (its programs close them);
//! - dirtiness of a large folio as a whole (a store into a mapping dirties 4 KiB);
//! - splits of extents that are converted in part, htree splits, fast commits.

mod calls;
#[cfg(test)]
mod check;
mod config;
mod constants;
mod executor;
mod fs;
mod journal;
mod machine;
mod memory;
mod stats;
mod writeback;

pub use calls::{AtOnce, Kernel, Parts};
pub use config::{Ablations, Config, Fs};
pub use constants::{CONSTANTS, Constant, Constants, Origin};
pub use machine::{
    AioId, Call, FIRST_USER_TASK, Fd, MapId, Outcome, Ret, TaskConfig, kernel_thread_name,
};
pub use stats::{Count, Mark, Sample, Stats};

#[cfg(test)]
mod tests;
