//! What a request costs does not grow with the number of those that wait, under the schedulers in the
//! tree.

use seekwell_sched::{Layer, SchedulerInfo};

#[path = "suite/backlog.rs"]
mod suite;

/// Whom the suite is about; a scheduler from outside the tree runs it over itself.
fn registered() -> &'static [SchedulerInfo] {
    seekwell_sched::registry()
}

#[test]
fn there_are_some() {
    let mq = registered().iter().filter(|s| s.layer == Layer::Mq);
    assert!(mq.count() >= 5);
}
