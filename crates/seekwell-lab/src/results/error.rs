//! Errors of results folders; each names the file and the remedy.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a results folder cannot be made, read or written.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The folder, or a file in it, is invalid.
    #[error("{}: {what}", path.display())]
    Bad {
        /// The file or folder.
        path: PathBuf,
        /// The fault and the remedy.
        what: String,
    },
    /// Another process is using it.
    #[error("{}: another seekwell process is writing to it; wait until it ends", .0.display())]
    Busy(PathBuf),
    /// It could not be written; everything stored before is still there.
    #[error("{}: cannot be written: {source}; {kept}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
        /// What is still there, and what to do.
        kept: String,
    },
}

impl StoreError {
    pub(super) fn bad(path: &Path, what: impl Into<String>) -> Self {
        StoreError::Bad {
            path: path.to_owned(),
            what: what.into(),
        }
    }
    pub(super) fn write(path: &Path, source: io::Error, kept: impl Into<String>) -> Self {
        StoreError::Write {
            path: path.to_owned(),
            source,
            kept: kept.into(),
        }
    }
}
