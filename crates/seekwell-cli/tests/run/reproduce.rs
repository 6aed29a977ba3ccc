//! Reproduced publications: output, stored results, and no repeated runs.

use crate::{good, seekwell};
use serde_json::Value;
use std::path::PathBuf;

fn results(name: &str) -> String {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    dir.display().to_string()
}

fn assert_rejected(args: &[&str], says: &[&str]) {
    let ran = seekwell(args);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
    for what in says {
        assert!(ran.err.contains(what), "{}", ran.err);
    }
}

#[test]
fn reproduction_shows_own_and_published_figures_and_reuses_stored_runs() {
    let dir = results("reproduced");
    let of = |more: &[&str]| {
        let args = ["reproduce", "laptop-ssd-2012", "--quick", "--results", &dir];
        let ran = seekwell(&[&args[..], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran
    };
    let first = of(&[]);
    assert!(
        first.out.contains("470.50") && first.out.contains("LEVEL"),
        "{}",
        first.out
    );
    assert!(first.out.lines().count() <= 24, "{}", first.out);
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
    // Three times the rate is what the tool read in three seconds.
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
    assert!(
        page.contains("| laptop | seeker v2.0 (seek rate), seeks/second | cfq | 6780 (N = 1) |")
    );
    // A folder of another publication with that name is not touched.
    let other = format!("{dir}/mysql-2008-quick");
    std::fs::rename(format!("{dir}/laptop-ssd-2012-quick"), other).expect("renamed");
    let args = ["reproduce", "mysql-2008", "--quick", "--results", &dir];
    assert_rejected(&args, &["belongs to another experiment", "--results"]);
}

#[test]
fn reproduction_accepts_repeats_and_an_existing_folder() {
    let dir = results("repeated");
    let args = ["reproduce", "laptop-ssd-2012", "--quick", "--quiet"];
    let more = ["--repeats", "2", "--results", &dir];
    let made = good(&[&args[..], &more].concat());
    assert!(made.contains("(2 runs of each, quick form)"), "{made}");
    let all = good(&[&args[..], &more, &["--details"]].concat());
    assert!(all.contains("SE +/- "), "{all}");
    let folder = format!("{dir}/laptop-ssd-2012-quick");
    let read = good(&[&args[..], &["--from", &folder]].concat());
    assert_eq!(made, read);
}

#[test]
fn reproduction_of_nine_schedulers_fits_100_columns() {
    let dir = results("wide");
    let args = [
        "reproduce",
        "moto-g-2014",
        "--quick",
        "--details",
        "--quiet",
    ];
    let made = good(&[&args[..], &["--results", &dir]].concat());
    assert!(made.contains("As published, TPS"), "{made}");
    let long = made.lines().find(|l| l.chars().count() > 100);
    assert_eq!(long, None);
    // Without --details the answer fits on a screen.
    let brief = args.iter().filter(|a| **a != "--details").copied();
    let brief: Vec<&str> = brief.chain(["--results", &dir]).collect();
    let brief = good(&brief);
    assert!(brief.lines().count() <= 24, "{brief}");
    assert!(
        brief.contains("Did the scheduler cause the difference?"),
        "{brief}"
    );
}

#[test]
fn reproduction_prints_experiment_files_and_checks_names() {
    let text = good(&["reproduce", "all", "--file"]);
    assert_eq!(text.matches("[experiment]").count(), 5);
    let quick = good(&["reproduce", "mysql-2008", "--file", "--quick"]);
    assert!(quick.contains("size = \"1300MiB\""), "{quick}");
    assert_rejected(&["reproduce", "mysql-2009"], &["mysql-2008"]);
}

#[test]
fn guard_runs_are_stored_and_missing_guards_reported() {
    let dir = results("guarded");
    let of = |more: &[&str]| {
        let args = [
            "reproduce",
            "moto-g-2014",
            "--guard",
            "ablations",
            "--results",
            &dir,
        ];
        good(&[&args[..], &["--quiet"], more].concat())
    };
    let first = of(&[]);
    let kept = format!("{dir}/moto-g-2014-guard-ablations.jsonl");
    let lines = std::fs::read_to_string(&kept).expect("kept");
    // Two causes of one difference, with and without them.
    assert!(
        first.contains("low_latency 0") && first.contains("removed"),
        "{first}"
    );
    assert!(first.contains("raised-at-start") && !first.contains("async-share"));
    assert!(first.lines().all(|l| l.chars().count() <= 100), "{first}");
    assert_eq!(first, of(&[]));
    assert_eq!(lines, std::fs::read_to_string(&kept).expect("kept"));
    let json: Value = serde_json::from_str(&of(&["--json"])).expect("JSON");
    let tests = &json["guards"][0]["found"]["tests"];
    let (on, off) = (&tests[0]["on"], &tests[0]["off"]);
    assert!(
        on.as_f64() < Some(0.95) && off.as_f64() > Some(0.95),
        "{tests}"
    );
    let page = of(&["--markdown"]);
    assert!(
        page.starts_with("# ") && page.contains("| L | Moto G: AndroBench 3.4"),
        "{page}"
    );
    for guard in ["constants", "permuted", "order", "ablations"] {
        let args = [
            "reproduce",
            "laptop-ssd-2012",
            "--guard",
            guard,
            "--results",
            &dir,
        ];
        let said = good(&[&args[..], &["--quiet"]].concat());
        assert!(said.contains("does not apply"), "{guard}: {said}");
    }
}
