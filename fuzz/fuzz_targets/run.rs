//! Any text as the specification of a run, as JSON.
#![no_main]

use seekwell_sim::spec::fuzz::fuzz_run;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(spec) = serde_json::from_str(text) {
        fuzz_run(&spec);
    }
});
