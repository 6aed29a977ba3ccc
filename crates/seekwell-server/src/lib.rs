//! Device models in real time: a modelled disk for real programs.
//!
//! The model of the simulator computes when a command completes. The data move at once, into memory
//! or a sparse file, and the completion is delayed until the model's time. Programs see a single
//! file, `disk`, in a FUSE mount. They use it with direct I/O, or through a loop device, which
//! gives the running kernel a slow disk with known behaviour.
//!
//! - [`Engine`]: arrivals and model events in strict order of time, on any clock. Pure.
//! - [`Disk`]: the file system, its threads, their priorities, start and end.
//! - [`Account`]: lateness of completions, and reliability of the run.
//!
//! - [`Served`]: a device alone, served in order of arrival up to its depth, or behind a block
//!   layer with a scheduler. The scheduler's decisions are those of the simulator for the same
//!   arrivals.
//!
//! A FUSE request names its thread, and the scheduler gets that thread's I/O priority. Behind a
//! loop device the thread is a kernel worker, whichever program uses the loop device; the account
//! counts such commands ([`Owners`]).
//!
//! Not covered: transports other than FUSE (NBD requests name no thread at all), and facts that
//! FUSE does not report about a request: its own I/O priority if it differs from the thread's, its
//! cgroup, and whether a flusher sent it (every write counts as sync).
//!
//! The precision depends on the device. A hard disk's latencies of milliseconds are right to about
//! a percent; the 100 us of a SATA flash disk are 10 to 25 % too long at depth 1. Devices whose
//! model does more than [`RATE_MAX`] commands per second are refused, because no file system in
//! user space can deliver them; use the simulator for those.

mod account;
mod asker;
mod direct;
mod disk;
mod end;
mod engine;
mod error;
mod fs;
mod inbox;
mod model;
mod mount;
mod served;
mod stale;
mod store;
mod syncer;
mod sys;
mod wait;

pub use account::{Account, Verdict};
pub use asker::Owners;
pub use direct::Direct;
pub use disk::{Disk, DiskOptions, FILE_NAME, Floor, RATE_MAX};
pub use end::{End, Ends};
pub use engine::Engine;
pub use error::ServeError;
pub use served::{AnyDevice, Served};
pub use wait::Margin;
