//! The real world: workload scripts on threads, real files, and the host's own kernel.
//!
//! Each task of a script is a thread that drives its own future; every call is a system call (an
//! io_uring for depth). Files are written in one directory of our own, made fresh inside the one
//! the user named and removed on every path: end, error, panic, signal. Which scheduler was in
//! force is found by reading and put into the record; a run changes nothing of the host. What
//! changes a device's settings is in [`switch`] alone, and puts them back.

pub mod abilities;
pub mod block;
pub mod buffer;
pub mod files;
pub mod host;
pub mod inforce;
pub mod keep;
pub mod left;
pub mod machine;
pub mod mapping;
pub mod place;
pub mod probe;
pub mod program;
pub mod ring;
pub mod run;
pub mod shared;
pub mod sqlite;
pub mod stop;
pub mod switch;
pub mod sync;
pub mod sys;
pub mod table;
pub mod tasks;
pub mod watch;

pub use inforce::{InForce, in_force};
pub use machine::HostMachine;
pub use place::{Leftover, PlaceError, leftovers, remove_leftovers};
pub use run::{HostError, Options, Pulse, Ran, check, run_real, run_script};

#[cfg(test)]
mod tests;

use seekwell_core::Errno;

/// The kernel's number of an error; EIO for one that has none.
pub(crate) fn errno(e: std::io::Error) -> Errno {
    e.raw_os_error().map_or(Errno::EIO, |n| Errno(n.into()))
}
