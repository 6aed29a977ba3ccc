//! The tests of this crate, in one binary: it is linked once.

mod cfq;
mod differential;
mod effects;
mod facts;
mod figures;
#[path = "suite/fuzz_replay.rs"]
mod fuzz_replay;
#[path = "suite/fuzz_words.rs"]
mod fuzz_words;
#[path = "suite/legacy.rs"]
mod legacy;
mod machine_words;
mod models;
#[path = "suite/mq.rs"]
mod mq;
#[path = "suite/near.rs"]
mod near;
mod neighbours;
#[path = "phone/main.rs"]
mod phone;
mod phone_requests;
mod properties_random;
mod random;
mod replay;
mod rounds;
mod rules_reached;
mod times;
#[path = "suite/versions.rs"]
mod versions;
#[path = "suite/waiting.rs"]
mod waiting;

/// The schedulers that the suites test; a scheduler from outside the tree runs them over itself.
fn registered() -> &'static [seekwell_sched::SchedulerInfo] {
    seekwell_sched::registry()
}
