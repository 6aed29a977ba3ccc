//! What a run asks of a disk of our own: a loop device over a file, a fresh ext4 on it, and the
//! kernel's block tracepoints around the run.
//!
//! Only devices made here are touched. Everything is undone when the value is dropped, in the
//! right order, and what a killed run left (trace instances) is removed by the next one.

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

/// Why nothing can be watched.
#[derive(Debug, Error)]
pub enum WatchError {
    /// A file of the kernel's.
    #[error("{}: {source}; {remedy}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// A program failed, or is not there.
    #[error("{program}: {what}; {remedy}")]
    Program {
        /// Its name.
        program: String,
        /// Its words.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A setting did not take.
    #[error("{}: wrote {wrote}, reads {reads}", path.display())]
    Setting {
        /// Of which file.
        path: PathBuf,
        /// Written.
        wrote: String,
        /// Found afterwards.
        reads: String,
    },
    /// No such scheduler there.
    #[error("{device} offers no scheduler '{name}'; this kernel has: {offered}")]
    Scheduler {
        /// The device.
        device: String,
        /// As asked for.
        name: String,
        /// What there is.
        offered: String,
    },
    /// The trace cannot be read.
    #[error("line {line} of the trace: cannot read the {field}: {found}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What should be there.
        field: &'static str,
        /// What is.
        found: String,
    },
}

/// Reads a small file of the kernel's.
fn get(path: &Path) -> Result<String, WatchError> {
    std::fs::read_to_string(path)
        .map(|s| s.trim_end().to_owned())
        .map_err(|source| WatchError::File {
            path: path.to_owned(),
            source,
            remedy: "root is needed",
        })
}

/// Writes one.
fn put(path: &Path, text: &str) -> Result<(), WatchError> {
    std::fs::write(path, text).map_err(|source| WatchError::File {
        path: path.to_owned(),
        source,
        remedy: "root is needed",
    })
}

/// Where programs are looked for: administrators' directories are not in everybody's PATH.
fn search_path() -> std::ffi::OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin");
    path
}

/// Is there such a program of the system?
pub fn has_program(name: &str) -> bool {
    std::env::split_paths(&search_path()).any(|dir| dir.join(name).is_file())
}

/// Runs a program of the system and gives what it printed. In a process group of its own: a Ctrl-C
/// on the terminal is for us, and a program killed in the middle would leave half a job.
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
