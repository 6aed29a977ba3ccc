//! The entry point for fuzzing experiment files. For any bytes, the reader must either report
//! faults with messages, or return an experiment. If that experiment is written and read again, the
//! result must be the same.
//!
//! The tests call it in a short deterministic run, and the target under `fuzz/` calls it too.

use seekwell_lab::experiment::Experiment;
use std::path::Path;

/// A folder that does not exist, so that the fuzzer cannot find files of the host.
const NOWHERE: &str = "/nowhere/at/all";

/// Reads `bytes` as an experiment file. Panics if the reader violates one of the properties.
pub fn fuzz_one(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    // An absolute path could refer to a file outside that folder.
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
