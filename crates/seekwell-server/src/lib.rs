//! Serves a modelled disk to real programs in real time.
//!
//! The server uses the same device models as the simulator. The model computes the completion time
//! of each command. The data are moved immediately, into memory or a sparse file, and the reply is
//! delayed until the completion time. Programs see a FUSE mount with a single file, `disk`. They
//! use this file with direct I/O, or attach a loop device to it. The loop device gives the running
//! kernel a slow disk with known behaviour.
//!
//! - [`Engine`]: processes arrivals and model events strictly in order of time, on any clock. It
//!   does no I/O.
//! - [`Disk`]: the FUSE file system and its threads, with their priorities, start and end.
//! - [`Account`]: how late completions were delivered, and whether the run is reliable.
//! - [`Served`]: a device without a scheduler, or a device behind a block layer with a scheduler.
//!   Without a scheduler, the device serves commands in order of arrival up to its queue depth. For
//!   the same arrivals, a scheduler makes the same decisions as in the simulator.
//!
//! Each FUSE request contains the number of the thread that issued it, and the scheduler gets the
//! I/O priority of that thread. Behind a loop device that thread is always a kernel worker,
//! whichever program uses the loop device. The account counts such commands ([`Owners`]).
//!
//! The server has these limits:
//!
//! - FUSE is the only transport. NBD would not help, because its requests do not identify a thread.
//! - FUSE does not transmit an I/O priority of a single request that differs from the priority of
//!   its thread.
//! - FUSE does not transmit the cgroup of a request.
//! - FUSE does not report whether a request comes from writeback. Therefore all writes are treated
//!   as sync.
//!
//! The precision depends on the device. The latencies of a hard disk, which are several
//! milliseconds, have an error of about one percent. The latencies of a SATA flash disk, about 100
//! us, are 10 to 25 % too long at queue depth 1. A device model that completes more than
//! [`RATE_MAX`] commands per second is refused, because no file system in user space can deliver
//! such a rate. Use the simulator for these devices.

mod account;
mod asker;
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
pub use disk::{Disk, DiskOptions, FILE_NAME, Floor, RATE_MAX};
pub use end::{End, Ends};
pub use engine::Engine;
pub use error::ServeError;
pub use served::{AnyDevice, Served};
pub use wait::Margin;
