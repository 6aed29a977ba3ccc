//! Runs workloads on the host, with real files and the host's own kernel.
//!
//! Each task of a script is a thread that drives its own future. Every call is a system call.
//! Asynchronous I/O uses io_uring. A run writes its files in a new directory inside the directory
//! that the user named. The new directory is removed at the end, after an error or panic, and on a
//! signal.
//!
//! A run only reads which scheduler is active, for its record. It changes no settings of the host.
//! Only [`switch`] changes the settings of a device, and it restores them.

pub mod abilities;
pub mod block;
pub mod buffer;
pub mod files;
pub mod host;
pub mod inforce;
pub mod keep;
pub mod left;
pub mod machine;
pub mod machine_facts;
pub mod mapping;
pub mod observe;
pub mod place;
pub mod probe;
pub mod program;
pub mod pulse;
pub mod ring;
pub mod run;
pub mod shared;
pub mod sqlite;
pub mod stop;
pub mod switch;
pub mod sync;
pub mod sys;
pub mod table;
pub mod watch;
pub mod workload;

pub use inforce::{InForce, in_force};
pub use machine::HostMachine;
pub use machine_facts::{MachineFacts, PerScheduler};
pub use place::{Leftover, PlaceError, leftovers, remove_leftovers};
pub use pulse::Pulse;
pub use run::{HostError, Options, Ran, run_script};
pub use workload::{check, run_real};

#[cfg(test)]
mod tests;

use seekwell_core::Errno;

/// Returns the kernel's error number, or EIO for an error without a number.
pub(crate) fn errno(e: std::io::Error) -> Errno {
    e.raw_os_error().map_or(Errno::EIO, |n| Errno(n.into()))
}
