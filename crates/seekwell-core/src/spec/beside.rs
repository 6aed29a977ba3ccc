//! Programs beside the one that is measured.

use super::WorkloadSpec;
use serde::{Deserialize, Serialize};

/// Most programs beside the measured one.
pub const MAX_BESIDE: usize = 64;

/// A program beside the measured one: it has a directory and random streams of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideSpec {
    /// Begun again whenever it ends, for as long as the measured one runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// What: a script or a job file. A trace was recorded below a machine, and is none of its
    /// programs.
    pub workload: WorkloadSpec,
}

impl BesideSpec {
    /// Once.
    pub fn once(workload: WorkloadSpec) -> Self {
        BesideSpec {
            again: false,
            workload,
        }
    }
}
