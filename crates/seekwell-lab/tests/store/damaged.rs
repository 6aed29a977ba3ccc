//! Tests folders that are damaged, incomplete, of another version, or not written by Seekwell.

use super::{add, experiment, keys, results};
use proptest::prelude::*;
use seekwell_core::spec::content_hash;
use seekwell_lab::results::{Folder, JOURNAL, State, look, read};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes a complete folder and an unfinished folder, with a few runs each.
fn complete_and_unfinished_folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let (going, whole) = (dir.path().join("going"), dir.path().join("whole"));
    let e = experiment(2);
    let mut folder = Folder::create(&going, &e).expect("made");
    keys(2, 2).into_iter().for_each(|k| add(&mut folder, k));
    drop(folder);
    let mut folder = Folder::create(&whole, &e).expect("made");
    keys(2, 2).into_iter().for_each(|k| add(&mut folder, k));
    let given = results(&e, &keys(2, 2));
    folder.finish(&given).expect("finished");
    (dir, going, whole)
}

#[test]
fn truncated_journal_tail_is_dropped_and_reported() {
    let (_dir, at, _) = complete_and_unfinished_folder();
    let path = at.join(JOURNAL);
    let mut bytes = std::fs::read(&path).expect("read");
    bytes.truncate(bytes.len() - 5);
    std::fs::write(&path, &bytes).expect("written");
    assert_eq!(read(&at).expect("read").runs.len(), 7);
    let folder = Folder::open(&at).expect("opened");
    assert_eq!(folder.completed().expect("read").len(), 7);
    let notes = folder.notes().join("\n");
    assert!(notes.contains("an incomplete run is made again"), "{notes}");
    drop(folder);
    let folder = Folder::open(&at).expect("opened");
    assert_eq!(folder.notes(), [""; 0], "mended");
}

#[test]
fn changed_journal_line_is_dropped_and_reported() {
    let (_dir, at, _) = complete_and_unfinished_folder();
    let path = at.join(JOURNAL);
    let mut bytes = std::fs::read(&path).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).expect("written");
    let folder = Folder::open(&at).expect("opened");
    assert_eq!(folder.completed().expect("read").len(), 7);
    let notes = folder.notes().join("\n");
    assert!(notes.contains("damaged lines: 1"), "{notes}");
}

fn error_text(path: &Path) -> String {
    read(path).expect_err("refused").to_string()
}

fn set(path: &Path, change: impl FnOnce(&mut Value)) {
    let text = std::fs::read(path).expect("read");
    let mut value: Value = serde_json::from_slice(&text).expect("JSON");
    change(&mut value);
    std::fs::write(path, value.to_string()).expect("written");
}

#[test]
fn results_with_a_newer_schema_are_rejected() {
    let (_dir, going, whole) = complete_and_unfinished_folder();
    for (folder, file) in [(&going, "experiment.json"), (&whole, "results.json")] {
        set(&folder.join(file), |v| {
            v["schema"] = json!(7);
            v["cells"] = json!("of another form");
        });
        let e = error_text(folder);
        assert!(
            e.contains(file) && e.contains("has schema 7 of a newer seekwell"),
            "{e}"
        );
        assert!(matches!(look(folder).state, State::Broken(_)));
    }
}

#[test]
fn every_kind_of_invalid_folder_has_its_message() {
    let (dir, going, whole) = complete_and_unfinished_folder();
    let e = error_text(&dir.path().join("none"));
    assert!(e.contains("does not exist"), "{e}");
    let e = error_text(&whole.join("results.json"));
    assert!(e.contains("is a file; name the results folder"), "{e}");
    let e = error_text(dir.path());
    assert!(e.contains("experiment.json: is missing"), "{e}");
    // The Parquet file is truncated, then missing, then a link.
    let runs = whole.join("runs.parquet");
    let bytes = std::fs::read(&runs).expect("read");
    std::fs::write(&runs, &bytes[..bytes.len() / 2]).expect("written");
    let e = error_text(&whole);
    assert!(
        e.contains("runs.parquet: is not in seekwell's format"),
        "{e}"
    );
    assert!(matches!(look(&whole).state, State::Broken(_)));
    std::fs::remove_file(&runs).expect("removed");
    assert!(error_text(&whole).contains("runs.parquet: is missing"));
    std::os::unix::fs::symlink("/dev/zero", &runs).expect("linked");
    assert!(error_text(&whole).contains("runs.parquet: is a symbolic link"));
    let journal = going.join(JOURNAL);
    std::fs::remove_file(&journal).expect("removed");
    std::os::unix::fs::symlink("/etc/hostname", &journal).expect("linked");
    assert!(error_text(&going).contains("journal: is a symbolic link"));
    let e = Folder::open(&going)
        .map(|_| ())
        .expect_err("refused")
        .to_string();
    assert!(e.contains("journal: is a symbolic link"), "{e}");
    std::fs::remove_file(&journal).expect("removed");
    std::fs::write(&journal, "#!/bin/sh\n").expect("written");
    assert!(error_text(&going).contains("is not a seekwell journal"));
    // A file that claims to have a size of one terabyte is not read.
    let big = std::fs::File::create(going.join("experiment.json")).expect("made");
    big.set_len(1 << 40).expect("sparse");
    assert!(error_text(&going).contains("is larger than"));
}

