//! Runs an experiment on the real kernel instead of in the simulation. Real programs do I/O in a
//! directory of this machine, under the schedulers of the running kernel. Results name this way of
//! execution `host`.
//!
//! The design of the experiment ([`HostDesign`]) comes from a command line, or from an experiment
//! file with a table `[host]` ([`file`]). It is expanded to the type [`Experiment`], which
//! simulations also use, so that results, statistics and reports are the same. [`Bench`] executes
//! the runs one after the other. Before each run it sets the scheduler and verifies that it is
//! active. It also sets the queue attributes that must be equal in all runs.
//!
//! If schedulers cannot be set, the only treatment is the active scheduler. An experiment cannot
//! use several directories, or devices without a file system.

mod beside;
mod device;
pub(crate) mod expand;
pub mod file;
mod load;
mod numbers;
mod runner;
pub mod words;

pub use device::DeviceOf;
pub(crate) use expand::deciding;
pub use runner::Bench;
pub use words::HostWork;

use crate::experiment::Design;
use std::path::PathBuf;

/// Queue attributes that are set for every run. kyber needs `iostats`, because it makes its
/// decisions from these statistics. Writeback throttling keeps the default of the kernel, which
/// disables throttling only under bfq ([`seekwell_sched::wbt`]).
pub const EQUAL: &[(&str, &str)] = &[("iostats", "1")];

/// The design of an experiment on this machine.
#[derive(Clone, Debug, Default)]
pub struct HostDesign {
    /// Name, method, schedulers and reference. The devices and workloads in it are not used.
    pub design: Design,
    /// The directory in which the programs run.
    pub path: PathBuf,
    /// The expected name of the device, as a safety check.
    pub device: Option<String>,
    /// Queue attributes that are the same for all runs, with their values.
    pub equal: Vec<(String, String)>,
    /// Pause between the change of the scheduler and the run, in seconds.
    pub settle_s: f64,
    /// The workloads.
    pub work: Vec<HostWork>,
    /// Text of the experiment file.
    pub text: String,
}

impl HostDesign {
    /// Returns a design with default settings for a directory.
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
