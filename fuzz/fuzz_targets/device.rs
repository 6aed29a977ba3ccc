//! Any text as a device: described, weighed, made.
#![no_main]

use seekwell_sim::spec::fuzz::fuzz_one;

libfuzzer_sys::fuzz_target!(|text: &str| fuzz_one("device", text));
