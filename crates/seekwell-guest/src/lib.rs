//! Runs a real Linux kernel on virtual time over a modelled disk.
//!
//! The kernel is User Mode Linux (UML), an ordinary process. It takes its time from this crate
//! (`time-travel=ext`) and its disks over vhost-user. So the page cache, the file systems, the block
//! layer and the schedulers are those of the kernel, and only the disk is a model. Virtual time
//! passes only while the guest waits: code takes no time, apart from 256 ns per reading of the
//! clock.
//!
//! [`Kernel`] finds or builds a kernel, [`Run`] describes one run, and [`Run::execute`] performs it.
//! The program that uses this crate must call [`enter`] first in its `main`: the crate starts the
//! same program again to prepare the guest's root directory, and as the guest's first process.
//!
//! Sources: `include/uapi/linux/um_timetravel.h` (6.12), the vhost-user protocol as QEMU documents
//! it, and the virtio specification 1.2.

mod build;
mod clock;
mod controller;
mod cpu_state;
mod disk;
mod error;
mod image;
mod init;
mod job;
mod kernel;
mod launch;
mod memory;
mod queue;
mod run;
mod vhost;

pub use build::{Build, missing_tools};
pub use controller::Mark;
pub use disk::{GuestDisk, LogEntry, SEGMENTS_MAX};
pub use error::GuestError;
pub use image::FileSystem;
pub use init::mark;
pub use job::{MOUNT as DISK, PROGRAM};
pub use kernel::{Kernel, cache_dir};
pub use run::{Outcome, Run};

/// Runs the parts of this crate that are processes of their own, if the program was started for
/// one of them. Returns the exit status in that case.
///
/// Call it at the start of `main`, before any thread exists.
pub fn enter() -> Option<u8> {
    let mut args = std::env::args_os().skip(1);
    match args.next()?.to_str()? {
        launch::WORD => Some(launch::main(args.collect())),
        init::WORD => Some(init::main()),
        _ => None,
    }
}
