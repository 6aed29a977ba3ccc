//! Import errors: the fault, its position in the file, and the remedy.

use std::fmt;
use thiserror::Error;

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The whole file.
    File,
    /// A line, from 1.
    Line(usize),
    /// An element, by its path ("Result 3/Data/Entry 2").
    Element(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File => Ok(()),
            Place::Line(n) => write!(f, ", line {n}"),
            Place::Element(path) => write!(f, ", {path}"),
        }
    }
}

/// Why files were not imported.
#[derive(Error, Clone, Debug, PartialEq, Eq)]
#[error("{}{place}{}{what}", .file, if .file.is_empty() { "" } else { ": " })]
pub struct ImportError {
    /// The file; empty if the options are wrong.
    pub file: String,
    /// Position in the file.
    pub place: Place,
    /// The fault and the remedy.
    pub what: String,
}

impl ImportError {
    /// An error that concerns no particular file.
    pub fn general(what: &str) -> Self {
        ImportError {
            file: String::new(),
            place: Place::File,
            what: what.to_owned(),
        }
    }
}
