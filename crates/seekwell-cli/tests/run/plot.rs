//! `--plot`: the pictures of compare, demo and explain contain the numbers of their tables.

use crate::{good, project, scratch, seekwell};
use serde_json::Value;
use std::path::PathBuf;

/// Returns a file name for a picture.
fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path.display().to_string()
}

fn drawn(path: &str) -> String {
    let svg = std::fs::read_to_string(path).expect("a picture");
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
    assert!(!svg.contains('\u{1b}'), "no colours of a terminal");
    svg
}

#[test]
fn comparison_plot_shows_the_recorded_numbers() {
    let path = file("compare.svg");
    let args = [
        "compare",
        "-d",
        "hdd:hitachi-7k200",
        "-d",
        "ssd:x25m-g2-160",
        "-w",
        "seeker:seconds=1s",
        "-w",
        "fs-mark:files=5",
        "-s",
        "noop,cfq,mq-deadline",
        "--json",
        "--plot",
        &path,
    ];
    let doc: Value = serde_json::from_str(&good(&args)).expect("one JSON document");
    let svg = drawn(&path);
    let records = doc["records"].as_array().expect("records");
    assert_eq!(records.len(), 12);
    for r in records {
        let value = r["metric"]["value"].as_f64().expect("a metric");
        assert!(svg.contains(&format!("data-value=\"{value}\"")), "{value}");
    }
    assert_eq!(svg.matches("data-value=").count(), 12);
    for s in ["noop", "cfq", "mq-deadline"] {
        assert_eq!(svg.matches(&format!(">{s}</text>")).count(), 4, "{s}");
    }
}

#[test]
fn demo_plot_shows_the_table_numbers() {
    let path = file("demo.svg");
    let text = good(&["demo", "deceptive-idleness", "--plot", &path]);
    let svg = drawn(&path);
    let table = text.lines().skip_while(|l| !l.starts_with("  scheduler"));
    for row in table.skip(1).take(4) {
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert!(svg.contains(&format!(">{}</text>", cells[0])), "{row}");
        for cell in &cells[1..] {
            assert!(svg.contains(&format!(">{cell}</text>")), "{row}");
        }
    }
    assert!(svg.contains("holds: cfq is "));
    let r = seekwell(&["demo", "all", "--plot", &path]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("draws one demo"), "{}", r.err);
}

#[test]
fn explain_plot_shows_every_dispatch_and_escapes_names() {
    let path = file("explain.svg");
    let csv = scratch(
        "<img onerror=1>.csv",
        b"0,1,1,R,400,8\n100,2,1,R,800,8\n200,3,1,R,200,8\n",
    );
    let text = good(&["explain", &csv, "-s", "deadline", "--plot", &path]);
    assert!(text.contains("dispatch"));
    let svg = drawn(&path);
    assert!(!svg.contains("<img") && svg.contains("&lt;img onerror=1&gt;"));
    for sector in [400, 800, 200] {
        assert!(
            svg.contains(&format!("data-sector=\"{sector}\"")),
            "{sector}"
        );
    }
    let many = project("cases/cfq.jsonl");
    let r = seekwell(&["explain", &many, "--plot", &path]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("--case NAME"), "{}", r.err);
    let one = project("cases/noop.jsonl");
    good(&[
        "explain", &one, "--case", "noop-N-1", "--plot", &path, "--quiet",
    ]);
    assert!(drawn(&path).contains("data-order=\"4\""));
}

#[test]
fn unwritable_plot_path_is_reported_before_any_run() {
    let r = seekwell(&["compare", "--plot", "/nonexistent/dir/x.svg"]);
    assert_eq!((r.code, &*r.out), (3, ""));
    assert!(r.err.contains("/nonexistent/dir/x.svg"), "{}", r.err);
}
