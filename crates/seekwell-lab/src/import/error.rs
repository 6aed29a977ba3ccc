//! Import errors: the fault, its position in the file, and the remedy.

use std::fmt;
use thiserror::Error;

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The whole file.
    File,
    /// A line, counted from 1.
    Line(usize),
    /// An element, identified by its path ("Result 3/Data/Entry 2").
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

/// The reason why a file was not imported.
#[derive(Error, Clone, Debug, PartialEq, Eq)]
#[error("{}{place}{}{what}", .file, if .file.is_empty() { "" } else { ": " })]
pub struct ImportError {
    /// Name of the file; empty if the options are wrong.
    pub file: String,
    /// Position in the file.
    pub place: Place,
    /// What is wrong and what to do.
    pub what: String,
}

impl ImportError {
    /// Returns an error that does not refer to a file.
    pub fn general(what: &str) -> Self {
        ImportError {
            file: String::new(),
            place: Place::File,
            what: what.to_owned(),
        }
    }
}
