//! Errors in device specifications and preset files.

use seekwell_files::{Kind, ReadError};

/// The error of a specification that gives no device. The text names the location, the fault and
/// the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// An error in a preset file.
    #[error("{file}:{line}: {what}; {remedy}")]
    Preset {
        /// The file name as the user wrote it, or the name of an embedded preset.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// What is wrong.
        what: String,
        /// How to correct the fault.
        remedy: String,
    },
    /// An error in a device specification.
    #[error("device \"{spec}\": {what}; {remedy}")]
    Spec {
        /// The specification as the user typed it.
        spec: String,
        /// What is wrong.
        what: String,
        /// How to correct the fault.
        remedy: String,
    },
    /// A preset file could not be read.
    #[error("{path}: {what}; {remedy}")]
    Read {
        /// Path of the file.
        path: String,
        /// The message of the operating system, or the type of the file if it is not a regular
        /// file.
        what: String,
        /// How to correct the fault.
        remedy: String,
    },
}

impl DeviceError {
    /// Makes the error of a path that is not a readable preset file. If the path is a disk, the
    /// remedy tells how to make a preset of this disk.
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

/// An error in one parameter. It does not yet contain its origin (file or command line).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamError {
    /// Name of the parameter.
    pub key: &'static str,
    /// What is wrong.
    pub what: String,
    /// How to correct the fault.
    pub remedy: String,
}

impl ParamError {
    /// Makes an error of the parameter `key`.
    pub fn new(key: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        ParamError {
            key,
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}
