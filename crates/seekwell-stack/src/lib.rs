//! From system call to block layer: a model of everything between a program and its disk's queue.
//!
//! Programs call ([`Call`]); the model turns that into bios, in the kernel's order, sizes, flags
//! and io contexts, over any [`seekwell_core::BioSink`]. It moves lengths, never bytes, and knows
//! no scheduler. Kernels from 2.6.18 to 6.x differ in one table of constants.
//!
//! Rooms, from the ground up; each has its door, and knows those below it only. `executor`: actors,
//! timers, cores. `memory`: the page cache. `fs`: what lies where on the disk. `machine`: all that
//! is remembered, and bios. `journal`: handles and commits. `writeback`: the flusher, the throttle,
//! allocation. `calls`: system calls.
//!
//! Left out: memory reclaim that writes, swap, cgroup writeback, balance between several devices,
//! locks other than an inode's, CPU time of the kernel's own threads; that a task's descriptors close
//! when it exits (its programs close them); that a large folio is dirty as a whole (a store into a
//! mapping dirties 4 KiB); extents that split where they are converted in part; htree splits, fast
//! commits.

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
