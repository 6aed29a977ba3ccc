//! Any bytes as one of the files of a results folder: the first byte says which.
#![no_main]

#[path = "../../crates/seekwell-lab/tests/suite/fuzz_folders.rs"]
#[allow(dead_code)]
mod fuzz_folders;

use fuzz_folders::{Folders, folders};
use std::sync::LazyLock;

/// Below the directory for temporary files; a fuzzer ends without a word, so it stays.
static FOLDERS: LazyLock<Folders> = LazyLock::new(|| {
    let dir = std::env::temp_dir().join(format!("seekwell-fuzz-{}", std::process::id()));
    folders(&dir).expect("folders are made")
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((first, rest)) = bytes.split_first() {
        FOLDERS
            .fuzz_one((*first).into(), rest)
            .expect("a file is written");
    }
});
