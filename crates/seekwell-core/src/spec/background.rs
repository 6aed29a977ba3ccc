//! Specification of the programs that run next to the measured program.

use super::WorkloadSpec;
use serde::{Deserialize, Serialize};

/// Largest number of programs next to the measured program.
pub const MAX_BACKGROUND: usize = 64;

/// A program that runs next to the measured program. It has its own directory and its own random
/// streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackgroundSpec {
    /// If true, the program starts again whenever it ends, as long as the measured program runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// The program: a script or a job file. A trace is not allowed, because a trace is recorded
    /// below the machine and does not contain its programs.
    pub workload: WorkloadSpec,
}

impl BackgroundSpec {
    /// Returns the specification of a program that runs once.
    pub fn once(workload: WorkloadSpec) -> Self {
        BackgroundSpec {
            again: false,
            workload,
        }
    }
}
