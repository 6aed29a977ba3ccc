//! Any text as the specification of a run, as JSON.
#![no_main]

#[path = "../../crates/seekwell-sim/tests/suite/fuzz_words.rs"]
#[allow(dead_code)]
mod fuzz_words;

use fuzz_words::fuzz_run;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(spec) = serde_json::from_str(text) {
        fuzz_run(&spec);
    }
});
