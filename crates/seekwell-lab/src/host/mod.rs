//! The substrate `host`: an experiment on a directory of this machine, with the kernel's own
//! schedulers and real programs.
//!
//! What is wanted ([`HostDesign`]) comes from a command line or from an experiment file with a table
//! `[host]` ([`file`]); it is expanded to the same [`Experiment`] that a simulation is, so that
//! results, statistics and reports are the same. [`Bench`] makes the runs: one at a time, each
//! with the scheduler set and read back, and what differs for a bad reason made equal.
//!
//! Without the right to set anything there is one treatment: what is in force. Left out: several
//! directories in one experiment, and devices without a file system.

mod beside;
mod expand;
pub mod file;
mod load;
mod numbers;
mod runner;
pub mod words;

pub use runner::{Bench, DeviceOf};
pub use words::HostWork;

use crate::experiment::Design;
use std::path::PathBuf;

/// What is set for every run: without counted requests kyber has nothing to go by. Writeback
/// throttling is left to the kernel, which switches it off under bfq only ([`seekwell_sched::wbt`]).
pub const EQUAL: &[(&str, &str)] = &[("iostats", "1")];

/// An experiment on this machine, as it is asked for.
#[derive(Clone, Debug, Default)]
pub struct HostDesign {
    /// Name, method, schedulers, reference; its devices and workloads are not used.
    pub design: Design,
    /// Where it runs: a directory.
    pub path: PathBuf,
    /// The device that is meant, by name: a confirmation.
    pub device: Option<String>,
    /// Attributes of the queue that are the same in all runs, with their values.
    pub equal: Vec<(String, String)>,
    /// Pause after the switch and before the run, seconds.
    pub settle_s: f64,
    /// What runs.
    pub work: Vec<HostWork>,
    /// The experiment file.
    pub text: String,
}

impl HostDesign {
    /// As usual, in a directory.
    pub fn new(path: PathBuf) -> Self {
        HostDesign {
            path,
            equal: EQUAL
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            settle_s: 0.5,
            ..HostDesign::default()
        }
    }
}
