//! Errors of results folders. Each error names the file and says what to do.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a results folder cannot be created, read or written.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The folder, or a file in it, is invalid.
    #[error("{}: {what}", path.display())]
    Bad {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong and what to do.
        what: String,
    },
    /// Another process is using the folder.
    #[error("{}: another seekwell process is writing to it; wait until it ends", .0.display())]
    Busy(PathBuf),
    /// A file could not be written. Everything that was stored before is still there.
    #[error("{}: cannot be written: {source}; {kept}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
        /// What is still stored, and what to do.
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
