//! From system call to block layer: a model of everything between a program and its disk's queue.
//!
//! Programs call ([`Call`]); the model turns that into bios, in the kernel's order, sizes, flags
//! and io contexts, over any [`seekwell_core::BioSink`]. It moves lengths, never bytes, and knows
//! no scheduler. Kernels from 2.6.18 to 6.x differ in one table of constants.
//!
//! Left out: memory reclaim that writes, swap, cgroup writeback, balance between several devices,
//! locks other than an inode's, CPU time of the kernel's own threads; that a task's descriptors close
//! when it exits (its programs close them); that a large folio is dirty as a whole (a store into a
//! mapping dirties 4 KiB); extents that split where they are converted in part; htree splits, fast
//! commits.

mod aio;
mod cache;
mod call;
#[cfg(test)]
mod check;
mod config;
mod constants;
mod convert;
mod direct;
mod files;
mod flusher;
mod folio;
mod fs;
mod io;
mod journal;
mod kernel;
mod mapped;
mod names;
mod pages;
mod raw;
mod read;
mod readahead;
mod rt;
mod stats;
mod sync;
mod throttle;
mod truncate;
mod wait;
mod world;
mod write;
mod writeback;

pub use call::{AioId, Call, Fd, MapId, Outcome, Ret, TaskConfig};
pub use config::{Ablations, Config, Fs};
pub use constants::{CONSTANTS, Constant, Constants, Origin};
pub use kernel::{FIRST_USER_TASK, Kernel, kernel_thread_name};
pub use stats::{Count, Mark, Sample, Stats};

#[cfg(test)]
mod tests;
