//! Any text as a preset file of a device.
#![no_main]

use seekwell_sim::spec::fuzz::fuzz_one;

libfuzzer_sys::fuzz_target!(|text: &str| fuzz_one("preset", text));
