//! Any bytes as parquet.
#![no_main]

use seekwell_trace::{find_format, fuzz::fuzz_one};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_one(find_format("parquet").ok(), bytes));
