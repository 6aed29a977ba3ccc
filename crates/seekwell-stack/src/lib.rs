//! From system call to block layer: a model of everything between a program and its disk's queue.
//!
//! Programs call ([`Call`]); the model turns that into bios, in the kernel's order, sizes, flags
//! and io contexts, over any [`seekwell_core::BioSink`]. It moves lengths, never bytes, and knows
//! no scheduler.

#![allow(dead_code)]

mod call;
mod config;
mod io;
mod kernel;
mod raw;
mod rt;
mod stats;
mod world;

pub use call::{AioId, Call, Fd, MapId, Outcome, Ret, TaskConfig};
pub use config::{Config, CpuCosts};
pub use kernel::{FIRST_USER_TASK, Kernel};
pub use stats::{Count, Mark, Stats};

#[cfg(test)]
mod tests;
