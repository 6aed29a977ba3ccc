//! The way of an operation allocates nothing, under the schedulers in the tree.

use seekwell_sched::SchedulerInfo;

#[path = "suite/allocations.rs"]
mod suite;

/// Whom the suite is about; a scheduler from outside the tree runs it over itself.
fn registered() -> &'static [SchedulerInfo] {
    seekwell_sched::registry()
}
