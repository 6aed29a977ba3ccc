//! Errors between a device name and a device.

use seekwell_files::{Kind, ReadError};

/// A device could not be made. The text names the place, the fault and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// A fault in a preset file.
    #[error("{file}:{line}: {what}; {remedy}")]
    Preset {
        /// File as the user named it, or the name of the embedded one.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The fault.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// A fault in a device specification as typed.
    #[error("device \"{spec}\": {what}; {remedy}")]
    Spec {
        /// As typed.
        spec: String,
        /// The fault.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// A preset file could not be read.
    #[error("{path}: {what}; {remedy}")]
    Read {
        /// The path.
        path: String,
        /// The operating system's message, or the type of the file if it is not a regular one.
        what: String,
        /// What to do about it.
        remedy: String,
    },
}

impl DeviceError {
    /// The error of a path that leads to no preset. If the path is a disk, the remedy says how to
    /// make a preset of it.
    pub(crate) fn unread(path: &str, e: &ReadError) -> Self {
        let remedy = match e {
            ReadError::Kind(Kind::BlockDevice) => format!(
                "measure it first (`seekwell calibrate {path} -o mine.toml`), then give mine.toml"
            ),
            _ => "give the path of a preset file, or a name from `seekwell devices`".to_owned(),
        };
        DeviceError::Read {
            path: path.to_owned(),
            what: e.to_string(),
            remedy,
        }
    }
}

/// A fault in one parameter, before its origin (file or command line) is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamError {
    /// The parameter at fault.
    pub key: &'static str,
    /// The fault.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl ParamError {
    /// A fault in `key`.
    pub fn new(key: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        ParamError {
            key,
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}
