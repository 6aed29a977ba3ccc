//! Parses the notations that users type on the command line: schedulers, tunables, devices,
//! machines, cgroups and workloads. Experiment files and the Python package use the same notations.
//!
//! [`words`] parses complete runs.

pub mod cgroup;
pub mod kernel;
pub mod machine;
pub mod queue;
pub mod read_ahead;
pub mod scheduler;
pub mod words;
pub mod workload;

use seekwell_core::spec::{
    BackgroundSpec, DeviceSpec, Fit, MachineSpec, QueueSpec, RunSpec, SchedulerSpec, SpecErrors,
    Stream, WorkloadSpec,
};

/// Returns the error for a word that is not among the known words.
fn unknown_word<'a>(what: &str, word: &str, known: impl Iterator<Item = &'a str>) -> SpecErrors {
    let mut errors = SpecErrors::default();
    errors.unknown("", what, word, &known.collect::<Vec<_>>());
    errors
}
