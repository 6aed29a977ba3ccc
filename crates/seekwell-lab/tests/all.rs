//! The tests of this crate, in one binary: it is linked once.

mod alike;
mod arrays;
mod conductor;
mod conductor_runs;
mod diff;
mod emmc;
mod exact_differences;
mod experiment_files;
mod import_formats;
mod import_published;
mod import_robust;
mod noise;
mod procedure;
mod recommendations;
mod reproduce;
mod schema_check;
#[path = "scipy/main.rs"]
mod scipy;
#[path = "store/main.rs"]
mod store;
mod validation;
mod vectors;
mod warm_up;

/// The schedulers that the suites test; a scheduler from outside the tree runs them over itself.
fn registered() -> &'static [seekwell_sched::SchedulerInfo] {
    seekwell_sched::registry()
}
