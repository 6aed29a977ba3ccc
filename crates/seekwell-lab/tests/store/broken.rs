//! Folders that are damaged, half there, of another version or somebody else's.

use crate::{add, experiment, keys, results};
use seekwell_lab::results::{Folder, JOURNAL, read};
use std::path::Path;

/// A complete folder and one that goes on, each of a few runs.
fn both(dir: &Path) {
    let e = experiment(2);
    let mut folder = Folder::create(&dir.join("going"), &e).expect("made");
    keys(2, 2).into_iter().for_each(|k| add(&mut folder, k));
    drop(folder);
    let mut folder = Folder::create(&dir.join("whole"), &e).expect("made");
    keys(2, 2).into_iter().for_each(|k| add(&mut folder, k));
    folder.finish(&results(&e, &keys(2, 2))).expect("finished");
}

#[test]
fn a_tail_is_dropped_and_said() {
    let dir = tempfile::tempdir().expect("a directory");
    both(dir.path());
    let at = dir.path().join("going");
    let path = at.join(JOURNAL);
    let mut bytes = std::fs::read(&path).expect("read");
    bytes.truncate(bytes.len() - 5);
    std::fs::write(&path, &bytes).expect("written");
    assert_eq!(read(&at).expect("read").runs.len(), 7);
    let folder = Folder::open(&at).expect("opened");
    assert_eq!(folder.completed().len(), 7);
    let notes = folder.notes().join("\n");
    assert!(notes.contains("the run that was being stored"), "{notes}");
    drop(folder);
    let folder = Folder::open(&at).expect("opened");
    assert_eq!(folder.notes(), [""; 0], "mended");
}
