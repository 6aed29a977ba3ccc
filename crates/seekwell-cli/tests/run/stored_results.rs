//! With `--results`, the runs of a command line are stored like those of an experiment file.

use crate::{command, good, scratch, seekwell};
use seekwell_lab::experiment::Experiment;
use seekwell_lab::results::read;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

fn new_results_folder(name: &str) -> (String, PathBuf) {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    (dir.display().to_string(), dir)
}

fn bytes(dir: &Path, file: &str) -> Vec<u8> {
    std::fs::read(dir.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

const WORDS: [&str; 6] = [
    "-s",
    "noop,cfq",
    "-w",
    "fs-mark:files=5",
    "-w",
    "seeker:seconds=1s",
];

#[test]
fn stored_results_equal_printed_ones_and_include_an_equivalent_experiment_file() {
    let (to, dir) = new_results_folder("kept-compare");
    let words = [
        &["compare", "-d", "hdd:hitachi-7k200", "--seeds", "3", "-q"][..],
        &WORDS,
    ]
    .concat();
    let doc = good(&[&words[..], &["--json", "--results", &to]].concat());
    let doc: Value = serde_json::from_str(&doc).expect("JSON");
    let results = read(&dir).expect("complete");
    assert_eq!((results.cells.len(), results.runs.len()), (2, 2 * 2 * 3));
    let told = serde_json::to_value(seekwell_lab::analysis::analyse(&results)).expect("JSON");
    assert_eq!(doc["analysis"], told, "what is printed is what is kept");
    let text = std::fs::read_to_string(dir.join("experiment.toml")).expect("kept");
    let e = Experiment::from_toml(&text, Path::new("/nowhere")).unwrap_or_else(|e| panic!("{e}"));
    let (name, labels): (Vec<&str>, Vec<&str>) = (
        e.cells.iter().map(|c| &*c.cell.workload).collect(),
        e.treatments.iter().map(|t| &*t.label).collect(),
    );
    assert_eq!((name.len(), labels), (2, vec!["noop", "cfq"]));
    // The runs of the stored experiment file must be the same as these.
    for (plan, cell) in e.cells.iter().zip(0..) {
        for (spec, treatment) in plan.specs.iter().zip(0..) {
            let run = results
                .runs
                .iter()
                .find(|r| (r.key.cell, r.key.treatment, r.key.block) == (cell, treatment, 0));
            assert_eq!(
                run.expect("there").spec_hash,
                spec.hash(),
                "{}",
                plan.cell.name
            );
        }
    }
    // The number of threads does not change the bytes. A complete folder is never overwritten.
    let (other, again) = new_results_folder("kept-compare-threads");
    good(&[&words[..], &["--results", &other, "--threads", "3"]].concat());
    assert_eq!(bytes(&dir, "runs.parquet"), bytes(&again, "runs.parquet"));
    let r = seekwell(&[&words[..], &["--results", &to]].concat());
    assert_eq!(r.code, 2, "{}", r.err);
    assert!(r.err.contains(&to), "{}", r.err);
    let same = good(&["diff", &to, &other]);
    assert!(same.contains("0 worse, 0 better"), "{same}");
}

#[test]
fn run_and_replay_store_results_and_real_runs_reject_the_option() {
    let (to, dir) = new_results_folder("kept-run");
    // Here the number of seeds is the default.
    let words = [
        "run",
        "fs-mark:files=5",
        "-s",
        "noop,cfq",
        "-q",
        "--results",
        &to,
    ];
    let ran = command(&words).output().expect("the binary runs");
    assert!(ran.status.success(), "{ran:?}");
    let runs = read(&dir).expect("complete").runs.len();
    assert!((6..=20).contains(&runs), "3 to 10 seeds, {runs} runs");
    assert!(good(&["results", &to]).contains("complete"));
    let mut trace = "t_ns,op,sector,sectors\n".to_owned();
    for i in 0..50 {
        trace += &format!("{},R,{},8\n", i * 2_000_000, (i * 7_919) % 10_000 * 8);
    }
    let file = scratch("kept.csv", trace.as_bytes());
    let (to, dir) = new_results_folder("kept-replay");
    good(&[
        "replay",
        &file,
        "-s",
        "noop,cfq",
        "--seeds",
        "3",
        "-q",
        "--results",
        &to,
    ]);
    assert_eq!(read(&dir).expect("complete").runs.len(), 6);
    let csv = good(&["export", &to]);
    assert!(
        csv.contains("block io mean") || csv.contains("block read mean"),
        "{csv}"
    );
    let r = seekwell(&["run", "fs-mark", "--dir", "/tmp", "--results", &to]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("cannot be used with"), "{}", r.err);
}

#[test]
fn killed_command_resumes_from_its_results() {
    let (whole, whole_dir) = new_results_folder("kept-whole");
    let (broken, broken_dir) = new_results_folder("kept-broken");
    let words = |to: &str| -> Vec<String> {
        let words = [
            "compare",
            "-d",
            "hdd:hitachi-7k200",
            "--seeds",
            "12",
            "-q",
            "--results",
            to,
        ];
        words
            .iter()
            .chain(&WORDS)
            .map(|w| (*w).to_owned())
            .collect()
    };
    let all = words(&whole);
    good(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let all = words(&broken);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut c = command(&all);
    c.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = c.spawn().expect("the binary runs");
    let journal = broken_dir.join("journal");
    let long = || journal.metadata().map_or(0, |m| m.len()) > 12_000;
    while !long() && child.try_wait().expect("a child").is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("killed");
    child.wait().expect("waited for");
    if !broken_dir.join("results.json").exists() {
        // Another command line cannot use the same folder.
        let r = seekwell(&[
            "compare",
            "-w",
            "hdparm",
            "--seeds",
            "12",
            "--results",
            &broken,
        ]);
        assert_eq!(r.code, 2, "{}", r.err);
        good(&all);
    }
    for file in [
        "runs.parquet",
        "series.parquet",
        "operations.parquet",
        "histograms.hlog",
    ] {
        assert_eq!(bytes(&whole_dir, file), bytes(&broken_dir, file), "{file}");
    }
}
