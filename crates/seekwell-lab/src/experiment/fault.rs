//! What is wrong with an experiment: all of it at once, each with its place in the file.

use seekwell::{SpecError, SpecErrors};
use std::fmt;

/// Where in a text something stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1; 0: it stands in no file.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it stands.
    pub at: Place,
    /// The field, from the top: `experiment.margin`, `scheduler[2].fifo_batch`.
    pub field: String,
    /// The fault and the remedy.
    pub what: String,
    /// The word that was probably meant, for programs: the remedy names it.
    pub nearest: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.line > 0 {
            write!(f, "line {}, column {}: ", self.at.line, self.at.column)?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for Fault {}

/// Everything that is wrong with an experiment, in the order of the file; never empty as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    /// One fault that stands in no file.
    pub fn one(field: impl Into<String>, what: impl Into<String>) -> Self {
        let mut all = Faults::default();
        all.push(Place::default(), field, what);
        all
    }
    /// Adds a fault.
    pub fn push(&mut self, at: Place, field: impl Into<String>, what: impl Into<String>) {
        self.add(
            at,
            SpecError {
                field: field.into(),
                what: what.into(),
                nearest: None,
            },
        );
    }
    /// Adds a fault of a part, once.
    pub fn add(&mut self, at: Place, e: SpecError) {
        let fault = Fault {
            at,
            field: e.field,
            what: e.what,
            nearest: e.nearest,
        };
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }
    /// Adds those of a part, whose fields stand under `prefix`.
    pub fn under(&mut self, at: Place, prefix: &str, part: SpecErrors) {
        let mut all = SpecErrors::default();
        all.under(prefix, part);
        for e in all.0 {
            self.add(at, e);
        }
    }
    /// Adds a word that is none of the known ones; see [`SpecErrors::unknown`].
    pub fn unknown(&mut self, at: Place, field: &str, what: &str, word: &str, known: &[&str]) {
        let mut all = SpecErrors::default();
        all.unknown(field, what, word, known);
        self.under(at, "", all);
    }
    /// Keeps a value, or the faults of what should have been one.
    pub fn take<T>(&mut self, at: Place, prefix: &str, result: Result<T, SpecErrors>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(e) => {
                self.under(at, prefix, e);
                None
            }
        }
    }
    /// `value`, if nothing is wrong; the faults in the order of the file.
    ///
    /// # Errors
    /// All of them.
    pub fn or<T>(mut self, value: T) -> Result<T, Faults> {
        if self.0.is_empty() {
            return Ok(value);
        }
        self.0.sort_by_key(|f| f.at);
        Err(self)
    }
}

impl fmt::Display for Faults {
    /// One line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.0.iter().enumerate() {
            write!(f, "{}{e}", if i > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}
