//! Runs `import`, `diff` and `machines`. Results of other programs are read and analysed.
//! Unreadable files are refused with a reason.

use crate::{good, project, scratch, seekwell};
use serde_json::Value;

/// Returns the path of a sample that the importers' own tests read too.
fn sample(name: &str) -> String {
    project(&format!("crates/seekwell-lab/tests/imported/{name}"))
}

/// Imports files and returns the output; notes on stderr are ignored.
fn imported(names: &[&str], more: &[&str]) -> String {
    let files: Vec<String> = names.iter().map(|n| sample(n)).collect();
    let mut args = vec!["import", "-q"];
    args.extend(files.iter().map(String::as_str));
    args.extend(more);
    good(&args)
}

#[test]
fn every_import_format_is_read_and_named_in_the_header() {
    for (names, head) in [
        (
            &["pts/composite.xml"][..],
            "(pts-xml): 3 cells, 2 treatments, 13 runs",
        ),
        (
            &["pts/result.csv"],
            "(openbenchmarking-csv): 2 cells, 2 treatments",
        ),
        (
            &["pts/raw.csv"],
            "(openbenchmarking-raw-csv): 2 cells, 2 treatments, 11 runs",
        ),
        (
            &["pts/result.json"],
            "(openbenchmarking-json): 1 cell, 2 treatments, 6 runs",
        ),
        (
            &["pts/result-2019.json"],
            "(openbenchmarking-json): 1 cell, 2 treatments, 6 runs",
        ),
        (
            &[
                "fio/none-1.json",
                "fio/none-2.json",
                "fio/mq-deadline-1.json",
                "fio/mq-deadline-2.json",
            ],
            "(fio): 1 cell, 2 treatments, 4 runs",
        ),
        (&["fio/bins.json"], "(fio): 1 cell, 1 treatment, 1 run\n"),
        (
            &["pgbench/pgbench-1.txt", "pgbench/pgbench-2.txt"],
            "(pgbench): 1 cell, 1 treatment, 2 runs",
        ),
        (
            &["pgbench/txn.710", "pgbench/txn.710.1"],
            "(pgbench-log): 1 cell, 1 treatment, 1 run\n",
        ),
        (
            &["sysbench/sysbench-fileio-1.txt"],
            "(sysbench): 1 cell, 1 treatment, 1 run\n",
        ),
        (
            &["hyperfine/hyperfine.json"],
            "(hyperfine): 1 cell, 2 treatments, 10 runs",
        ),
        (
            &["published/androbench-moto-g.csv"],
            "(csv): 4 cells, 9 treatments, 36 published figures",
        ),
    ] {
        let text = imported(names, &[]);
        let first = text.lines().next().unwrap_or_default().to_owned() + "\n";
        assert!(first.contains(head), "{names:?}: {first}");
        assert!(text.contains("WORKLOAD"), "{text}");
    }
    // Every format is listed. (The format of a page that was saved as text has its own test, with
    // the published table.)
    let list = good(&["import", "--list"]);
    for f in seekwell_lab::import::formats() {
        assert!(list.contains(f.name), "{}", f.name);
    }
}

