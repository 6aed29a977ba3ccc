//! A model of the kernel above the block layer, from the system call to the bio: page cache, file
//! system, journal and writeback.
//!
//! Programs make calls ([`Call`]). The model turns these calls into bios, and submits the bios to
//! any [`seekwell_core::BioSink`]. Order, sizes, flags and io contexts of the bios are those of the
//! real kernel. The model stores lengths of data but no contents. It does not depend on any
//! scheduler. Kernels from 2.6.18 to 6.x differ only in a table of constants.
//!
//! The modules are layers. Each layer uses only the public items of the layers below it. From the
//! bottom:
//! - `executor`: actors, timers and cores;
//! - `memory`: the page cache;
//! - `fs`: the layout of the disk;
//! - `machine`: all state, and the bios;
//! - `journal`: handles and commits;
//! - `writeback`: the flusher, the throttle and block allocation;
//! - `calls`: the system calls.
//!
//! Not modelled:
//! - memory reclaim that writes, swap, cgroup writeback, and the division of dirty memory between
//!   several devices;
//! - locks other than the lock of an inode, and CPU time of the kernel's own threads;
//! - the closing of a task's descriptors at its exit (the programs close them);
//! - the dirty flag of a whole large folio (a store into a mapping dirties only 4 KiB);
//! - the splitting of a partly converted extent, htree splits, and fast commits.

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
pub use stats::{Count, Mark, Stats};

#[cfg(test)]
mod tests;
