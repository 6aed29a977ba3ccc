//! Any bytes as an experiment file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| seekwell_lab::experiment::fuzz_one(bytes));
