//! What the suite wants of every scheduler, of those in the tree.

use seekwell_sched::SchedulerInfo;

#[path = "suite/mq.rs"]
mod suite;

/// Whom the suite is about; a scheduler from outside the tree runs it over itself.
fn registered() -> &'static [SchedulerInfo] {
    seekwell_sched::registry()
}
