//! `new` writes an experiment file that runs unchanged, the schema of such files, and templates in
//! the source tree.

use crate::{good, seekwell};
use seekwell_lab::experiment::Experiment;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Returns an empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory");
    dir
}

#[test]
fn new_experiment_file_is_readable_and_never_overwritten() {
    let dir = directory("new");
    let file = dir.join("my lab.toml");
    let path = file.to_str().expect("UTF-8");
    let r = seekwell(&["new", "-o", path]);
    assert_eq!((r.code, &*r.out), (0, ""), "{}", r.err);
    assert!(r.err.contains("6 cells x 4 schedulers"), "{}", r.err);
    let text = std::fs::read_to_string(&file).expect("written");
    let e = Experiment::from_toml(&text, &dir).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((&*e.about.name, e.cells.len()), ("my lab", 6));
    // A file that somebody has changed is kept.
    std::fs::write(&file, "mine").expect("written");
    let r = seekwell(&["new", "-o", path]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("exists already"), "{}", r.err);
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "mine");
    let said = good(&["new", "--quiet"]);
    assert_eq!(said, text.replace("my lab", "my-experiment"));
}

#[test]
fn new_experiment_contents_follow_the_options_and_are_checked() {
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
fn experiment_schema_is_one_json_document() {
    let schema: Value = serde_json::from_str(&good(&["new", "--schema"])).expect("JSON");
    assert_eq!(schema, seekwell_lab::experiment::schema());
    let r = seekwell(&["new", "--schema", "-d", "x"]);
    assert_eq!(r.code, 2);
}

/// Copies those files of the source tree that `new` reads into a directory for one test.
fn tree(name: &str) -> PathBuf {
    let dir = directory(name);
    for file in [
        "crates/seekwell-device/presets/hdd-hitachi-7k200.toml",
        "crates/seekwell-device/presets/ssd-s3700-100.toml",
        "crates/seekwell-device/src/embedded.rs",
        "crates/seekwell-lab/tests/alike.rs",
        "crates/seekwell-trace/src/formats/lines.rs",
        "crates/seekwell-trace/src/formats/mod.rs",
        "crates/seekwell-trace/src/registry.rs",
        "crates/seekwell-workload/src/declared.rs",
        "crates/seekwell-workload/src/registry.rs",
        "crates/seekwell-workload/src/scripts/mod.rs",
        "crates/seekwell-workload/tests/every.rs",
    ] {
        let to = dir.join(file);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a directory");
        std::fs::copy(crate::project(file), to).expect(file);
    }
    dir
}

/// Returns all files below a directory with their contents.
fn contents(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(&path).expect("text");
                all.insert(path, text);
            }
        }
    }
    all
}

