//! Programs that run next to the measured one.

use super::WorkloadSpec;
use serde::{Deserialize, Serialize};

/// The largest number of such programs.
pub const MAX_BESIDE: usize = 64;

/// A program next to the measured one, with its own directory and random streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideSpec {
    /// Started again whenever it ends, as long as the measured program runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// A script or a job file. A trace is not allowed, because it was recorded below a machine and
    /// not by one of its programs.
    pub workload: WorkloadSpec,
}

impl BesideSpec {
    /// A program that runs once.
    pub fn once(workload: WorkloadSpec) -> Self {
        BesideSpec {
            again: false,
            workload,
        }
    }
}
