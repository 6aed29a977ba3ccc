//! The tests of this crate, in one binary: it is linked once.

// The paths of add/sweep.rs are written for a module of the crate.
use seekwell_sched::{contract, cx, info, tunable};

mod add_a_scheduler;
mod context;
#[path = "decisions/main.rs"]
mod decisions;
#[path = "examples/main.rs"]
mod examples;
mod kernel_map;
mod phone_reinsert;
mod phone_tunables;
mod register;
mod rules;
mod tunables;
