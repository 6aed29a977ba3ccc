//! Any records, times and lengths of every size included, on small devices under any scheduler.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| seekwell_sim::fuzz::fuzz_one(bytes));
