//! Disks that a run creates: a loop device with a file, and an ext4 file system on it. The kernel's
//! block tracepoints are recorded during the run.
//!
//! Only devices that the run created are used. Dropping the values undoes all changes in the right
//! order. If a run was killed, the next run removes its trace instances.

mod batch;
mod blocktrace;
mod bpf;
mod ext4;
mod loopdev;
mod pipe;
mod recorder;

pub use batch::{Asked, Batch, open as open_batches, stay_on};
pub use blocktrace::{BlockTrace, EVENTS, Recorded};
pub use bpf::{BpfTrace, Buckets, CLASSES, Latencies, LatencyCounts};
pub use ext4::{Ext4, Mounted, extents_of};
pub use loopdev::{LoopDevice, Queue, abandon};
use pipe::Pipe;
pub use recorder::{By, Recorder};

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use thiserror::Error;

/// Reasons why a run cannot be recorded.
#[derive(Debug, Error)]
pub enum WatchError {
    /// A kernel file cannot be accessed.
    #[error("{}: {source}; {remedy}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the kernel.
        source: std::io::Error,
        /// What the user can do.
        remedy: &'static str,
    },
    /// A program failed or is missing.
    #[error("{program}: {what}; {remedy}")]
    Program {
        /// Name of the program.
        program: String,
        /// Output of the program.
        what: String,
        /// What the user can do.
        remedy: &'static str,
    },
    /// The kernel did not accept a setting.
    #[error("{}: wrote {wrote}, reads {reads}", path.display())]
    Setting {
        /// Path of the file.
        path: PathBuf,
        /// The value that was written.
        wrote: String,
        /// The value that was read back.
        reads: String,
    },
    /// The device does not offer the requested scheduler.
    #[error("{device} offers no scheduler \"{name}\"; this kernel has: {offered}")]
    Scheduler {
        /// Name of the device.
        device: String,
        /// Name of the requested scheduler.
        name: String,
        /// The schedulers that the device offers.
        offered: String,
    },
    /// A line of the trace cannot be parsed.
    #[error("line {line} of the trace: cannot read the {field}: {found}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// The expected field.
        field: &'static str,
        /// The text that was found.
        found: String,
    },
}

/// Reads a small kernel file.
fn get(path: &Path) -> Result<String, WatchError> {
    std::fs::read_to_string(path)
        .map(|s| s.trim_end().to_owned())
        .map_err(|source| WatchError::File {
            path: path.to_owned(),
            source,
            remedy: "root is needed",
        })
}

/// Writes a small kernel file.
fn put(path: &Path, text: &str) -> Result<(), WatchError> {
    std::fs::write(path, text).map_err(|source| WatchError::File {
        path: path.to_owned(),
        source,
        remedy: "root is needed",
    })
}

/// Returns the search path for programs. It contains PATH and the directories of administration
/// programs, which are not in the PATH of every user.
fn search_path() -> std::ffi::OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin");
    path
}

/// Returns whether the program is installed.
pub fn has_program(name: &str) -> bool {
    std::env::split_paths(&search_path()).any(|dir| dir.join(name).is_file())
}

/// Runs a system program and returns its output. The program runs in its own process group, so that
/// Ctrl-C on the terminal does not end it in the middle of its work.
fn call(program: &str, args: &[&str], remedy: &'static str) -> Result<String, WatchError> {
    let failed = |what: String| WatchError::Program {
        program: program.to_owned(),
        what,
        remedy,
    };
    let out = Command::new(program)
        .args(args)
        .env("PATH", search_path())
        .process_group(0)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if !out.status.success() {
        let words = String::from_utf8_lossy(&out.stderr).trim().to_owned();
        return Err(failed(if words.is_empty() {
            out.status.to_string()
        } else {
            words
        }));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}
