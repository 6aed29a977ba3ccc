//! Disks owned by a run: a loop device over a file, a new ext4 on it, and the kernel's block
//! tracepoints during the run.
//!
//! Only devices created here are used. Dropping the value undoes everything in the right order. The
//! next run removes leftovers of a killed run (trace instances).

mod batch;
mod blocktrace;
mod bpf;
mod ext4;
mod loopdev;
mod pipe;
mod recorder;

pub use batch::{Asked, Batch, open as open_batches, stay_on};
pub use blocktrace::{BlockTrace, EVENTS, Recorded};
pub use bpf::BpfTrace;
pub use ext4::{Ext4, Mounted, extents_of};
pub use loopdev::{LoopDevice, Queue, abandon};
use pipe::Pipe;
pub use recorder::{By, Recorder};

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use thiserror::Error;

/// Why a run cannot be recorded.
#[derive(Debug, Error)]
pub enum WatchError {
    /// A kernel file cannot be accessed.
    #[error("{}: {source}; {remedy}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// A program failed or is missing.
    #[error("{program}: {what}; {remedy}")]
    Program {
        /// Its name.
        program: String,
        /// Its output.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The kernel did not accept a setting.
    #[error("{}: wrote {wrote}, reads {reads}", path.display())]
    Setting {
        /// The file.
        path: PathBuf,
        /// The value written.
        wrote: String,
        /// The value read back.
        reads: String,
    },
    /// The device offers no such scheduler.
    #[error("{device} offers no scheduler '{name}'; this kernel has: {offered}")]
    Scheduler {
        /// The device.
        device: String,
        /// Name as requested.
        name: String,
        /// The schedulers offered.
        offered: String,
    },
    /// The trace cannot be read.
    #[error("line {line} of the trace: cannot read the {field}: {found}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// The expected field.
        field: &'static str,
        /// The text found.
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

/// Search path for programs: PATH and the administrators' directories, which not every user's PATH
/// has.
fn search_path() -> std::ffi::OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin");
    path
}

/// Whether the system has the program.
pub fn has_program(name: &str) -> bool {
    std::env::split_paths(&search_path()).any(|dir| dir.join(name).is_file())
}

/// Runs a system program and returns its output. The program has its own process group, because
/// Ctrl-C on the terminal is meant for Seekwell: a killed program would leave its work half done.
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
