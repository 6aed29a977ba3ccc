//! The suite's own property tests, over the scheduler from outside.

use seekwell_sched::SchedulerInfo;

#[path = "../../../crates/seekwell-sim/tests/suite/mq.rs"]
mod mq;

fn registered() -> &'static [SchedulerInfo] {
    outside::register();
    let all = seekwell_sched::registry();
    let at = all.iter().position(|s| s.name == "youngest");
    let at = at.expect("it was registered");
    &all[at..=at]
}
