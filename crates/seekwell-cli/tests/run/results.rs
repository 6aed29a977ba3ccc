//! Results folders: listed, exported, and read by common Parquet readers.

use crate::{good, project, seekwell};
use seekwell_lab::conduct::{How, Simulated, conduct};
use seekwell_lab::experiment::{Experiment, Primary};
use seekwell_lab::results::{Folder, RunKey};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const TEXT: &str = "
device = 'hdd:hitachi-7k200'
schedulers = ['noop', 'cfq']
[experiment]
name = 'small, <and> \"quick\"'
repeats = '3..3'
[[workload]]
use = 'fs-mark'
files = [5, 10]
[[workload]]
use = 'fsync-latency'
";

fn experiment() -> Experiment {
    Experiment::from_toml(TEXT, Path::new("/nowhere")).unwrap_or_else(|e| panic!("{e}"))
}

/// Makes a directory with three results folders: a complete one, an incomplete one, and a broken
/// one.
fn folders(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    let e = experiment();
    let run = |to: &str, finish: bool| {
        let mut folder = Folder::create(&dir.join(to), &e).expect("made");
        let how = How::default();
        let conducted = conduct(&e, &Simulated::default(), &mut folder, &how).expect("conducted");
        let results = conducted.results(&e, folder.completed().expect("read"));
        assert!(folder.has(RunKey::default()));
        if finish {
            folder.finish(&results).expect("finished");
        }
    };
    run("whole", true);
    run("going", false);
    let broken = dir.join("broken");
    std::fs::create_dir(&broken).expect("made");
    for entry in std::fs::read_dir(dir.join("whole")).expect("listed") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), broken.join(entry.file_name())).expect("copied");
    }
    let runs = broken.join("runs.parquet");
    let bytes = std::fs::read(&runs).expect("read");
    std::fs::write(&runs, &bytes[..100]).expect("written");
    dir
}

