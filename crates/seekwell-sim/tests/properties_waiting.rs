//! The longest wait under each scheduler in the tree.

use seekwell_sched::SchedulerInfo;

#[path = "suite/versions.rs"]
mod versions;
#[path = "suite/waiting.rs"]
mod waiting;

/// The schedulers under test; an external scheduler's crate replaces this function.
fn registered() -> &'static [SchedulerInfo] {
    seekwell_sched::registry()
}
