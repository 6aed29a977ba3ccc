//! Error messages for users. They say what is wrong and what to do.

use std::path::PathBuf;
use thiserror::Error;

/// Reasons why a modelled disk cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// FUSE is not available.
    #[error("/dev/fuse: {what}; load the module (modprobe fuse) or run where the kernel has FUSE")]
    NoFuse {
        /// The error message of the system.
        what: String,
    },
    /// The mount point is unusable.
    #[error("{}: {what}; {remedy}", path.display())]
    MountPoint {
        /// Path of the mount point.
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
        /// Path of the mount point.
        path: PathBuf,
        /// The error message of the system.
        what: String,
    },
    /// The backing file is unusable.
    #[error("{}: {what}; {remedy}", path.display())]
    Backing {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The mount of a server that has ended could not be removed.
    #[error("{}: {what}; unmount it (sudo umount --lazy {}), or choose another directory", path.display(), path.display())]
    Dead {
        /// Path of the mount point.
        path: PathBuf,
        /// Which server the mount belonged to.
        what: &'static str,
    },
    /// A file is not writable.
    #[error("{}: cannot be written: {source}", path.display())]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Two options name the same file.
    #[error("{}: is the same file as {}: give two different files", path.display(), other.display())]
    Same {
        /// Path of the first file.
        path: PathBuf,
        /// Path of the second file.
        other: PathBuf,
    },
    /// The device is too fast to be served in real time.
    #[error(
        "{device} completes about {rate} commands per second, but a block device in user space can \
         deliver only {max} on time: simulate the device instead, or serve it with --force"
    )]
    TooFast {
        /// Name of the model.
        device: String,
        /// Rate of the model, commands per second.
        rate: u64,
        /// Maximum rate that can be served, commands per second.
        max: u64,
    },
    /// The device does not have the requested size.
    #[error("size {size} bytes: {what}")]
    Size {
        /// The requested size, bytes.
        size: u64,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// The log could not be written.
    #[error("{0}")]
    Log(#[from] seekwell_trace::TraceError),
    /// A system call failed unexpectedly.
    #[error("{what}: {source}")]
    System {
        /// What the server could not do.
        what: &'static str,
        /// The error of the system.
        source: std::io::Error,
    },
}
