//! Any text as an experiment on this machine, and as a recipe of a program.
#![no_main]

use seekwell_host::program::Recipe;
use seekwell_lab::host::file::read;
use std::path::Path;

libfuzzer_sys::fuzz_target!(|text: &str| {
    // It finds no files of the host.
    if text.contains('/') || text.contains(".toml") || text.contains(".fio") {
        return;
    }
    if let Err(e) = Recipe::parse("fuzz.toml", text) {
        assert!(!e.to_string().is_empty());
    }
    if let Err(faults) = read(text, Path::new("/nowhere/at/all")) {
        assert!(!faults.0.is_empty());
        assert!(faults.0.iter().all(|f| !f.to_string().is_empty()));
    }
});
