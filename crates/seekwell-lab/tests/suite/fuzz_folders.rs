//! The entry point for fuzzing the readers of results folders. It replaces one file of a folder
//! with arbitrary bytes. Every reader must then read the folder or reject it with a message.
//!
//! The tests call it in a short deterministic run, and the target under `fuzz/` calls it too.

use seekwell_lab::analysis::analyse;
use seekwell_lab::experiment::Experiment;
use seekwell_lab::import::{Input, Options, import};
use seekwell_lab::results::{Folder, environment, histograms, look, read};
use std::io;
use std::path::{Path, PathBuf};

const TABLE: &str =
    "scheduler,workload,run,value\nnoop,db,1,10\nnoop,db,2,11\nbfq,db,1,20\nbfq,db,2,21\n";
const BEGUN: &str = "devices = [\"hdd:hitachi-7k200\"]\nschedulers = [\"noop\"]\n\
    workloads = [\"hdparm\"]\n[experiment]\nname = \"x\"\n";

/// A complete and an unfinished results folder, with the names and contents of their files.
#[derive(Debug)]
pub struct Folders {
    files: Vec<(PathBuf, Vec<u8>)>,
}

/// Creates both folders in `dir`.
///
/// # Errors
/// Returns an error if the folders cannot be created there.
pub fn folders(dir: &Path) -> io::Result<Folders> {
    let other = |e: &dyn std::fmt::Display| io::Error::other(e.to_string());
    let input = Input::of_bytes("table.csv", TABLE.as_bytes().to_vec()).map_err(|e| other(&e))?;
    let results = import(&[input], &Options::default()).map_err(|e| other(&e))?;
    let (whole, begun) = (dir.join("whole"), dir.join("begun"));
    Folder::store(&whole, &results).map_err(|e| other(&e))?;
    let experiment = Experiment::from_toml(BEGUN, dir).map_err(|e| other(&e))?;
    drop(Folder::create(&begun, &experiment).map_err(|e| other(&e))?);
    let mut files = Vec::new();
    for folder in [whole, begun] {
        for e in std::fs::read_dir(folder)? {
            let path = e?.path();
            files.push((path.clone(), std::fs::read(path)?));
        }
    }
    files.sort();
    Ok(Folders { files })
}

impl Folders {
    /// Returns the files with their original contents.
    pub fn files(&self) -> &[(PathBuf, Vec<u8>)] {
        &self.files
    }

    /// Replaces the content of a file with `bytes`, reads its folder, and restores the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    ///
    /// # Panics
    /// Panics if the results that are read have an index out of range, or if the folder is rejected
    /// without a message.
    pub fn fuzz_one(&self, file: usize, bytes: &[u8]) -> io::Result<()> {
        let (path, whole) = &self.files[file % self.files.len()];
        std::fs::write(path, bytes)?;
        let folder = path.parent().unwrap_or(path);
        match read(folder) {
            Ok(results) => {
                for r in &results.runs {
                    assert!(r.key.cell < results.cells.len());
                    assert!(r.key.treatment < results.treatments.len());
                }
                let _ = analyse(&results);
                let _ = histograms(folder, &results, |run, _, _, _| {
                    assert!(run < results.runs.len());
                });
            }
            Err(e) => assert!(!e.to_string().is_empty()),
        }
        let _ = environment(folder);
        let _ = look(folder);
        std::fs::write(path, whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, RngCore};
    use seekwell_core::rng;

    #[test]
    fn mutated_results_folders_are_read_or_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        let folders = folders(dir.path()).expect("made");
        // Set SEEKWELL_FUZZ_ROUNDS=1000 for a longer run by hand.
        let more = std::env::var("SEEKWELL_FUZZ_ROUNDS").ok();
        let more: u32 = more.and_then(|n| n.parse().ok()).unwrap_or(1);
        let mut rng = rng::stream(1, "folders");
        assert!(folders.files().len() >= 8, "{:?}", folders.files().len());
        for i in 0..folders.files().len() {
            let whole = folders.files()[i].1.clone();
            folders.fuzz_one(i, &whole).expect("written");
            folders.fuzz_one(i, b"").expect("written");
            for _ in 0..40 * more {
                let mut bytes = whole.clone();
                for _ in 0..rng.random_range(1..4) {
                    let at = rng.random_range(0..=bytes.len());
                    match rng.random_range(0..4) {
                        0 => bytes.truncate(at),
                        1 if at < bytes.len() => bytes[at] = rng.next_u32() as u8,
                        2 => drop(bytes.splice(at..at, *b"99999999999999999999")),
                        _ => drop(bytes.splice(at..at, *b"null,[{\"")),
                    }
                }
                folders.fuzz_one(i, &bytes).expect("written");
            }
        }
    }
}
