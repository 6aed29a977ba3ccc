//! fio job files as workloads: the subset that describes the order, time and task of reads and
//! writes.
//!
//! Engines differ only in whether they keep a depth: libaio, io_uring and posixaio do; the others
//! make one call at a time. The following was compared with fio 3.33, call by call:
//! - Files to read are written and synced first; files that are only written are allocated
//!   (fallocate).
//! - Calls go to the files in turn.
//! - Reads and writes of a mixed job progress through the file independently.
//! - A sync comes before the next call, so none follows the last call.
//! - Calls are submitted one by one unless a batch is set.
//!
//! `filename=/dev/NAME` means the device of the run, whatever its name is: the modelled one, or the
//! one that the user named.
//!
//! Options about contents, the process (memory, CPU affinity) and logs are ignored with a warning,
//! because only lengths are modelled and every run records its series. Every other option is
//! rejected with its name. Random numbers differ from fio's: only the distribution is the same, and
//! the seed is the run's. `random_distribution=normal` follows the documentation.

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

/// An error in a job file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file}, line {line}: {what}")]
pub struct FioError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The error and the remedy.
    pub what: String,
}
