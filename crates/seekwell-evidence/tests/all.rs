//! The tests of this crate, in one binary: it is linked once.

mod arrays;
mod emmc;
mod reproduce;
mod validation;

/// The schedulers that the suites test; a scheduler from outside the tree runs them over itself.
fn registered() -> &'static [seekwell_sched::SchedulerInfo] {
    seekwell_sched::registry()
}
