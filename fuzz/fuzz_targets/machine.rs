//! Any text as a modelled machine, and as its cgroups.
#![no_main]

#[path = "../../crates/seekwell-sim/tests/suite/fuzz_words.rs"]
#[allow(dead_code)]
mod fuzz_words;

use fuzz_words::fuzz_one;

libfuzzer_sys::fuzz_target!(|text: &str| fuzz_one("machine", text));
