//! Converts user input to a [`RunSpec`], and runs a [`RunSpec`]. This module parses and checks
//! schedulers, tunables, devices, machines and workloads.
//!
//! [`words`] parses the notations that users type on the command line. Experiment files and the
//! Python package use the same notations. [`checked`] reports all faults of a specification
//! together and fills in all defaults. [`run`] runs the specification in virtual time.

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
    BackgroundSpec, DeviceSpec, Fit, MachineSpec, QueueSpec, RunSpec, SchedulerSpec, SpecError,
    SpecErrors, Stream, Substrate, WorkloadSpec,
};

/// Returns the error for a word that is not among the known words.
fn unknown_word<'a>(what: &str, word: &str, known: impl Iterator<Item = &'a str>) -> SpecErrors {
    let mut errors = SpecErrors::default();
    errors.unknown("", what, word, &known.collect::<Vec<_>>());
    errors
}

#[cfg(test)]
mod tests;
