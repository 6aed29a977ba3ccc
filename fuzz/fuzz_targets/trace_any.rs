//! Any bytes, format detected, through decompression.
#![no_main]

#[path = "../../crates/seekwell-trace/tests/suite/fuzz.rs"]
mod fuzz;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::fuzz_one(None, bytes));
