//! Where finished runs are stored.

use crate::data::{Ended, Run};
use thiserror::Error;

/// The error of a store that cannot read or keep a run.
#[derive(Error, Clone, Debug, PartialEq, Eq)]
#[error("{0}")]
pub struct StoreError(pub String);

/// Stores runs. If `add` succeeds, the run is kept even if the process is killed afterwards.
pub trait Store {
    /// Returns the runs that are already stored, in any order. They are not made again.
    ///
    /// # Errors
    /// Returns an error if the runs cannot be read.
    fn completed(&mut self) -> Result<Vec<Run>, StoreError>;

    /// Stores a run that ended or failed.
    ///
    /// # Errors
    /// Returns an error if the run cannot be stored. No more runs are made then.
    fn add(&mut self, ended: &Ended<'_>) -> Result<(), StoreError>;
}

/// Keeps runs in memory only, for results that are printed and not saved.
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
