//! Converts user input to a [`RunSpec`], and runs a [`RunSpec`]. All parsing and checking of
//! schedulers, tunables, devices, machines and workloads is here.
//!
//! [`words`] parses the notations of the command line, which experiment files and other languages
//! use, too. [`checked`] reports all faults of a specification at once and fills in all defaults.
//! [`run`] runs it on virtual time.

mod carried;
pub mod cgroup;
pub mod check;
pub mod fuzz;
pub mod kernel;
pub mod machine;
mod read_ahead;
mod run;
pub mod scheduler;
pub mod words;
pub mod workload;

pub use carried::{Between, Carrier};
pub use check::{aligned, checked};
pub(crate) use read_ahead::{optimal_bytes, pages as read_ahead_pages};
pub use run::{Hooks, RunFailure, known_trace, run, setup, world};
pub use workload::plan;

pub use seekwell_core::spec::{
    BesideSpec, DeviceSpec, Fit, MachineSpec, QueueSpec, RunSpec, SchedulerSpec, SpecError,
    SpecErrors, Stream, Substrate, WorkloadSpec,
};

/// The error for a word that is not among the known ones.
fn unknown_word<'a>(what: &str, word: &str, known: impl Iterator<Item = &'a str>) -> SpecErrors {
    let mut errors = SpecErrors::default();
    errors.unknown("", what, word, &known.collect::<Vec<_>>());
    errors
}

#[cfg(test)]
mod tests;