#[test]
fn published_figures_are_tabulated_with_significance() {
    let text = imported(&["published/phoronix-linux-3.4.csv"], &["--details"]);
    assert!(
        text.contains("59 cells, 3 treatments, 176 published figures"),
        "{text}"
    );
    let line = text
        .lines()
        .find(|l| l.contains("blogbench 1.0: Write"))
        .expect("a line");
    let words: Vec<&str> = line.split_whitespace().collect();
    // The line contains the published mean of cfq, a significant loss of noop, and a loss of
    // deadline that is not significant.
    assert!(
        words.contains(&"923") && words.windows(2).any(|w| w == ["-18", "!"]),
        "{line}"
    );
    assert!(words.windows(2).any(|w| w == ["-4.6", "?"]), "{line}");
    // In the JSON document, few of all comparisons are significant.
    let json = imported(&["published/phoronix-linux-3.4.csv"], &["--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let cells = json["analysis"]["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 59);
    let pairs = cells
        .iter()
        .flat_map(|c| c["pairs"].as_array().expect("pairs"));
    let verdicts: Vec<&str> = pairs.filter_map(|p| p["verdict"].as_str()).collect();
    let holds = |v: &&&str| {
        matches!(
            **v,
            "better" | "worse" | "better_maybe_small" | "worse_maybe_small"
        )
    };
    let n = verdicts.iter().filter(holds).count();
    assert!(n > 0 && n * 4 < verdicts.len(), "{n} of {}", verdicts.len());
}

#[test]
fn import_is_stored_once_and_read_like_own_results() {
    let dir = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("imported-kept");
    let _ = std::fs::remove_dir_all(&dir);
    let to = dir.display().to_string();
    let text = imported(&["hyperfine/hyperfine.json"], &["-o", &to]);
    let csv = good(&["export", &to]);
    assert!(csv.lines().count() >= 11, "{csv}");
    let listed = good(&["results", &to]);
    assert!(listed.contains("complete"), "{listed}");
    let file = sample("hyperfine/hyperfine.json");
    let r = seekwell(&["import", &file, "-o", &to]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("never overwritten"), "{}", r.err);
    assert!(!text.is_empty());
}

#[test]
fn invalid_result_files_are_rejected_with_place() {
    let cut = std::fs::read(sample("pts/composite.xml")).expect("a sample");
    let bomb = "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;'>]>\
                <PhoronixTestSuite><Generated><Title>&b;</Title></Generated></PhoronixTestSuite>";
    for (name, bytes, words) in [
        ("plain.txt", &b"hello\n"[..], "none of the formats"),
        ("empty.json", b"", "empty"),
        ("cut.xml", &cut[..400], "line 11"),
        ("bomb.xml", bomb.as_bytes(), "bomb.xml"),
        (
            "broken.json",
            b"{\"fio version\": \"fio-3.3\", \"jobs\": [",
            "broken.json",
        ),
        (
            "broken.csv",
            b"device,scheduler,workload,run,value\nd,s,w,1,fast\n",
            "line 2",
        ),
        ("binary.xml", b"\xff\xfe\x00\x01", "binary.xml"),
    ] {
        let file = scratch(name, bytes);
        let r = seekwell(&["import", &file]);
        assert_eq!((r.code, &*r.out), (2, ""), "{name}: {}", r.err);
        assert!(
            r.err.starts_with("error: ") && r.err.contains(words),
            "{name}: {}",
            r.err
        );
    }
    let r = seekwell(&["import", "nowhere.xml"]);
    assert_eq!(r.code, 2);
    assert!(
        r.err.contains("nowhere.xml") && r.err.contains("No such file"),
        "{}",
        r.err
    );
    let good_one = sample("pts/raw.csv");
    let r = seekwell(&["import", &good_one, "--format", "pts-xlm"]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("pts-xml"), "the nearest: {}", r.err);
}

/// Makes a generic CSV with the runs of two schedulers on one day.
fn day(name: &str, factor: f64, slower: f64) -> String {
    let mut text = "device,scheduler,workload,run,value,unit,better\n".to_owned();
    for run in 0..12 {
        let noise = 1.0 + 0.002 * f64::from(run % 5 - 2);
        let (none, bfq) = (1_000.0 * factor * noise, 900.0 * factor * slower / noise);
        text += &format!("disk,none,oltp,{run},{none:.2},tps,higher\n");
        text += &format!("disk,bfq,oltp,{run},{bfq:.2},tps,higher\n");
    }
    scratch(name, text.as_bytes())
}

#[test]
fn diff_exit_code_reports_a_regression() {
    let (monday, slow, worse) = (
        day("monday.csv", 1.0, 1.0),
        day("tuesday.csv", 0.9, 1.0),
        day("wednesday.csv", 0.9, 0.8),
    );
    // For the same file, and for a slower day, no difference exceeds that of the control.
    for other in [&monday, &slow] {
        let r = seekwell(&["diff", &monday, other, "-q"]);
        assert_eq!(r.code, 0, "{}{}", r.out, r.err);
        assert!(r.out.contains("0 worse, 0 better"), "{}", r.out);
    }
    let r = seekwell(&["diff", &monday, &worse, "-q"]);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    assert!(
        r.out.contains("1 worse") && r.out.contains("bfq"),
        "{}",
        r.out
    );
    let r = seekwell(&["diff", &worse, &monday, "-q"]);
    assert_eq!(r.code, 0, "better is no failure: {}", r.out);
    assert!(r.out.contains("1 better"), "{}", r.out);
    let json = seekwell(&["diff", &monday, &worse, "--json", "-q"]);
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(json["diff"]["worse"], 1);
    let r = seekwell(&["diff", &monday, "nowhere"]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("nowhere"), "{}", r.err);
    let r = seekwell(&["diff", &monday, &worse, "--control", "nome"]);
    assert_eq!(r.code, 2, "{}", r.out);
    assert!(r.err.contains("none"), "the nearest: {}", r.err);
}

#[test]
fn machines_are_listed_described_and_suggested() {
    let list = good(&["machines"]);
    for name in [
        "laptop",
        "server",
        "phone",
        "raspberry-pi",
        "cloud-vm",
        "mysql-2008",
        "phoronix-2012",
        "moto-g-2014",
        "postgres-2015",
    ] {
        assert!(list.contains(name), "{name}\n{list}");
        let one = good(&["machines", name]);
        assert!(one.starts_with(name) && one.contains("memory"), "{one}");
    }
    let r = seekwell(&["machines", "lapto"]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("did you mean `laptop`"), "{}", r.err);
    let json: Value = serde_json::from_str(&good(&["machines", "--json"])).expect("JSON");
    assert!(json.to_string().contains("raspberry-pi"), "{json}");
}
