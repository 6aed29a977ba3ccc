//! Any bytes as an experiment file.
#![no_main]

#[path = "../../crates/seekwell-lab/tests/suite/fuzz_experiment.rs"]
mod fuzz_experiment;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_experiment::fuzz_one(bytes));
