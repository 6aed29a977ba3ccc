//! Published comparisons run again: what is printed, kept, and not run twice.

use crate::{good, seekwell};
use serde_json::Value;
use std::path::PathBuf;

fn results(name: &str) -> String {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    dir.display().to_string()
}

fn refused(args: &[&str], says: &[&str]) {
    let ran = seekwell(args);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
    for what in says {
        assert!(ran.err.contains(what), "{}", ran.err);
    }
}

#[test]
fn ours_stand_beside_the_published_figures_and_nothing_is_run_twice() {
    let dir = results("reproduced");
    let of = |more: &[&str]| {
        let args = ["reproduce", "laptop-ssd-2012", "--quick", "--results", &dir];
        let ran = seekwell(&[&args[..], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran
    };
    let first = of(&[]);
    assert!(
        first.out.contains("470.50") && first.out.contains("Level"),
        "{}",
        first.out
    );
    assert!(!first.err.contains("complete"), "{}", first.err);
    let again = of(&[]);
    assert_eq!(first.out, again.out);
    assert!(again.err.contains("nothing is run again"), "{}", again.err);
    let json: Value = serde_json::from_str(&of(&["--json"]).out).expect("JSON");
    let cells = &json["publications"][0]["reproduction"]["cells"];
    assert_eq!(cells.as_array().map(Vec::len), Some(4));
    assert!(
        cells[0]["ours"][0]["mean"].as_f64() > Some(100.0),
        "{cells}"
    );
    // Three times the rate is what the tool read in its three seconds.
    let mean = |i: usize| cells[i]["ours"][0]["mean"].as_f64().expect("a figure");
    let rate = (0..4).find(|i| cells[*i]["metric"] == "buffered disk read rate");
    let amount = (0..4).find(|i| cells[*i]["metric"] == "amount read");
    let (rate, amount) = (rate.expect("there"), amount.expect("there"));
    assert!((mean(amount) / mean(rate) - 3.0).abs() < 1e-9);
    let page = of(&["--markdown"]).out;
    for line in page.lines() {
        assert!(
            line.starts_with('|') || line.chars().count() <= 100,
            "{line}"
        );
    }
    assert!(page.contains("| laptop | seeker v2.0 (seek rate), seeks/second | cfq | 6780 (N 1) |"));
    // Another publication's folder under that name is left alone.
    let other = format!("{dir}/mysql-2008-quick");
    std::fs::rename(format!("{dir}/laptop-ssd-2012-quick"), other).expect("renamed");
    let args = ["reproduce", "mysql-2008", "--quick", "--results", &dir];
    refused(&args, &["belongs to another experiment", "--results"]);
}

#[test]
fn experiment_files_are_printed_and_names_are_checked() {
    let text = good(&["reproduce", "all", "--file"]);
    assert_eq!(text.matches("[experiment]").count(), 5);
    let quick = good(&["reproduce", "mysql-2008", "--file", "--quick"]);
    assert!(quick.contains("size = \"1300MiB\""), "{quick}");
    refused(&["reproduce", "mysql-2009"], &["mysql-2008"]);
}
