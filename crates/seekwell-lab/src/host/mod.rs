//! The substrate `host`: an experiment in a directory of this machine, with the kernel's own
//! schedulers and real programs.
//!
//! The request ([`HostDesign`]) comes from a command line or from an experiment file with a table
//! `[host]` ([`file`]). It expands to the same [`Experiment`] type as a simulation, so results,
//! statistics and reports work the same way. [`Bench`] makes the runs, one at a time. It sets the
//! scheduler and reads it back, and sets disturbing attributes to the same values for all runs.
//!
//! Without the right to set anything there is one treatment: the active scheduler. Not supported:
//! several directories in one experiment, and devices without a file system.

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

/// Attributes set for every run: without counted requests kyber has no input. Writeback throttling
/// is left to the kernel, which disables it under bfq only ([`seekwell_sched::wbt`]).
pub const EQUAL: &[(&str, &str)] = &[("iostats", "1")];

/// A requested experiment on this machine.
#[derive(Clone, Debug, Default)]
pub struct HostDesign {
    /// Name, method, schedulers, reference; its devices and workloads are not used.
    pub design: Design,
    /// The directory in which it runs.
    pub path: PathBuf,
    /// The expected device, by name, as a confirmation.
    pub device: Option<String>,
    /// Queue attributes that are the same in all runs, with their values.
    pub equal: Vec<(String, String)>,
    /// Pause between the scheduler switch and the run, in seconds.
    pub settle_s: f64,
    /// The workloads.
    pub work: Vec<HostWork>,
    /// Text of the experiment file.
    pub text: String,
}

impl HostDesign {
    /// A design with default settings in a directory.
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
