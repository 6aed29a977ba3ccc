//! What the suite wants of every scheduler, of those in the tree.

use seekwell_sched::SchedulerInfo;

#[path = "suite/near.rs"]
mod near;
#[path = "suite/mq.rs"]
mod suite;
#[path = "suite/versions.rs"]
mod versions;

/// Whom the suite is about; a scheduler from outside the tree runs it over itself.
fn registered() -> &'static [SchedulerInfo] {
    seekwell_sched::registry()
}