/// If a file were written through a link, the target of the link would change.
#[test]
fn symbolic_links_in_a_folder_are_not_followed() {
    let (dir, going, _) = complete_and_unfinished_folder();
    let victim = dir.path().join("victim");
    for name in ["runs.parquet", "histograms.hlog", "results.json"] {
        std::fs::write(&victim, "mine").expect("written");
        std::os::unix::fs::symlink(&victim, going.join(name)).expect("linked");
        let mut folder = match Folder::open(&going) {
            Ok(folder) => folder,
            // An existing results.json means that the folder is complete.
            Err(_) if name == "results.json" => continue,
            Err(e) => panic!("{name}: {e}"),
        };
        let given = results(&experiment(2), &keys(2, 2));
        let e = folder.finish(&given).map_err(|e| e.to_string());
        assert!(name == "results.json" || e.is_err(), "{name}");
        assert_eq!(std::fs::read(&victim).expect("read"), b"mine", "{name}");
        drop(folder);
        std::fs::remove_file(going.join(name)).expect("removed");
    }
}

/// Updates a file's checksum in results.json, as an attacker would.
fn update_checksum(folder: &Path, name: &str) {
    let path = folder.join(name);
    let bytes = std::fs::metadata(&path).expect("there").len();
    let hash = content_hash(std::fs::File::open(&path).expect("opened")).expect("read");
    set(&folder.join("results.json"), |v| {
        v["files"][name] = json!({"bytes": bytes, "sha256": hash});
    });
}

