//! fio job files as workloads: the subset that says what is read and written, when, by whom.
//!
//! Engines differ only in whether they keep a depth: libaio, io_uring and posixaio do, the others
//! work one call at a time. What was held against fio 3.33, call by call: files that are read are
//! laid out and synced before, files that are only written are given their blocks (fallocate); a
//! call goes to the next file in turn; reads and writes of a mixed job each go through the file on
//! their own; a sync comes before the next call, so none follows the last; calls are submitted one
//! by one unless a batch is asked for. `filename=/dev/NAME` stands for the device of the run,
//! whatever it is called: the modelled one, or what the user named.
//!
//! Options about the bytes, the process (memory, CPU affinity) and logs are ignored with a warning:
//! lengths are all there is here, and every run records its series. Every other option is refused
//! by name. The numbers drawn are not fio's: the law is, the seed is the run's. Of
//! `random_distribution=normal` the law is the documented one.

#[cfg(test)]
mod against_fio;
mod figures;
mod job;
mod options;
mod parse;
mod places;
mod run;
#[cfg(test)]
mod tests;

pub use figures::{Figure, Kind};
pub use job::{Blocks, Dir, Distribution, Engine, Hint, Job, JobFile, Pattern, Service};
pub use parse::{Outside, parse};
pub(crate) use run::run;

use thiserror::Error;

/// What is wrong with a job file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file}, line {line}: {what}")]
pub struct FioError {
    /// Its name.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What, and the remedy.
    pub what: String,
}
