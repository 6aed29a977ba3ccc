//! What can go wrong, told to people: what, and what to do.

use std::path::PathBuf;
use thiserror::Error;

/// Why a modelled disk cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Nothing to mount with.
    #[error("/dev/fuse: {what}; load the module (modprobe fuse) or run where the kernel has FUSE")]
    NoFuse {
        /// The system's words.
        what: String,
    },
    /// The mount point is no good.
    #[error("{}: {what}; {remedy}", path.display())]
    MountPoint {
        /// Of the mount.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The kernel did not mount it.
    #[error(
        "{}: cannot mount a FUSE file system: {what}; run as root", path.display()
    )]
    Mount {
        /// Of the mount.
        path: PathBuf,
        /// The system's words.
        what: String,
    },
    /// The file for the data is no good.
    #[error("{}: {what}; {remedy}", path.display())]
    Backing {
        /// Of the file.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A dead mount that could not be taken down.
    #[error("{}: {what}; unmount it (sudo umount --lazy {}), or name another directory", path.display(), path.display())]
    Dead {
        /// Where.
        path: PathBuf,
        /// Whose.
        what: &'static str,
    },
    /// A file that cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Unwritable {
        /// Of the file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// Two files that would write over each other.
    #[error("{}: the same file as {}, which it would wreck: name another", path.display(), other.display())]
    Same {
        /// Of the one.
        path: PathBuf,
        /// Of the other.
        other: PathBuf,
    },
    /// The device cannot be delivered in real time.
    #[error(
        "{device} does about {rate} commands a second, more than the {max} a block device in user \
         space can deliver in time: simulate it instead, or insist with --force"
    )]
    TooFast {
        /// Name of the model.
        device: String,
        /// Its rate.
        rate: u64,
        /// The most.
        max: u64,
    },
    /// A size that the device does not have.
    #[error("size {size} bytes: {what}")]
    Size {
        /// As asked for.
        size: u64,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// The log cannot be written.
    #[error("{0}")]
    Log(#[from] seekwell_trace::TraceError),
    /// A system call failed that should not.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's words.
        source: std::io::Error,
    },
}
