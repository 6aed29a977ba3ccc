//! Any bytes, format detected, through decompression.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| seekwell_trace::fuzz::fuzz_one(None, bytes));
