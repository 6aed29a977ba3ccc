//! Faults of a specification: all of them together, each with its field and a remedy.

use crate::suggest;
use std::fmt;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The field, from the top: `scheduler.tunables.fifo_batch`, `machine.cores`.
    pub field: String,
    /// The fault and the remedy.
    pub what: String,
    /// The word that was probably meant, for programs; the remedy names it.
    pub nearest: Option<String>,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for SpecError {}

/// All faults of a specification; never empty as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecErrors(pub Vec<SpecError>);

impl SpecErrors {
    /// A single fault.
    pub fn one(field: impl Into<String>, what: impl Into<String>) -> Self {
        let mut all = SpecErrors::default();
        all.push(field, what);
        all
    }
    /// Adds a fault.
    pub fn push(&mut self, field: impl Into<String>, what: impl Into<String>) {
        self.0.push(SpecError {
            field: field.into(),
            what: what.into(),
            nearest: None,
        });
    }
    /// Adds a fault about an unknown word. `what` is the message; a suggestion, or the list of all
    /// known words, is appended.
    pub fn unknown(&mut self, field: impl Into<String>, what: &str, word: &str, known: &[&str]) {
        let near = suggest::nearest(word, known.iter().copied(), &[]);
        let remedy = match suggest::question(&near) {
            Some(question) => question,
            None if known.is_empty() => "there are none".to_owned(),
            None => format!("there are {}", known.join(", ")),
        };
        self.0.push(SpecError {
            field: field.into(),
            what: format!("{what}; {remedy}"),
            nearest: near.first().map(|n| (*n).to_owned()),
        });
    }
    /// Adds the faults of a part, with its fields under `prefix`.
    pub fn under(&mut self, prefix: &str, part: SpecErrors) {
        for mut e in part.0 {
            e.field = match (prefix, e.field.as_str()) {
                ("", _) => e.field,
                (_, "") => prefix.to_owned(),
                (p, f) => format!("{p}.{f}"),
            };
            self.0.push(e);
        }
    }
    /// Returns the value, or adds the faults and returns `None`.
    pub fn take<T>(&mut self, prefix: &str, result: Result<T, SpecErrors>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(e) => {
                self.under(prefix, e);
                None
            }
        }
    }
    /// `value`, if there are no faults.
    pub fn or<T>(self, value: T) -> Result<T, SpecErrors> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl fmt::Display for SpecErrors {
    /// One line per fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.0.iter().enumerate() {
            write!(f, "{}{e}", if i > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecErrors {}