#[test]
fn new_part_adds_one_file_and_its_list_entries() {
    let dir = tree("new-parts");
    let at = dir.to_str().expect("UTF-8");
    let preset = "crates/seekwell-device/presets/hdd-my-disk.toml";
    let flash = "crates/seekwell-device/presets/ssd-my-disk.toml";
    let script = "crates/seekwell-workload/src/scripts/mail_queue.rs";
    let format = "crates/seekwell-trace/src/formats/san_log.rs";
    for (words, file, holds, lists) in [
        (
            &["device", "my-disk"][..],
            preset,
            "name = \"my-disk\"",
            &[(
                "crates/seekwell-device/src/embedded.rs",
                "include_str!(\"../presets/hdd-my-disk.toml\"),",
            )][..],
        ),
        (
            &["device", "my-disk", "--like", "ssd:s3700-100"],
            flash,
            "source = \"estimate: as ssd:s3700-100\"",
            &[(
                "crates/seekwell-device/src/embedded.rs",
                "include_str!(\"../presets/ssd-my-disk.toml\"),",
            )],
        ),
        (
            &["workload", "mail-queue"],
            script,
            "name: \"mail-queue\"",
            &[
                (
                    "crates/seekwell-workload/src/registry.rs",
                    "\n    mail_queue\n}",
                ),
                (
                    "crates/seekwell-workload/src/scripts/mod.rs",
                    "pub mod mail_queue;",
                ),
                ("crates/seekwell-workload/src/declared.rs", "\"mail-queue\""),
                ("crates/seekwell-workload/tests/every.rs", "\"mail-queue\""),
                ("crates/seekwell-lab/tests/alike.rs", "\"mail-queue:"),
            ],
        ),
        (
            &["format", "san-log"],
            format,
            "name: \"san-log\"",
            &[
                (
                    "crates/seekwell-trace/src/registry.rs",
                    "crate::formats::san_log::INFO,\n    ];",
                ),
                (
                    "crates/seekwell-trace/src/formats/mod.rs",
                    "pub mod san_log;",
                ),
            ],
        ),
    ] {
        let words = [&["new"], words, &["--tree", at]].concat();
        let before = contents(&dir);
        let said = good(&words);
        assert!(said.starts_with(&format!("Written: {file}\n")), "{said}");
        assert!(
            said.contains("cargo test") && said.contains("docs/add-a-"),
            "{said}"
        );
        let after = contents(&dir);
        assert!(after[&dir.join(file)].contains(holds), "{file}: {holds}");
        for (list, line) in lists {
            assert!(said.contains(list), "{list}: {said}");
            assert!(after[&dir.join(list)].contains(line), "{list}: {line}");
        }
        let differ = after
            .iter()
            .filter(|(path, text)| before.get(*path) != Some(text));
        assert_eq!(differ.count(), lists.len() + 1, "{words:?}");
        // The second time, the command overwrites nothing.
        let r = seekwell(&words);
        assert_eq!((r.code, &*r.out), (2, ""), "{words:?}");
        assert!(r.err.contains("exists already"), "{}", r.err);
        assert_eq!(contents(&dir), after, "{words:?}");
    }
    // The new preset can be used as a device.
    good(&["devices", dir.join(preset).to_str().expect("UTF-8")]);
}

#[test]
fn rejected_new_part_leaves_the_tree_unchanged() {
    let dir = tree("no-new-parts");
    let at = dir.to_str().expect("UTF-8");
    let before = contents(&dir);
    for (words, tree, said) in [
        (&["device", "hitachi-7k500"][..], at, "already a device"),
        (&["device", "hdd:mine"], at, "lower-case letters"),
        (
            &["device", "mine", "--like", "hdd:hitachi-7k20"],
            at,
            "did you mean",
        ),
        (
            &["device", "mine", "--like", "./mine.toml"],
            at,
            "mine.toml",
        ),
        (&["device", "mine"], "/proc", "--tree"),
        (&["workload", "fs-mark"], at, "already a workload"),
        (&["workload", "fio"], at, "already a workload"),
        (&["workload", "Mail"], at, "lower-case letters"),
        (&["workload", "mine"], "/proc", "--tree"),
        (&["format", "csv"], at, "already a format"),
        (&["format", "lines"], at, "exists already"),
        (&["format", "2nd"], at, "lower-case letters"),
        (&["format", "mine"], "/proc", "--tree"),
    ] {
        let r = seekwell(&[&["new"], words, &["--tree", tree]].concat());
        assert_eq!((r.code, &*r.out), (2, ""), "{words:?}");
        assert!(r.err.contains(said), "{words:?}: {}", r.err);
        assert_eq!(contents(&dir), before, "{words:?}");
    }
    // If a file or the list in it is missing, the command stops before it writes anything.
    let every = dir.join("crates/seekwell-workload/tests/every.rs");
    std::fs::write(&every, "// empty\n").expect("written");
    let r = seekwell(&["new", "workload", "mine", "--tree", at]);
    assert_eq!((r.code, &*r.out), (2, ""));
    assert!(r.err.contains("docs/add-a-workload.md"), "{}", r.err);
    std::fs::remove_file(&every).expect("removed");
    let r = seekwell(&["new", "workload", "mine", "--tree", at]);
    assert_eq!((r.code, &*r.out), (2, ""));
    assert!(
        r.err.contains("every.rs") && r.err.contains("--tree"),
        "{}",
        r.err
    );
    let mut left = before;
    left.remove(&every);
    assert_eq!(contents(&dir), left);
}
