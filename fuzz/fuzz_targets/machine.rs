//! Any text as a modelled machine, and as its cgroups.
#![no_main]

use seekwell_sim::spec::fuzz::fuzz_one;

libfuzzer_sys::fuzz_target!(|text: &str| fuzz_one("machine", text));
