//! Runs the project's own property tests for the scheduler from outside.

use seekwell_sched::SchedulerInfo;

#[path = "../../../crates/seekwell-sim/tests/suite/mq.rs"]
mod mq;
#[path = "../../../crates/seekwell-sim/tests/suite/near.rs"]
mod near;
#[path = "../../../crates/seekwell-sim/tests/suite/versions.rs"]
mod versions;
#[path = "../../../crates/seekwell-sim/tests/suite/waiting.rs"]
mod waiting;

fn registered() -> &'static [SchedulerInfo] {
    outside::register();
    let all = seekwell_sched::registry();
    let at = all.iter().position(|s| s.name == "youngest");
    let at = at.expect("it was registered");
    &all[at..=at]
}
