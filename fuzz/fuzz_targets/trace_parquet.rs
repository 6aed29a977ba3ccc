//! Any bytes as parquet.
#![no_main]

#[path = "../../crates/seekwell-trace/tests/suite/fuzz.rs"]
mod fuzz;

use fuzz::fuzz_one;
use seekwell_trace::find_format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_one(find_format("parquet").ok(), bytes));