fn at(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

#[test]
fn results_folders_are_listed_with_their_state() {
    let dir = folders("listed");
    let text = good(&["results", &dir.display().to_string()]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    for (line, name, state) in [
        (lines[1], "broken", "broken: "),
        (lines[2], "going", "can be resumed"),
        (lines[3], "whole", "complete"),
    ] {
        assert!(
            line.contains(&at(&dir, name)) && line.contains(state),
            "{line}"
        );
        assert!(
            line.contains("small, <and> \"quick\"") && line.contains(" 18 "),
            "{line}"
        );
    }
    assert!(
        lines[1].contains("runs.parquet") && lines[1].contains("100 bytes"),
        "{text}"
    );
    let json = good(&["results", &dir.display().to_string(), "--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let all = json["folders"].as_array().expect("a list");
    let states: Vec<&str> = all.iter().filter_map(|f| f["state"].as_str()).collect();
    assert_eq!(states, ["broken", "resumable", "complete"]);
    assert_eq!((&all[2]["cells"], &all[2]["runs"]), (&3.into(), &18.into()));
    let none = good(&[
        "results",
        &at(&dir, "whole/none/..").replace("whole/none/..", "."),
    ]);
    assert!(none.contains("whole"), "{none}");
    let empty = dir.join("empty");
    std::fs::create_dir(&empty).expect("made");
    let text = good(&["results", &empty.display().to_string()]);
    assert!(text.starts_with("No results folders in "), "{text}");
    let r = seekwell(&["results", &at(&dir, "nowhere")]);
    assert_eq!(r.code, 2, "{}", r.err);
}

#[test]
fn export_equals_the_measured_results() {
    let dir = folders("exported");
    let whole = at(&dir, "whole");
    let csv = good(&["export", &whole]);
    // The lines of each run have the workload's own metric and other metrics.
    assert!(
        csv.lines().count() > 18 && csv.starts_with("run,cell,device,"),
        "{csv}"
    );
    assert!(csv.contains("\"small, <and> \"\"quick\"\"\""), "{csv}");
    let file = at(&dir, "out.xml");
    assert_eq!(good(&["export", &whole, "-o", &file]), "");
    let xml = std::fs::read_to_string(&file).expect("written");
    assert!(
        xml.contains("<PhoronixTestSuite>") && xml.contains("small, &lt;and&gt;"),
        "{xml}"
    );
    let json = good(&["export", &whole, "--format", "json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(18));
    let markdown = good(&["export", &whole, "--format", "markdown"]);
    // There are three cells. One of them has three deciding metrics.
    assert_eq!(markdown.matches("\n### ").count(), 5, "{markdown}");
    for figure in ["fsync-latency, fsync", "fsync-latency, 99th percentile"] {
        assert!(markdown.contains(figure), "{figure}\n{markdown}");
    }
    assert!(markdown.contains("| reference |"), "{markdown}");
    // The message says that a folder is incomplete, or why it is broken. No file is overwritten.
    let going = at(&dir, "going");
    let r = seekwell(&["export", &going]);
    assert_eq!((r.code, r.out.as_str()), (0, csv.as_str()), "{}", r.err);
    assert!(r.err.contains("not complete: 18 runs so far"), "{}", r.err);
    let r = seekwell(&["export", &at(&dir, "broken")]);
    assert_eq!((r.code, &*r.out), (2, ""));
    assert!(
        r.err.contains("runs.parquet: is not in seekwell's format"),
        "{}",
        r.err
    );
    let r = seekwell(&["export", &whole, "-o", &at(&dir, "whole/results.json")]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("the same file as"), "{}", r.err);
    let r = seekwell(&["export", &whole, "--format", "cvs"]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("possible values: csv, json"), "{}", r.err);
}

/// A folder contains enough information to repeat each of its runs.
#[test]
fn every_run_can_be_repeated_from_its_results_folder() {
    let dir = folders("again");
    let whole = dir.join("whole");
    let results = seekwell_lab::results::read(&whole).expect("read");
    let mut specs = Vec::new();
    seekwell_lab::results::records(&whole, |run, spec, _| {
        specs.push((run, spec.expect("there").to_owned()));
    })
    .expect("read");
    assert_eq!(specs.len(), 18);
    for (run, spec) in specs.iter().step_by(5) {
        let run = &results.runs[*run];
        let spec: seekwell::RunSpec = serde_json::from_str(spec).expect("a specification");
        let record = seekwell::run(&spec, seekwell::Hooks::default()).expect("it runs");
        assert_eq!((record.seed, &record.spec_hash), (run.seed, &run.spec_hash));
        let mut value = record.metric.as_ref().expect("a metric").value;
        // Leave out the warm-up that the first block of the cell determined.
        let warm = results.cells[run.key.cell].warm_up.as_ref();
        if let Some(warm) = warm.filter(|w| w.seconds > 0) {
            let paced = Primary::Own.paced(&spec.workload).expect("timed");
            let pace = paced.read(&record).expect("seconds");
            value = pace.value(warm.drop()).expect("a rest").0;
        }
        assert_eq!(value.to_bits(), run.values[0].value.to_bits());
    }
}

/// Returns the Python interpreter that `make test-tools` sets up. Users who have the packages may
/// name another interpreter.
fn python() -> Option<String> {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../python/bin/python");
    let named = std::env::var("SEEKWELL_TEST_PYTHON").ok();
    let all = [
        named,
        Some(own.display().to_string()),
        Some("python3".to_owned()),
    ];
    let works = |python: &String| {
        let mut c = Command::new(python);
        let tried = c
            .args(["-c", "import pandas, pyarrow, polars, duckdb"])
            .output();
        tried.is_ok_and(|o| o.status.success())
    };
    all.into_iter().flatten().find(works)
}

#[test]
fn pandas_polars_and_duckdb_read_the_same_numbers() {
    let Some(python) = python() else {
        println!("skipped: no Python with pandas, pyarrow, polars and duckdb (make test-tools)");
        return;
    };
    let dir = folders("python");
    let (whole, csv) = (at(&dir, "whole"), at(&dir, "runs.csv"));
    good(&["export", &whole, "-o", &csv]);
    let script = project("scripts/read_results.py");
    let read = |csv: &str| Command::new(&python).args([&script, &whole, csv]).output();
    let told = read(&csv).expect("python runs");
    let err = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{err}");
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(out.contains("18 runs joined"), "{out}");
    // A change in the last digit must be detected.
    let text = std::fs::read_to_string(&csv).expect("read");
    let value = text
        .lines()
        .nth(1)
        .and_then(|l| l.split(',').nth_back(2))
        .expect("a value");
    let off = value.parse::<f64>().expect("a number").next_up();
    let changed = text.replacen(&format!(",{value},"), &format!(",{off:?},"), 1);
    assert_ne!(changed, text);
    std::fs::write(&csv, changed).expect("written");
    let told = read(&csv).expect("python runs");
    assert!(!told.status.success());
    let err = String::from_utf8_lossy(&told.stderr);
    assert!(err.contains("pandas: row 0, value"), "{err}");
}
