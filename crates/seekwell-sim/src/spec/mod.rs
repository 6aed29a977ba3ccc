//! Checks and runs a [`RunSpec`]. [`crate::notation`] converts user input to its parts.
//!
//! [`checked`] reports all faults of a specification together and fills in all defaults. [`run`]
//! runs the specification in virtual time.

mod carried;
pub mod check;
mod run;

pub use crate::notation::workload::plan;
pub use crate::notation::{cgroup, kernel, machine, scheduler, words, workload};
pub use carried::{Between, Carrier};
pub use check::{aligned, checked};
pub use run::{Hooks, RunFailure, known_trace, run, setup, world};

pub use seekwell_core::spec::{
    BackgroundSpec, DeviceSpec, Fit, MachineSpec, QueueSpec, RunSpec, SchedulerSpec, SpecError,
    SpecErrors, Stream, Substrate, WorkloadSpec,
};

#[cfg(test)]
mod tests;
