//! Runs the suite for single-queue schedulers over those in the tree.

use seekwell_sched::SchedulerInfo;

#[path = "suite/near.rs"]
mod near;
#[path = "suite/legacy.rs"]
mod suite;
#[path = "suite/versions.rs"]
mod versions;

/// The schedulers under test; an external scheduler's crate replaces this function.
fn registered() -> &'static [SchedulerInfo] {
    seekwell_sched::registry()
}
