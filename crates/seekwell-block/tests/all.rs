//! The tests of this crate, in one binary: it is linked once.

mod backlog;
mod flush;
mod guest;
mod iocost;
mod iocost_queue;
mod iolatency;
mod iomax;
mod mmc;
mod mq;
#[path = "raid/main.rs"]
mod raid;
mod unusual_schedulers;
mod wbt;
mod wbt_rules;

/// The schedulers that the suites test; a scheduler from outside the tree runs them over itself.
fn registered() -> &'static [seekwell_sched::SchedulerInfo] {
    seekwell_sched::registry()
}
