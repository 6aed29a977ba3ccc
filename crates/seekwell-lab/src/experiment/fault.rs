//! Collects all faults of an experiment, each with its position in the file.

use seekwell::{SpecError, SpecErrors};
use std::fmt;

/// A position in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line number, from 1; 0 means that there is no file.
    pub line: usize,
    /// Column number in characters, from 1.
    pub column: usize,
}

/// One fault of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Position of the fault.
    pub at: Place,
    /// Path of the faulty field from the top of the file: `experiment.margin`,
    /// `scheduler[2].fifo_batch`.
    pub field: String,
    /// What is wrong and how to fix it.
    pub what: String,
    /// The word that the user probably meant, for programs. The text in `what` contains it too.
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

/// All faults of an experiment, in the order of the file. An error always contains at least one
/// fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    /// Builds a list with a single fault that has no position.
    pub fn single(field: impl Into<String>, what: impl Into<String>) -> Self {
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
    /// Adds a fault of a part of the experiment, if it is not in the list yet.
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
    /// Adds the faults of a part of the experiment. Their fields get this prefix.
    pub fn under(&mut self, at: Place, prefix: &str, part: SpecErrors) {
        let mut all = SpecErrors::default();
        all.under(prefix, part);
        for e in all.0 {
            self.add(at, e);
        }
    }
    /// Adds a fault for an unknown word; see [`SpecErrors::unknown`].
    pub fn unknown(&mut self, at: Place, field: &str, what: &str, word: &str, known: &[&str]) {
        let mut all = SpecErrors::default();
        all.unknown(field, what, word, known);
        self.under(at, "", all);
    }
    /// Returns the value, or adds its faults to the list and returns `None`.
    pub fn take<T>(&mut self, at: Place, prefix: &str, result: Result<T, SpecErrors>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(e) => {
                self.under(at, prefix, e);
                None
            }
        }
    }
    /// Returns `value` if there are no faults.
    ///
    /// # Errors
    /// Returns all faults in the order of the file, if there are any.
    pub fn or<T>(mut self, value: T) -> Result<T, Faults> {
        if self.0.is_empty() {
            return Ok(value);
        }
        self.0.sort_by_key(|f| f.at);
        Err(self)
    }
}

impl fmt::Display for Faults {
    /// Writes one line per fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.0.iter().enumerate() {
            write!(f, "{}{e}", if i > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}
