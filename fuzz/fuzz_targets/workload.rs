//! Any text as a workload with its parameters, and as what runs beside one.
#![no_main]

#[path = "../../crates/seekwell-sim/tests/suite/fuzz_words.rs"]
#[allow(dead_code)]
mod fuzz_words;

use fuzz_words::fuzz_one;

libfuzzer_sys::fuzz_target!(|text: &str| {
    fuzz_one("workload", text);
    fuzz_one("beside", text);
});
