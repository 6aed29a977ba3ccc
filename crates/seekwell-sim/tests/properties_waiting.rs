//! How long each scheduler of the tree lets anybody wait.

use seekwell_sched::SchedulerInfo;

#[path = "suite/versions.rs"]
mod versions;
#[path = "suite/waiting.rs"]
mod waiting;

/// Whom the suite is about; a scheduler from outside the tree runs it over itself.
fn registered() -> &'static [SchedulerInfo] {
    seekwell_sched::registry()
}
