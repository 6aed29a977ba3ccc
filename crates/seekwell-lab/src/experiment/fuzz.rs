//! The entry point of every fuzzer: any bytes as an experiment file end in an experiment that its own
//! file gives again, or in faults with words.
//!
//! Called by a short deterministic run in the tests and by the target under `fuzz/`.

use super::Experiment;
use std::path::Path;

/// A folder that is not there: a fuzzer finds no files of the host.
const NOWHERE: &str = "/nowhere/at/all";

/// Reads `bytes` as an experiment file. Panics if a promise is broken.
pub fn fuzz_one(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    // Whole paths lead out of that folder.
    if text.contains('/') {
        return;
    }
    match Experiment::from_toml(text, Path::new(NOWHERE)) {
        Err(faults) => {
            assert!(!faults.0.is_empty(), "refused without a word");
            assert!(faults.0.iter().all(|f| !f.to_string().is_empty()));
        }
        Ok(e) => {
            assert!(!e.cells.is_empty() && !e.treatments.is_empty());
            let stored = e.to_toml();
            let again = Experiment::from_toml(&stored, Path::new(NOWHERE))
                .unwrap_or_else(|e| panic!("what it stores is refused: {e}\n{stored}"));
            assert_eq!(again.treatments, e.treatments);
            assert_eq!(again.cells.len(), e.cells.len());
            for (a, b) in again.cells.iter().zip(&e.cells) {
                assert_eq!((&a.cell, &a.specs), (&b.cell, &b.specs));
            }
        }
    }
}
