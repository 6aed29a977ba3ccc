//! Device models on the wall clock: a modelled disk under real programs.
//!
//! The same model that the simulator drives on its virtual clock computes when a command is done;
//! here the data move at once, into memory or a sparse file, and the completion is withheld until
//! the model's time has come. Real programs meet it as one file, `disk`, in a FUSE mount: with
//! direct I/O, or through a loop device that gives the running kernel a slow disk of known law.
//!
//! - [`Engine`]: arrivals and model events in strict order of time, on whatever clock. Pure.
//! - [`Disk`]: the file system, its threads, their priorities, start and end.
//! - [`Account`]: how late completions were, and whether the run may be believed.
//!
//! - [`Served`]: a device alone, served in order of arrival up to its depth, or behind a block layer
//!   with a scheduler, whose decisions are then those of the simulator for the same arrivals.
//!
//! A request of FUSE names the thread that asks, and the scheduler is told that thread's I/O
//! priority. Behind a loop device the thread is a kernel worker, whoever uses the loop device: the
//! account counts such commands ([`Owners`]).
//!
//! Left out: other ways in than FUSE (NBD's requests name no thread at all), and what FUSE does not
//! tell of a request: its own I/O priority where it differs from the thread's, its cgroup, and
//! whether a flusher sent it (every write counts as sync).
//!
//! How precise it is depends on the device: a hard disk's milliseconds come out to a percent or
//! so, a SATA flash disk's 100 us come out 10 to 25 % late at depth 1, and devices whose model
//! does more than [`RATE_MAX`] commands a second are refused, because no file system in user space
//! can deliver them; those belong to the simulator.

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
