//! The tests of this crate, in one binary: it is linked once.

mod alike;
mod arrays;
mod conductor;
mod conductor_runs;
mod diff;
mod emmc;
mod exact_differences;
mod experiment_files;
#[path = "suite/fuzz_experiment.rs"]
mod fuzz_experiment;
#[path = "suite/fuzz_folders.rs"]
mod fuzz_folders;
#[path = "suite/fuzz_import.rs"]
mod fuzz_import;
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

/// Returns the schedulers that the suites test. A scheduler outside the tree runs the suites with
/// its own version of this function.
fn registered() -> &'static [seekwell_sched::SchedulerInfo] {
    seekwell_sched::registry()
}
