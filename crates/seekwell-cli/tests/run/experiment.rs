//! `compare FILE.toml`: plan, results, resuming, faults.

use crate::{good, scratch, seekwell};
use std::path::PathBuf;

const SMALL: &str = r#"
[experiment]
name = "two elevators"
seed = 3
repeats = 4
devices = ["hdd:hitachi-7k200"]
schedulers = ["noop", "cfq"]

[[workload]]
use = "fs-mark"
files = 5

[[workload]]
use = "seeker"
seconds = "1s"
"#;

fn new_results_folder(name: &str) -> (String, PathBuf) {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-results"));
    let _ = std::fs::remove_dir_all(&dir);
    (scratch(&format!("{name}.toml"), SMALL.as_bytes()), dir)
}

#[test]
fn experiment_file_is_planned_run_and_stored() {
    let (file, dir) = new_results_folder("small");
    let plan = good(&["compare", &file, "--dry-run"]);
    assert!(
        plan.contains(
            "two elevators: 2 cells x 2 schedulers = 4 runs per block, 4 blocks: 16 runs"
        ),
        "{plan}"
    );
    let to = dir.display().to_string();
    assert!(!dir.exists(), "a plan makes nothing");
    let text = good(&["compare", &file, "--results", &to, "-q"]);
    for word in ["fs-mark", "seeker", "Verdict:", "Results:", "4 blocks"] {
        assert!(text.contains(word), "{word}\n{text}");
    }
    assert!(dir.join("runs.parquet").exists());
    // A complete folder is neither resumed nor overwritten.
    let r = seekwell(&["compare", &file, "--results", &to, "-q"]);
    assert_eq!(r.code, 2, "{}", r.err);
    // In another folder and with another number of threads, the files are the same.
    let other = format!("{to}-2");
    let _ = std::fs::remove_dir_all(&other);
    good(&[
        "compare",
        &file,
        "--results",
        &other,
        "-q",
        "--threads",
        "3",
    ]);
    let bytes = |dir: &str| std::fs::read(PathBuf::from(dir).join("runs.parquet")).expect("runs");
    assert_eq!(bytes(&to), bytes(&other));
}

#[test]
fn faults_in_an_experiment_file_are_reported_with_line() {
    let file = scratch("faulty.toml", SMALL.replace("files", "fiels").as_bytes());
    let r = seekwell(&["compare", &file]);
    assert_eq!(r.code, 2, "{}", r.err);
    assert!(
        r.err.contains("faulty.toml: line ") && r.err.contains("files"),
        "{}",
        r.err
    );
    let r = seekwell(&["compare", &file, "-s", "noop"]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("cannot be used with"), "{}", r.err);
}

#[test]
fn test_without_results_is_reported_with_its_reason() {
    let text = "devices = [\"hdd:hitachi-7k200\"]\nschedulers = [\"noop\", \"none\"]\n\
                [experiment]\nname = \"none\"\nrepeats = 2\n\
                [[workload]]\nuse = \"fs-mark\"\nfiles = 2\n\
                [[workload]]\nuse = \"random-read\"\nsize = \"200g\"\nseconds = \"1s\"\n";
    let file = scratch("gave-none.toml", text.as_bytes());
    let to = new_results_folder("no-value").1.display().to_string();
    let r = seekwell(&["compare", &file, "--results", &to, "-q"]);
    assert_eq!(r.code, 4, "{}", r.err);
    assert!(r.out.contains("fs-mark"), "the others are given: {}", r.out);
    assert!(
        r.err
            .contains("random-read on hitachi-7k200: no run gave a value: ")
            && r.err.contains("no space left"),
        "{}",
        r.err
    );
}
