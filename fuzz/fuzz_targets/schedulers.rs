//! Any text as a list of schedulers.
#![no_main]

use seekwell_sim::spec::fuzz::fuzz_one;

libfuzzer_sys::fuzz_target!(|text: &str| fuzz_one("schedulers", text));
