//! Commands for scheduler authors, and those of the Python package.

use crate::{good, seekwell};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn tree(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../seekwell-sched/src");
    let to = dir.join("crates/seekwell-sched/src");
    std::fs::create_dir_all(&to).expect("a directory");
    std::fs::create_dir_all(dir.join("cases")).expect("a directory");
    for file in ["lib.rs", "registry.rs"] {
        std::fs::copy(source.join(file), to.join(file)).expect("copied");
    }
    dir
}

#[test]
fn new_scheduler_creates_its_files_once_and_overwrites_nothing() {
    let dir = tree("begun");
    let at = dir.to_str().expect("UTF-8");
    let said = good(&["new", "scheduler", "first-come", "--tree", at]);
    assert!(said.contains("cases/first-come.jsonl"), "{said}");
    let read = |file: &str| std::fs::read_to_string(dir.join(file)).expect(file);
    assert!(read("crates/seekwell-sched/src/first_come.rs").contains("name: \"first-come\""));
    assert!(read("crates/seekwell-sched/src/registry.rs").contains("crate::first_come::INFO,"));
    assert!(read("crates/seekwell-sched/src/lib.rs").contains("pub mod first_come;"));
    for line in read("cases/first-come.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        assert_eq!(case["elevator"], "first-come");
    }
    let lib = read("crates/seekwell-sched/src/lib.rs");
    let r = seekwell(&["new", "scheduler", "first-come", "--tree", at]);
    assert_eq!((r.code, &*r.out), (2, ""));
    assert!(r.err.contains("exists already"), "{}", r.err);
    assert_eq!(lib, read("crates/seekwell-sched/src/lib.rs"));
}

#[test]
fn new_scheduler_writes_nothing_without_a_tree_or_for_a_used_name() {
    let dir = tree("not-begun");
    let at = dir.to_str().expect("UTF-8");
    for (name, tree, said) in [
        ("cfq", at, "already"),
        ("No Name", at, "lower-case letters"),
        ("mine", "/proc", "--tree"),
    ] {
        let r = seekwell(&["new", "scheduler", name, "--tree", tree]);
        assert_eq!((r.code, &*r.out), (2, ""), "{name}");
        assert!(r.err.contains(said), "{name}: {}", r.err);
    }
    let left = std::fs::read_dir(dir.join("cases")).expect("there");
    assert_eq!(left.count(), 0);
}

#[test]
fn python_commands_print_how_to_install_the_package() {
    for command in ["tune", "sweep"] {
        for python in ["/nowhere/python", "/bin/false"] {
            let out = Command::new(env!("CARGO_BIN_EXE_seekwell"))
                .args([command, "--help"])
                .env("SEEKWELL_PYTHON", python)
                .output()
                .expect("it runs");
            let err = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.status.code(), Some(2), "{err}");
            assert!(err.contains("pip install ./python"), "{err}");
        }
    }
}

#[test]
fn arena_rejects_unknown_scheduler_or_trace() {
    let r = seekwell(&["arena", "mq-dedline"]);
    assert_eq!((r.code, &*r.out), (2, ""));
    assert!(r.err.contains("`mq-deadline`"), "{}", r.err);
    let r = seekwell(&["arena", "bfq", "--trace", "/nowhere/a.csv"]);
    assert_eq!((r.code, &*r.out), (2, ""));
    assert!(r.err.contains("/nowhere/a.csv"), "{}", r.err);
}

/// The page of an arena has marks for all schedulers, the same figures as the screen, and nothing
/// external.
#[test]
fn arena_page_shows_every_scheduler_and_the_printed_figures() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("arena.html");
    let ground = [
        "--device",
        "constant:depth=1,service_us=100",
        "--workload",
        "streams:size=16m,seconds=200ms,direct=yes",
        "--seeds",
        "2",
    ];
    let told = |more: &[&str]| {
        let mut all = vec!["arena", "mq-deadline", "--quiet"];
        all.extend(ground);
        all.extend(more);
        seekwell(&all)
    };
    let screen = told(&[]);
    let r = told(&["-o", file.to_str().expect("a path")]);
    assert_eq!((r.code, &*r.out), (0, ""), "{}", r.err);
    let page = std::fs::read_to_string(&file).expect("it is written");
    for word in [
        "mq-deadline among its rivals",
        "Where mq-deadline is furthest behind",
        "kyber",
    ] {
        assert!(page.contains(word), "{word}");
    }
    assert!(page.contains("--device constant:depth=1,service_us=100"));
    // Each scheduler of the layer has a mark in the picture and a line in the table.
    let line = |l: &&str| l.starts_with("mq-deadline ") || l.ends_with(" yes");
    for shown in screen.out.lines().filter(line) {
        let name = shown.split_whitespace().next().expect("a name");
        assert!(
            page.contains(&format!("<th scope=\"row\">{name}</th>")),
            "{name}"
        );
    }
    assert!(page.matches("<circle").count() >= 5);
}