#[test]
fn foreign_parquet_files_are_rejected() {
    let (_dir, _, whole) = complete_and_unfinished_folder();
    let runs = whole.join("runs.parquet");
    std::fs::copy(whole.join("series.parquet"), &runs).expect("copied");
    assert!(error_text(&whole).contains("runs.parquet: is not in seekwell's format"));
    update_checksum(&whole, "runs.parquet");
    let e = error_text(&whole);
    assert!(e.contains("not one of a results folder"), "{e}");
    std::fs::write(&runs, "PAR1 nothing PAR1").expect("written");
    update_checksum(&whole, "runs.parquet");
    assert!(error_text(&whole).contains("is not in seekwell's format"));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("listed") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

fn mutated(bytes: &mut Vec<u8>, at: f64, what: u8, kind: u8) {
    let place = ((bytes.len() as f64 * at) as usize).min(bytes.len().saturating_sub(1));
    match kind % 4 {
        0 => bytes.truncate(place),
        1 => bytes.insert(place, what),
        _ if bytes.is_empty() => bytes.push(what),
        2 => bytes[place] ^= what | 1,
        _ => {
            let end = (place + 8).min(bytes.len());
            bytes[place..end].fill(what);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]
    /// Changes a file of a folder at any place, with and without a corrected checksum. Reading must
    /// give an error or results, and the other files must stay unchanged.
    #[test]
    fn any_changed_file_is_read_or_rejected_and_others_stay_unchanged(
        changes in proptest::collection::vec((0.0f64..1.0, any::<u8>(), any::<u8>()), 1..3),
        late in any::<bool>(),
    ) {
        let (dir, going, whole) = complete_and_unfinished_folder();
        for folder in [&going, &whole] {
            let names: Vec<_> = std::fs::read_dir(folder)
                .expect("listed")
                .map(|e| e.expect("an entry").file_name().into_string().expect("UTF-8"))
                .collect();
            for name in names {
                let at = dir.path().join("changed");
                copy(folder, &at);
                let path = at.join(&name);
                let mut bytes = std::fs::read(&path).expect("read");
                for (place, what, kind) in &changes {
                    // Parquet stores its directory at the end of the file.
                    let place = if late { 1.0 - place * place * 0.2 } else { *place };
                    mutated(&mut bytes, place, *what, *kind);
                }
                std::fs::write(&path, &bytes).expect("written");
                if folder == &whole && name != "results.json" {
                    update_checksum(&at, &name);
                }
                let listed = look(&at);
                let read = read(&at);
                if name.ends_with(".hlog") || name == "environment.json" {
                    prop_assert!(read.is_ok(), "{name}: {:?}", read.err());
                    prop_assert!(!matches!(listed.state, State::Broken(_)) || folder == &whole);
                }
                let mut rows = 0u64;
                let _ = seekwell_lab::results::operations(&at, |_, o| rows ^= o.count);
                let _ = seekwell_lab::results::series(&at, |_, _, _, s| rows ^= s.1);
                let _ = seekwell_lab::results::records(&at, |run, _, _| rows ^= run as u64);
                if let Ok(opened) = Folder::open(&at) {
                    let _ = opened.read();
                }
                std::fs::remove_dir_all(&at).expect("removed");
            }
        }
    }
}

const SMALL: &str = "SEEKWELL_TEST_SMALL_DISK";

/// Uses a file system of 400 kB in a separate namespace.
#[test]
fn full_disk_loses_no_finished_run() {
    if let Some(dir) = std::env::var_os(SMALL) {
        return on_a_full_disk(Path::new(&dir));
    }
    let dir = tempfile::tempdir().expect("a directory");
    let script = "mount -t tmpfs -o size=400k none \"$1\" || exit 99; exec \"$2\" --exact \
                  store::damaged::full_disk_loses_no_finished_run --nocapture";
    let test = std::env::current_exe().expect("this");
    let ran = Command::new("unshare")
        .args(["-rm", "sh", "-c", script, "sh"])
        .arg(dir.path())
        .arg(&test)
        .env(SMALL, dir.path())
        .output();
    let Ok(ran) = ran else {
        println!("skipped: no unshare (util-linux)");
        return;
    };
    let said = String::from_utf8_lossy(&ran.stderr);
    let no_namespace = ran.status.code() == Some(99) || said.starts_with("unshare:");
    if no_namespace {
        println!("skipped: no file system can be mounted here: {said}");
        return;
    }
    let out = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{out}{said}");
    assert!(out.contains("1 passed"), "{out}");
}

fn on_a_full_disk(dir: &Path) {
    let (at, ballast) = (dir.join("r"), dir.join("ballast"));
    let e = experiment(40);
    let mut folder = Folder::create(&at, &e).expect("made");
    std::fs::write(&ballast, vec![1; 150_000]).expect("written");
    let all = keys(40, 3);
    let (mut stored, mut full) = (0, None);
    for key in &all {
        let run = super::run(*key);
        let record = super::record(*key);
        let ended = seekwell_lab::results::Ended {
            run: &run,
            spec: &super::spec("noop"),
            record: Some(&record),
        };
        match folder.add(&ended) {
            Ok(()) => stored += 1,
            Err(e) => {
                full = Some(e.to_string());
                break;
            }
        }
    }
    let full = full.expect("it filled");
    assert!(full.contains("No space left"), "{full}");
    assert!(
        full.contains(&format!("{stored} runs are stored")),
        "{full}"
    );
    assert_eq!(read(&at).expect("readable").runs.len(), stored);
    let given = results(&e, &all[..stored]);
    assert!(folder.finish(&given).is_err(), "no room for the files");
    drop(folder);
    assert_eq!(read(&at).expect("readable").runs.len(), stored);
    assert!(!at.join("results.json").exists(), "not complete");
    std::fs::remove_file(&ballast).expect("removed");
    let mut folder = Folder::resume(&at, &e).expect("resumed");
    assert_eq!(folder.completed().expect("read").len(), stored);
    folder.finish(&given).expect("room now");
    assert_eq!(read(&at).expect("read"), given);
}
