//! `seekwell defaults`: the table, one device, the page and the evidence.

use crate::{command, good, project, ran, seekwell};
use serde_json::Value;
use std::path::PathBuf;

fn words<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let line = text
        .lines()
        .find(|l| l.split_whitespace().next() == Some(name));
    line.unwrap_or_else(|| panic!("{name}\n{text}"))
        .split_whitespace()
        .collect()
}

#[test]
fn table_has_every_distribution_and_its_sources() {
    let out = ran(command(&["defaults"])
        .env("COLUMNS", "120")
        .output()
        .unwrap())
    .out;
    let head = words(&out, "DISTRIBUTION");
    assert_eq!(
        head[1..],
        ["hdd", "ssd", "nvme", "mmc", "vd", "vd-mq", "loop"]
    );
    for (name, hdd, nvme) in [
        ("upstream", "mq-deadline", "none"),
        ("debian", "mq-deadline", "none"),
        ("fedora", "bfq*", "none"),
        ("cachyos", "bfq*", "kyber*"),
    ] {
        let row = words(&out, name);
        assert_eq!((row[1], row[3]), (hdd, nvme), "{name}");
    }
    for source in [
        "60-ioschedulers.rules",
        "block/elevator.c",
        "40-elevator.rules",
    ] {
        assert!(out.contains(source), "{source}");
    }
    // On a narrow terminal, the columns continue below.
    let narrow = ran(command(&["defaults"])
        .env("COLUMNS", "80")
        .output()
        .unwrap())
    .out;
    let table = narrow.lines().take_while(|l| !l.contains("a file of the"));
    assert!(table.clone().all(|l| l.chars().count() <= 80), "{narrow}");
    assert_eq!(table.filter(|l| l.contains("DISTRIBUTION")).count(), 2);
}

#[test]
fn one_distribution_and_one_device_are_selected() {
    let out = good(&["defaults", "--distribution", "fedora"]);
    assert!(
        out.contains("fedora: Fedora") && !out.contains("cachyos"),
        "{out}"
    );
    let out = good(&["defaults", "--device", "ssd:nvme-gen4-tlc-2t"]);
    assert!(
        out.contains("NVMe drive with several hardware queues"),
        "{out}"
    );
    assert_eq!(words(&out, "cachyos")[1], "kyber*");
    assert_eq!(words(&out, "fedora")[1], "none");
    let doc: Value = serde_json::from_str(&good(&[
        "defaults",
        "--distribution",
        "pixel-8",
        "--device",
        "ssd:sata-tlc-1t",
        "--json",
    ]))
    .expect("JSON");
    assert_eq!(doc["device"]["class"], "ssd");
    let row = &doc["distributions"][0]["row"][0];
    assert_eq!(
        (&row["scheduler"], &row["tunables"]["slice_idle"]),
        (&"bfq".into(), &"0".into())
    );
    assert_eq!(doc["sources"][0]["id"], "pixel-8-init");
    assert_eq!(doc["sources"].as_array().map(Vec::len), Some(1));
    // fedora has several rows, of which one is about this class.
    let args = ["defaults", "--distribution", "fedora", "--json", "--device"];
    let doc = good(&[&args[..], &["ssd:nvme-gen4-tlc-2t"]].concat());
    let doc: Value = serde_json::from_str(&doc).expect("JSON");
    let rows = doc["distributions"][0]["row"].as_array().expect("rows");
    assert_eq!((rows.len(), &rows[0]["scheduler"]), (1, &"none".into()));
}

#[test]
fn unknown_names_get_a_suggestion() {
    for (args, meant) in [
        (["--distribution", "fedoar"], "did you mean `fedora`?"),
        (["--distribution", "centos"], "did you mean `rhel`?"),
        (
            ["--distribution", "slackware"],
            "there are upstream, debian",
        ),
        (["--device", "hdd:hitachi-7k20"], "`hdd:hitachi-7k200`"),
        (["--device", "raid:raid0-4x"], "belongs to no class"),
    ] {
        let r = seekwell(&["defaults", args[0], args[1]]);
        assert_eq!((r.code, &*r.out), (2, ""), "{args:?}: {}", r.err);
        assert!(r.err.contains(meant), "{args:?}: {}", r.err);
        assert_eq!(r.err.lines().count(), 1, "{}", r.err);
    }
}

#[test]
fn defaults_page_equals_the_table() {
    let page = std::fs::read_to_string(project("docs/defaults.md")).unwrap_or_default();
    assert!(
        page == good(&["defaults", "--markdown"]),
        "docs/defaults.md is not that of the program: run `make docs`"
    );
    for line in page
        .lines()
        .filter(|l| !l.contains("https://") && !l.starts_with('|'))
    {
        assert!(line.chars().count() <= 120, "{line}");
    }
}

/// The runs are stored per class. The second call reads them and prints the same.
#[test]
fn evidence_compares_each_choice_with_the_recommendation() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("defaults-evidence");
    let _ = std::fs::remove_dir_all(&dir);
    let folder = dir.display().to_string();
    let args = [
        "defaults",
        "--evidence",
        "--device",
        "hdd:hitachi-7k200",
        "-w",
        "fs-mark:files=5",
        "-w",
        "streams:size=16m",
        "--seeds",
        "3",
        "--results",
        &folder,
    ];
    let first = seekwell(&args);
    assert_eq!(first.code, 0, "{}", first.err);
    let out = &first.out;
    assert!(
        out.starts_with("hdd: rotating disk with one hardware queue"),
        "{out}"
    );
    assert!(out.contains("hdd:hitachi-7k200: "), "{out}");
    assert!(out.contains("AGAINST "), "{out}");
    assert!(
        out.contains("the recommendation") || out.contains("the kernel's choice"),
        "{out}"
    );
    assert!(words(out, "bfq").contains(&"fedora,"), "{out}");
    assert!(out.contains("Not found: ubuntu, arch."), "{out}");
    assert!(out.contains("Writeback throttling"), "{out}");
    assert!(good(&["results", &folder]).contains("complete"));
    let runs = || -> Vec<_> {
        let all = std::fs::read_dir(dir.join("hdd")).expect("a folder");
        let mut all: Vec<_> = all
            .map(|e| {
                let e = e.expect("an entry");
                let written = e.metadata().and_then(|m| m.modified());
                (e.file_name(), written.expect("metadata"))
            })
            .collect();
        all.sort();
        all
    };
    let before = runs();
    let second = seekwell(&args);
    assert_eq!((second.code, &second.out), (0, out), "{}", second.err);
    assert_eq!(before, runs(), "a finished run was repeated");
    let mut json = args.to_vec();
    json.push("--json");
    let doc: Value = serde_json::from_str(&good(&json)).expect("JSON");
    let e = &doc["evidence"][0];
    assert_eq!(
        (&e["class"], &e["device"]),
        (&"hdd".into(), &"hdd:hitachi-7k200".into())
    );
    let choices = e["choices"].as_array().expect("choices");
    let names: Vec<&str> = choices
        .iter()
        .filter_map(|c| c["scheduler"].as_str())
        .collect();
    assert!(
        names.contains(&"bfq") && names.contains(&"mq-deadline"),
        "{names:?}"
    );
    assert!(
        choices
            .iter()
            .all(|c| c["effect"].as_str().is_some_and(|w| !w.is_empty()))
    );
}
