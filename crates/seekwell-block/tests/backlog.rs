//! The cost of a request does not grow with the number of waiting requests, for the schedulers in
//! the tree.

use seekwell_sched::{Layer, SchedulerInfo};

#[path = "suite/backlog.rs"]
mod suite;

/// The schedulers that the suite tests; a scheduler from outside the tree runs the suite over
/// itself.
fn registered() -> &'static [SchedulerInfo] {
    seekwell_sched::registry()
}

#[test]
fn there_are_some() {
    let mq = registered().iter().filter(|s| s.layer == Layer::Mq);
    assert!(mq.count() >= 5);
}
