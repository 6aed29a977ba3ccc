//! Operations allocate no memory under the schedulers in the tree.

use seekwell_sched::SchedulerInfo;

#[path = "suite/allocations.rs"]
mod suite;

/// The schedulers under test; an external scheduler's crate replaces this function.
fn registered() -> &'static [SchedulerInfo] {
    seekwell_sched::registry()
}
