//! What is wrong with a file, where in it, and what to do.

use std::fmt;
use thiserror::Error;

/// Where in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// All of it.
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
    /// Which file; empty: what was asked for.
    pub file: String,
    /// Where in it.
    pub place: Place,
    /// What is wrong, and the remedy.
    pub what: String,
}

impl ImportError {
    /// About no file in particular.
    pub fn general(what: &str) -> Self {
        ImportError {
            file: String::new(),
            place: Place::File,
            what: what.to_owned(),
        }
    }
}
