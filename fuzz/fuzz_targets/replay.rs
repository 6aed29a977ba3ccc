//! Any records, times and lengths of every size included, on small devices under any scheduler.
#![no_main]

#[path = "../../crates/seekwell-sim/tests/suite/fuzz_replay.rs"]
mod fuzz_replay;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_replay::fuzz_one(bytes));
