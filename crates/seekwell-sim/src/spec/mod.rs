//! From what people type to a [`RunSpec`], and from a [`RunSpec`] to a run: the one place where
//! words become schedulers, tunables, devices, machines and workloads, and where they are checked.
//!
//! [`words`] reads the notations of the command line, which experiment files and other languages
//! use too; [`checked`] finds everything that is wrong with a specification at once and states all
//! defaults; [`run`] runs it on virtual time.

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

/// A word that is none of the known ones.
fn unknown_word<'a>(what: &str, word: &str, known: impl Iterator<Item = &'a str>) -> SpecErrors {
    let mut errors = SpecErrors::default();
    errors.unknown("", what, word, &known.collect::<Vec<_>>());
    errors
}

#[cfg(test)]
mod tests;
