//! Where finished runs are stored.

use crate::results::{Ended, Run};
use thiserror::Error;

/// A run could not be kept.
#[derive(Error, Clone, Debug, PartialEq, Eq)]
#[error("{0}")]
pub struct StoreError(pub String);

/// Stores runs. An accepted run survives a kill of the process; otherwise `add` returns an error.
pub trait Store {
    /// Runs that are already stored, in any order; they are not made again.
    ///
    /// # Errors
    /// If they cannot be read.
    fn completed(&mut self) -> Result<Vec<Run>, StoreError>;

    /// Stores a run that ended or failed.
    ///
    /// # Errors
    /// If the run cannot be stored; no more runs are made then.
    fn add(&mut self, ended: &Ended<'_>) -> Result<(), StoreError>;
}

/// Keeps runs in memory, for results that are printed and not saved.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The stored runs, in the order in which they ended.
    pub runs: Vec<Run>,
}

impl Store for Memory {
    fn completed(&mut self) -> Result<Vec<Run>, StoreError> {
        Ok(self.runs.clone())
    }
    fn add(&mut self, ended: &Ended<'_>) -> Result<(), StoreError> {
        self.runs.push(ended.run.clone());
        Ok(())
    }
}
