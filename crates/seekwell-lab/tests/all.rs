//! The tests of this crate, in one binary: it is linked once.

mod alike;
mod conductor;
mod conductor_runs;
mod diff;
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
mod import_tools;
mod noise;
mod procedure;
mod recommendations;
mod schema_check;
#[path = "scipy/main.rs"]
mod scipy;
#[path = "store/main.rs"]
mod store;
mod trial;
mod vectors;
mod warm_up;
