//! fio job files as workloads: the subset that says what is read and written, when, by whom.
//!
//! Engines differ only in whether they keep a depth: libaio, io_uring and posixaio do, the others
//! work one call at a time. Files are laid out, synced and dropped from the cache before reads,
//! as fio does. Options about data (verify, compression, patterns), about the process (memory,
//! CPU affinity) and about logs are ignored with a warning: lengths are all there is here, and
//! every run records its series. Every other option is refused by name.

mod job;
mod parse;
mod run;
#[cfg(test)]
mod tests;

pub use job::{Distribution, Engine, Job, JobFile, Pattern};
pub use parse::parse;
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
