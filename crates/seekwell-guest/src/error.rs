//! Errors of a guest.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The reason that a guest did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A file or process operation of the host failed.
    #[error("{what}: {source}")]
    Host {
        /// The operation and its object.
        what: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// No kernel of this name is in the cache.
    #[error(
        "no guest kernel is called \"{name}\" (present: {present}). Build it with: seekwell guest build --name {name}"
    )]
    NoKernel {
        /// The name.
        name: String,
        /// The kernels that are present.
        present: String,
    },
    /// The kernel was built for a CPU with fewer registers.
    #[error(
        "the guest kernel \"{name}\" was built for a CPU with {has} bytes of registers, and this CPU has {needs}. Build it again on this machine: seekwell guest build --name {name} --source {source_tree}"
    )]
    OtherCpu {
        /// The name of the kernel.
        name: String,
        /// The source from which it was built.
        source_tree: String,
        /// Bytes of registers for which it was built.
        has: u32,
        /// Bytes of registers of this CPU.
        needs: u32,
    },
    /// The kernel did not connect to the clock.
    #[error(
        "the kernel \"{0}\" did not ask for the time within {1:?}: it was built without time travel (CONFIG_UML_TIME_TRAVEL_SUPPORT). Build it again with: seekwell guest build"
    )]
    NoTimeTravel(String, Duration),
    /// The guest's kernel panicked.
    #[error("the guest's kernel panicked at {at_ns} ns: {line}")]
    Panic {
        /// Virtual time.
        at_ns: u64,
        /// The line of the console.
        line: String,
    },
    /// The guest has no timer, and the disk has no work.
    #[error(
        "the guest sleeps for ever since {at_ns} ns: it has no timer and no request in the disk. The command may wait for input or for another program"
    )]
    Asleep {
        /// Virtual time.
        at_ns: u64,
    },
    /// The run took too much real time.
    #[error(
        "the guest still ran after {0:?} of real time and was killed. A program that waits in a loop without reading the clock stops virtual time; raise the limit with --wall-limit if the run is only long"
    )]
    WallLimit(Duration),
    /// The caller stopped the run.
    #[error("the run was stopped before its end")]
    Stopped,
    /// The run took too much virtual time.
    #[error(
        "the command still ran after {0:?} of virtual time and was killed; raise the limit with --time-limit"
    )]
    TimeLimit(Duration),
    /// The kernel ended before it had reported the end of the command.
    #[error("the guest ended early ({status}): {line}")]
    Ended {
        /// Status of the process.
        status: String,
        /// The last line of its console or error output.
        line: String,
    },
    /// The guest broke the protocol of the clock or of the disk.
    #[error("the guest broke the protocol of its {part}: {what}")]
    Protocol {
        /// Clock or disk.
        part: &'static str,
        /// The violation.
        what: String,
    },
    /// The first process of the guest could not do its work.
    #[error("the guest could not prepare the run: {0}")]
    Init(String),
    /// A program that is needed is not installed.
    #[error("the program \"{0}\" is not installed. Install it with: apt-get install {1}")]
    Missing(String, String),
    /// No source of the kernel was found.
    #[error(
        "no kernel source was found in {0}. Install one with: apt-get install linux-source-6.12, or name one with --source"
    )]
    NoSource(String),
    /// The build failed.
    #[error("the kernel could not be built: {what}; the complete output is in {}", log.display())]
    Build {
        /// The step, and the last lines.
        what: String,
        /// The file with the output.
        log: PathBuf,
    },
    /// An argument is wrong.
    #[error("{0}")]
    Usage(String),
}

impl GuestError {
    /// Returns a function that adds the operation to an error of the host.
    pub(crate) fn host<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |e| GuestError::Host {
            what,
            source: e.into(),
        }
    }
    /// Returns a violation of the protocol of the disk.
    pub(crate) fn disk(what: impl Into<String>) -> Self {
        GuestError::Protocol {
            part: "disk",
            what: what.into(),
        }
    }
    /// Returns a violation of the protocol of the clock.
    pub(crate) fn clock(what: impl Into<String>) -> Self {
        GuestError::Protocol {
            part: "clock",
            what: what.into(),
        }
    }
}
