//! Where runs go as they end.

use crate::results::{Ended, Run};
use thiserror::Error;

/// A run could not be kept.
#[derive(Error, Clone, Debug, PartialEq, Eq)]
#[error("{0}")]
pub struct StoreError(pub String);

/// Keeps runs. What it has taken is there after the process was killed, or it says so.
pub trait Store {
    /// Runs that it holds already, in any order: they are not made again.
    ///
    /// # Errors
    /// If they cannot be read.
    fn completed(&mut self) -> Result<Vec<Run>, StoreError>;

    /// Takes a run that ended, or failed.
    ///
    /// # Errors
    /// If it cannot be kept; no more runs are made then.
    fn add(&mut self, ended: &Ended<'_>) -> Result<(), StoreError>;
}

/// In memory: for what is printed and forgotten.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// What it was given, in the order in which runs ended.
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
