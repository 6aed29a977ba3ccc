//! Any bytes as cases of a scheduler, or what one did, for `seekwell explain`.
#![no_main]

use seekwell_microscope::format::CsvOptions;
use seekwell_microscope::read_cases;
use std::path::PathBuf;
use std::sync::LazyLock;

/// A fuzzer ends without a word, so it stays.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("seekwell-fuzz-cases-{}", std::process::id()))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("a file is written");
    if let Err(e) = read_cases(&FILE, &CsvOptions::default()) {
        assert!(!e.to_string().is_empty());
    }
});
