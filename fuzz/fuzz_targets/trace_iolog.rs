//! Any bytes behind a first line of fio iolog 2 or 3 (the lowest bit of the first byte says which).
#![no_main]

#[path = "../../crates/seekwell-trace/tests/suite/fuzz.rs"]
mod fuzz;

use fuzz::fuzz_one;
use seekwell_trace::find_format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let version = 2 + (first & 1);
    let log = [format!("fio version {version} iolog\n").as_bytes(), rest].concat();
    fuzz_one(find_format(&format!("fio-iolog-v{version}")).ok(), &log);
});
