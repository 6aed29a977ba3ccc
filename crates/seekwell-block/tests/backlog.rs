//! The cost of a request does not grow with the number of waiting requests, for the schedulers in
//! the tree.

use seekwell_sched::Layer;

#[path = "suite/backlog.rs"]
mod suite;

#[test]
fn at_least_five_multi_queue_schedulers_are_registered() {
    let mq = crate::registered().iter().filter(|s| s.layer == Layer::Mq);
    assert!(mq.count() >= 5);
}
