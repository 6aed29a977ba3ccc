//! The faults of a specification. All faults are reported together, each with its field and a
//! remedy.

use crate::suggest;
use std::fmt;

/// One fault of a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The path of the field, for example `scheduler.tunables.fifo_batch` or `machine.cores`.
    pub field: String,
    /// A text that describes the fault and the remedy.
    pub what: String,
    /// The word that the user probably meant, for programs. The text contains it too.
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

/// All faults of a specification. A returned error contains at least one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecErrors(pub Vec<SpecError>);

impl SpecErrors {
    /// Returns a list with one fault.
    pub fn single(field: impl Into<String>, what: impl Into<String>) -> Self {
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
    /// Adds a fault about an unknown word. `what` is the message. A similar known word, or the list
    /// of all known words, is appended to it.
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
    /// Adds the faults of a part of the specification, with `prefix` before their fields.
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
    /// Returns the value of `result`. If it is an error, adds its faults and returns `None`.
    pub fn take<T>(&mut self, prefix: &str, result: Result<T, SpecErrors>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(e) => {
                self.under(prefix, e);
                None
            }
        }
    }
    /// Returns `value` if there are no faults, otherwise the faults.
    pub fn or<T>(self, value: T) -> Result<T, SpecErrors> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl fmt::Display for SpecErrors {
    /// Writes one line per fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.0.iter().enumerate() {
            write!(f, "{}{e}", if i > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecErrors {}
