//! What a run asks of a disk of our own: a loop device over a file, a fresh ext4 on it, and the
//! kernel's block tracepoints around the run.
//!
//! Only devices made here are touched. Everything is undone when the value is dropped, in the
//! right order, and what a killed run left (trace instances) is removed by the next one.

mod blocktrace;
mod ext4;
mod loopdev;

pub use blocktrace::{BlockTrace, EVENTS, Recorded};
pub use ext4::{Ext4, Mounted, extents_of};
pub use loopdev::{LoopDevice, Queue, abandon};

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

/// Runs a program of the system and gives what it printed.
fn call(program: &str, args: &[&str], remedy: &'static str) -> Result<String, WatchError> {
    let failed = |what: String| WatchError::Program {
        program: program.to_owned(),
        what,
        remedy,
    };
    let out = Command::new(program)
        .args(args)
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
