//! The earlier runs on the drive of a run.

use serde::{Deserialize, Serialize};

/// The history of a drive that earlier runs have used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Number of earlier runs on the drive.
    pub place: u32,
    /// [`crate::result::Record::spec_hash`] of the last earlier run. That hash includes the runs before it.
    pub after: String,
    /// Idle time between that run and this run, ns.
    pub pause_ns: u64,
    /// True if all data on the drive were discarded before this run.
    pub trim: bool,
}
