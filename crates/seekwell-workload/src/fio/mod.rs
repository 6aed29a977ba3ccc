//! fio job files as workloads. Only the options that determine which calls are made, when, and by
//! which task are supported.
//!
//! I/O engines differ only in the number of calls in flight: libaio, io_uring and posixaio keep
//! several calls in flight, and all other engines make one call at a time. The following behaviour
//! was compared with fio 3.33, call by call:
//! - Files that are read are written and synced first. Files that are only written are allocated
//!   (fallocate).
//! - Calls go to the files in turn.
//! - Reads and writes of a mixed job have separate positions in the file.
//! - A sync comes before the next call, so no sync follows the last call.
//! - Each submission has one call, unless a batch is set.
//!
//! - A further pass over a file begins with dropped pages (`invalidate`), also within a run of
//!   fixed duration.
//!
//! `filename=/dev/NAME` means the device of the run, regardless of NAME. This is the modelled
//! device in a simulation, or the device that the user named on a host. Any other path means a file
//! in the directory of the run: only its last part is used.
//!
//! Options without an effect on the requests of a job are ignored with one note, which lists them.
//! Contents have no effect, because only lengths are modelled. Logs are not needed, because every
//! run records time series. Every other unsupported option is an error that contains the name of
//! the option. Random numbers differ from those of fio: they have the same distribution, but the
//! run's seed determines them. `random_distribution=normal` follows the documentation of fio.

#[cfg(test)]
mod against_fio;
#[cfg(test)]
mod behaviour;
mod command;
mod engines;
mod figures;
mod files;
mod finish;
mod flow;
mod ignored;
mod job;
mod jobfile;
mod options;
mod outside;
mod parse;
mod places;
mod priority;
mod run;
mod shapes;
mod task;
#[cfg(test)]
mod tests;
mod values;
mod worker;
mod zipf;
mod zones;

pub use command::{Command, command, with_options};
pub use figures::{Figure, Kind};
pub use ignored::ignored_options;
pub use job::{
    Amount, Blocks, Dir, Distribution, Engine, ExitWhat, FileCall, Flow, Hint, Job, LatencyTarget,
    Pattern, Service, Steady, SteadyOf, Zoning,
};
pub use jobfile::JobFile;
pub use parse::{Outside, parse};
pub use priority::{CallPriority, Priorities};
pub(crate) use run::run;

use thiserror::Error;

/// An error in a job file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file}, line {line}: {what}")]
pub struct FioError {
    /// Name of the file.
    pub file: String,
    /// Line number, from 1.
    pub line: usize,
    /// The fault and the remedy.
    pub what: String,
}
