//! `new`: a file that runs unchanged, and the schema of such files.

use crate::{good, seekwell};
use seekwell_lab::experiment::Experiment;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// An empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory");
    dir
}

#[test]
fn a_new_file_is_read_back_and_is_never_written_over() {
    let dir = directory("new");
    let file = dir.join("my lab.toml");
    let path = file.to_str().expect("UTF-8");
    let r = seekwell(&["new", "-o", path]);
    assert_eq!((r.code, &*r.out), (0, ""), "{}", r.err);
    assert!(r.err.contains("6 cells x 4 schedulers"), "{}", r.err);
    let text = std::fs::read_to_string(&file).expect("written");
    let e = Experiment::from_toml(&text, &dir).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((&*e.about.name, e.cells.len()), ("my lab", 6));
    // What somebody wrote into it stays.
    std::fs::write(&file, "mine").expect("written");
    let r = seekwell(&["new", "-o", path]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("exists already"), "{}", r.err);
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "mine");
    let said = good(&["new", "--quiet"]);
    assert_eq!(said, text.replace("my lab", "my-experiment"));
}

#[test]
fn what_it_begins_with_is_asked_for_and_checked() {
    let dir = directory("new-of");
    std::fs::write(dir.join("a.fio"), "[j]\nrw=read\nsize=1m\n").expect("written");
    let file = dir.join("x.toml");
    let path = file.to_str().expect("UTF-8");
    // Paths are relative to the new file.
    let words = [
        "new",
        "--quiet",
        "-o",
        path,
        "-d",
        "ssd:nvme-dc-2t",
        "-s",
        "none,cfq-3.4:slice_idle=0",
    ];
    let works = ["-w", "a.fio", "-w", "pgbench:clients=3,transactions=50"];
    good(&[&words[..], &works].concat());
    let text = std::fs::read_to_string(&file).expect("written");
    let e = Experiment::from_toml(&text, &dir).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<&str> = e.cells.iter().map(|c| &*c.cell.name).collect();
    assert_eq!(names, ["nvme-dc-2t / a", "nvme-dc-2t / pgbench"]);
    assert_eq!(e.treatments[1].label, "cfq-3.4:slice_idle=0");
    let bad = dir.join("y.toml");
    let path = bad.to_str().expect("UTF-8");
    let r = seekwell(&["new", "-o", path, "-d", "hdd:hitachi-7k20", "-w", "pgbensh"]);
    assert_eq!(r.code, 2);
    for word in ["hitachi-7k200", "pgbench"] {
        assert!(
            r.err.contains(&format!("did you mean `{word}`?")) || r.err.contains(word),
            "{}",
            r.err
        );
    }
    assert!(!Path::new(path).exists(), "nothing is written");
}

#[test]
fn the_schema_is_one_json_document() {
    let schema: Value = serde_json::from_str(&good(&["new", "--schema"])).expect("JSON");
    assert_eq!(schema, seekwell_lab::experiment::schema());
    let r = seekwell(&["new", "--schema", "-d", "x"]);
    assert_eq!(r.code, 2);
}
