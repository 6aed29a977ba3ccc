//! Any text as a workload with its parameters, and as what runs beside one.
#![no_main]

use seekwell_sim::spec::fuzz::fuzz_one;

libfuzzer_sys::fuzz_target!(|text: &str| {
    fuzz_one("workload", text);
    fuzz_one("beside", text);
});
