//! `seekwell predict` without a disk of its own: the record, and paths and results that it refuses.

use super::*;
use serde_json::Value;

/// Runs `predict --record` with a record of these lines.
fn record(name: &str, lines: &str, json: bool) -> Ran {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory");
    if !lines.is_empty() {
        std::fs::write(dir.join("predictions.jsonl"), lines).expect("written");
    }
    let args: &[&str] = match json {
        true => &["predict", "--record", "--json"],
        false => &["predict", "--record"],
    };
    let o = command(args).env("SEEKWELL_STATE_DIR", &dir).output();
    ran(o.expect("it runs"))
}

fn line(probability: f64, shown: &str, outcome: &str) -> String {
    format!(
        r#"{{"version":1,"unix_s":1,"seekwell":"0.1.0","kernel":"6.18","device":"SATA SSD",
        "preset":"ssd:sata-tlc-1t","workload":"fs-mark:files=5","metric":"files","one":"bfq",
        "other":"none","predicted":{{"times":1.2,"interval":[1.1,1.3]}},"claim":"ahead",
        "probability":{probability},"lines":0,"live":{{"times":1.1,"interval":[1.05,1.15]}},
        "shown":{shown},"outcome":"{outcome}"}}"#
    )
    .replace('\n', " ")
        + "\n"
}

#[test]
fn empty_record_says_how_to_verify_a_prediction() {
    let r = record("predict-empty", "", false);
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(r.out.contains("--verify"), "{}", r.out);
}

#[test]
fn record_shows_scores_beside_the_baseline_and_counts_broken_lines() {
    let lines = line(0.8, "\"ahead\"", "right") + &line(0.6, "\"level\"", "wrong") + "{\"cut\n";
    let r = record("predict-scores", &lines, true);
    let doc: Value = serde_json::from_str(&r.out).expect("JSON");
    assert_eq!(doc["broken"], 1);
    let own = &doc["scores"]["predictions"];
    assert_eq!(
        (own["right"].as_u64(), own["tested"].as_u64()),
        (Some(1), Some(2))
    );
    let brier = own["brier"].as_f64().expect("a number");
    assert!((brier - 0.2).abs() < 1e-9, "{brier}");
    assert_eq!(doc["scores"]["baseline"]["right"], 1);
    let r = record("predict-text", &lines, false);
    for says in [
        "BRIER",
        "baseline: no difference",
        "1 of 2",
        "1 lines of the record",
    ] {
        assert!(r.out.contains(says), "{says}: {}", r.out);
    }
}

#[test]
fn path_without_a_disk_and_simulated_results_are_refused() {
    let r = seekwell(&["predict", "/proc"]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("no device with a scheduler"), "{}", r.err);
    let r = seekwell(&["predict"]);
    assert_eq!(r.code, 2, "a path is required");
    let empty = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("predict-no-results");
    std::fs::create_dir_all(&empty).expect("a directory");
    let r = seekwell(&["predict", "--of", &empty.display().to_string()]);
    assert_eq!(r.code, 2, "{}", r.out);
}
