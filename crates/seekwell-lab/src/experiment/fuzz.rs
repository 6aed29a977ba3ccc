//! Entry point for all fuzzers. Any bytes, read as an experiment file, must give faults with
//! messages, or an experiment whose own file gives the same experiment again.
//!
//! A short deterministic run in the tests calls it, and so does the target under `fuzz/`.

use super::Experiment;
use std::path::Path;

/// A folder that does not exist, so that a fuzzer cannot find files of the host.
const NOWHERE: &str = "/nowhere/at/all";

/// Reads `bytes` as an experiment file. Panics if a property is violated.
pub fn fuzz_one(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    // Absolute paths would leave that folder.
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
