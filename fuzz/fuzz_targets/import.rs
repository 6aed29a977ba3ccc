//! Any bytes as results made elsewhere: the first byte says as which format, or as detected.
#![no_main]

#[path = "../../crates/seekwell-lab/tests/suite/fuzz_import.rs"]
mod fuzz_import;

use fuzz_import::fuzz_one;
use seekwell_lab::import::formats;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let format = formats().get(usize::from(*first)).map(|f| f.name);
    fuzz_one(format, rest);
});
