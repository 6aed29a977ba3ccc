//! Error messages for users: what is wrong and what to do.

use std::path::PathBuf;
use thiserror::Error;

/// Why a modelled disk cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// FUSE is not available.
    #[error("/dev/fuse: {what}; load the module (modprobe fuse) or run where the kernel has FUSE")]
    NoFuse {
        /// The system's error.
        what: String,
    },
    /// The mount point is unusable.
    #[error("{}: {what}; {remedy}", path.display())]
    MountPoint {
        /// Path of the mount.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The kernel refused the mount.
    #[error(
        "{}: cannot mount a FUSE file system: {what}; run as root", path.display()
    )]
    Mount {
        /// Path of the mount.
        path: PathBuf,
        /// The system's error.
        what: String,
    },
    /// The file for the data is unusable.
    #[error("{}: {what}; {remedy}", path.display())]
    Backing {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A dead mount that could not be removed.
    #[error("{}: {what}; unmount it (sudo umount --lazy {}), or name another directory", path.display(), path.display())]
    Dead {
        /// Its path.
        path: PathBuf,
        /// Its owner.
        what: &'static str,
    },
    /// A file that cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Two options name the same file.
    #[error("{}: the same file as {}, which it would wreck: name another", path.display(), other.display())]
    Same {
        /// Path of one.
        path: PathBuf,
        /// Path of the other.
        other: PathBuf,
    },
    /// The device is too fast for real time.
    #[error(
        "{device} does about {rate} commands a second, more than the {max} a block device in user \
         space can deliver in time: simulate it instead, or insist with --force"
    )]
    TooFast {
        /// Name of the model.
        device: String,
        /// Its rate, commands per second.
        rate: u64,
        /// The maximum rate.
        max: u64,
    },
    /// A size that the device does not have.
    #[error("size {size} bytes: {what}")]
    Size {
        /// The requested size, bytes.
        size: u64,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// The log cannot be written.
    #[error("{0}")]
    Log(#[from] seekwell_trace::TraceError),
    /// An unexpected failure of a system call.
    #[error("{what}: {source}")]
    System {
        /// The operation.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}
