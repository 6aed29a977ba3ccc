//! Any bytes as a format without a target of its own: the first byte selects one of all formats.
#![no_main]

#[path = "../../crates/seekwell-trace/tests/suite/fuzz.rs"]
mod fuzz;

use fuzz::fuzz_one;
use seekwell_trace::formats;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((first, rest)) = bytes.split_first() {
        fuzz_one(formats().get(usize::from(*first) % formats().len()), rest);
    }
});
