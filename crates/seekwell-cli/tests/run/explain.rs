//! `explain` for programs: logs, agreement, exit status.

use crate::{good, project, scratch, seekwell};
use seekwell_microscope::format::CsvOptions;
use seekwell_microscope::{read_cases, run};
use serde_json::Value;
use std::path::Path;

fn decisions(name: &str) -> String {
    project(&format!(
        "crates/seekwell-sim/tests/decisions/{name}.jsonl.zst"
    ))
}

/// Returns the rows (id, t_ns, event) that `--csv` printed.
fn rows(text: &str) -> Vec<(String, u64, String)> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("id,t_ns,event"));
    let row = |l: &str| {
        let f: Vec<&str> = l.split(',').collect();
        assert_eq!(f.len(), 3, "{l}");
        (f[0].to_owned(), f[1].parse().expect("ns"), f[2].to_owned())
    };
    lines.map(row).collect()
}

#[test]
fn explain_csv_equals_the_recorded_log() {
    let file = decisions("row");
    let cases = read_cases(Path::new(&file), &CsvOptions::default()).unwrap();
    let case = cases
        .iter()
        .find(|c| c.timers.as_ref().is_some_and(|t| !t.is_empty()));
    let case = case.expect("a case with timers");
    let got = rows(&good(&["explain", &file, "--case", &case.case, "--csv"]));
    let mut want = Vec::new();
    for (t, bios) in case.expected().unwrap().unwrap() {
        for (i, b) in bios.iter().enumerate() {
            let event = if i == 0 { "dispatch" } else { "dispatch+" };
            want.push((b.0.to_string(), t.since_start(), event.to_owned()));
        }
    }
    let (timers, dispatches): (Vec<_>, Vec<_>) = got.iter().cloned().partition(|r| r.2 == "timer");
    assert_eq!(dispatches, want);
    assert!(timers.iter().all(|t| t.0.is_empty()));
    let at: Vec<u64> = timers.iter().map(|t| t.1).collect();
    let expected: Vec<u64> = case
        .expected_timers()
        .unwrap()
        .iter()
        .map(|t| t.since_start())
        .collect();
    assert_eq!(at, expected);
    assert!(got.is_sorted_by_key(|r| r.1), "one log, in order of time");
}

#[test]
fn explain_csv_of_all_cases_repeats_only_the_header() {
    let file = decisions("noop");
    let text = good(&["explain", &file, "--all", "--csv"]);
    let cases = read_cases(Path::new(&file), &CsvOptions::default()).unwrap();
    let parts: Vec<&str> = text.split("id,t_ns,event\n").skip(1).collect();
    assert_eq!(parts.len(), cases.len());
    for (part, case) in parts.iter().zip(&cases) {
        let bios: usize = run(case, false)
            .unwrap()
            .dispatch
            .iter()
            .map(|d| d.1.len())
            .sum();
        assert_eq!(part.lines().count(), bios, "{}", case.case);
    }
}

#[test]
fn explain_strict_exits_with_1_on_a_difference() {
    let file = decisions("deadline-4.0");
    let same = seekwell(&["explain", &file, "--all", "--strict"]);
    assert_eq!(same.code, 0, "{}", same.out);
    let wrong = seekwell(&["explain", &file, "--all", "--strict", "--scheduler", "noop"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.out.contains("Cases that differ"));
    let lax = seekwell(&["explain", &file, "--all", "--scheduler", "noop"]);
    assert_eq!(lax.code, 0);
}

#[test]
fn first_difference_is_shown_with_surrounding_decisions() {
    let case = r#"{"case":"x","elevator":"noop","input":[[0,1,1,"R",0,8],[1,2,1,"R",90,8],[2,3,1,"R",40,8]],"dispatch":[[0,1],[5000,3],[10000,2]]}"#;
    let r = seekwell(&[
        "explain",
        &scratch("differs.jsonl", case.as_bytes()),
        "--strict",
    ]);
    assert_eq!(r.code, 1);
    assert!(r.out.contains("First difference: decision 2"), "{}", r.out);
    assert!(r.out.contains(">  2  5.000 3   5.000 2"), "{}", r.out);
    assert!(
        r.out.contains("33.3 %"),
        "one of three at its place: {}",
        r.out
    );
}

#[test]
fn null_model_agreement_is_reported_with_each_case() {
    let file = decisions("deadline-4.0");
    let doc: Value = serde_json::from_str(&good(&["explain", &file, "--json"])).unwrap();
    let cases = doc["cases"].as_array().unwrap();
    let identical = |a: &Value| a["identical"] == true;
    assert!(cases.iter().all(|c| identical(&c["agreement"])));
    for null in 0..2 {
        let agree = |c: &&Value| identical(&c["beside"][null]["agreement"]);
        assert!(
            cases.iter().filter(agree).count() < cases.len(),
            "a null model may not pass"
        );
    }
}

#[test]
fn recorded_kernel_rounds_are_scored_by_class() {
    let file = decisions("mq/mq-deadline-6.18");
    let text = good(&["explain", &file, "--all"]);
    assert!(text.contains("gated-prio"), "{text}");
    assert!(text.contains("C-LOOK"));
    let name = "mq-deadline-6.18/000-gated";
    let steps = good(&["explain", &file, "--case", name]);
    assert!(steps.contains("because"), "{steps}");
    assert!(steps.contains("Agreement with the kernel's"));
    let log = rows(&good(&["explain", &file, "--case", name, "--csv"]));
    assert!(log.len() > 50 && log.iter().all(|r| r.2.starts_with("dispatch")));
}

#[test]
fn request_list_runs_under_any_scheduler() {
    let csv = scratch(
        "list.csv",
        b"0,1,1,R,5000,8\n10,2,1,R,9000,8\n20,3,1,R,100,8\n",
    );
    let order = |args: &[&str]| {
        let mut all = vec!["explain", &csv, "--csv"];
        all.extend(args);
        rows(&good(&all))
            .iter()
            .map(|r| r.0.clone())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(order(&["-s", "noop"]), "1 2 3");
    assert_eq!(order(&["-s", "vr"]), "1 2 3");
    let us = rows(&good(&[
        "explain",
        &csv,
        "--csv",
        "--service-us",
        "250",
        "--depth",
        "2",
    ]));
    assert_eq!(
        us.iter().map(|r| r.1).collect::<Vec<_>>(),
        [0, 10_000, 250_000]
    );
}

/// Every scheduler can run a plain request list in its own layer. Every worked example is a case
/// that `explain` can run.
#[test]
fn every_scheduler_explains_its_steps() {
    let csv = scratch(
        "every.csv",
        b"0,1,1,R,5000,8\n10,2,2,W,9000,8\n20,3,1,R,100,8\n30,4,3,S,0,8\n",
    );
    for s in seekwell_sched::registry() {
        let text = good(&["explain", &csv, "--scheduler", s.name]);
        assert_eq!(text.matches("  dispatch ").count(), 4, "{}: {text}", s.name);
        assert_eq!(
            text.matches("  completes ").count(),
            4,
            "{}: {text}",
            s.name
        );
        assert!(
            text.contains("because") || s.name == "none",
            "{}: {text}",
            s.name
        );
    }
    for entry in std::fs::read_dir(project("cases")).unwrap() {
        let path = entry.unwrap().path().display().to_string();
        let r = seekwell(&["explain", &path, "--all", "--strict", "--quiet"]);
        assert_eq!(r.code, 0, "{path}: {}{}", r.out, r.err);
    }
}

/// Every rule in a reason is explained in two places: in the legend below the steps, and on the
/// scheduler's page.
#[test]
fn every_rule_in_a_reason_is_in_the_legend_and_on_the_page() {
    let csv = scratch(
        "legend.csv",
        b"0,1,1,R,5000,8\n10,2,2,W,9000,8\n20,3,1,R,100,8\n30,4,3,S,0,8\n",
    );
    for s in seekwell_sched::registry() {
        let text = good(&["explain", &csv, "--scheduler", s.name, "--legend"]);
        let (steps, legend) = text.split_once("RULES NAMED ABOVE").expect("a legend");
        // Text that does not fit continues below its line.
        let steps = steps.replace(&format!("\n{}", " ".repeat(27)), " ");
        let page = good(&["schedulers", s.name, "--details"]);
        let markdown = good(&["schedulers", "--markdown"]);
        for line in steps.lines().filter(|l| l.contains("  because  ")) {
            let reason = line.split_once("  because  ").expect("a reason").1.trim();
            let id = reason.split([':', ' ']).next().expect("a name");
            let function = reason.rsplit_once('[').expect("a function").1;
            let row = format!("  {id}  {}\n", function.trim_end_matches(']'));
            assert!(legend.contains(&row), "{}: {line}: {legend}", s.name);
            assert!(page.contains(&row), "{}: {line}: {page}", s.name);
            assert!(markdown.contains(&format!("| `{id}` | `")), "{id}");
        }
        let rows = legend
            .lines()
            .skip(1)
            .filter(|l| l.starts_with("  ") && !l.starts_with("   "));
        for row in rows {
            let id = row.split_whitespace().next().expect("a name");
            assert!(steps.contains(id), "{}: {id} is not named above", s.name);
        }
    }
}

/// The rules can be read without a case.
#[test]
fn legend_is_printed_without_a_case() {
    let kyber = good(&["explain", "--legend", "--scheduler", "kyber"]);
    assert!(kyber.starts_with("RULES OF kyber"), "{kyber}");
    assert!(
        kyber.contains("kyber_resize_domain") && !kyber.contains("cfq_"),
        "{kyber}"
    );
    let all = good(&["explain", "--legend"]);
    for s in seekwell_sched::registry() {
        assert!(
            all.contains(&format!("RULES OF {}  names as ", s.name)),
            "{}",
            s.name
        );
        for rule in s.rules {
            assert!(
                all.contains(&format!("  {}  {}\n", rule.id, rule.kernel)),
                "{}",
                rule.id
            );
        }
    }
    let r = seekwell(&["explain"]);
    assert_eq!(r.code, 2, "{}", r.err);
    let r = seekwell(&["explain", "--legend", "--scheduler", "kiber"]);
    assert!(r.code == 2 && r.err.contains("kyber"), "{}", r.err);
}

#[test]
fn control_events_are_listed_in_time_order() {
    let csv = scratch(
        "controls.csv",
        b"0,1,7,R,0,8\n0,2,7,R,90,8\n5,x,7\n5,t,fifo_batch,1\n5,3,8,R,50,8\n9000,p,8,1,0\n",
    );
    let text = good(&["explain", &csv]);
    let lines: Vec<&str> = text.lines().filter(|l| l.contains("  control  ")).collect();
    assert_eq!(lines.len(), 3, "{text}");
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(at("process 7 exits") < at("fifo_batch = 1"));
    assert!(at("fifo_batch = 1") < at("arrives    3"));
}

/// While bfq waits, it is called every 3 ms. Steps that repeat are only counted.
#[test]
fn repeated_wait_steps_are_collapsed() {
    // The write of process 2 waits while bfq idles for a third request of process 1.
    let rows = b"t_us,id,pid,op,sector,n\n0,1,1,R,1000,8\n0,2,2,W,5000,8\n100,3,1,R,1008,8\n";
    let file = scratch("wait.csv", rows);
    let args = [
        "explain",
        &file,
        "-s",
        "bfq",
        "-t",
        "slice_idle_us=4294967295",
    ];
    let text = good(&args);
    assert!(text.lines().count() < 60, "{} lines", text.lines().count());
    let again = text
        .lines()
        .find(|l| l.contains(" more times; this is the last one"));
    let again = again.expect(&text);
    // The wait takes 4295 s and has one step per 3 ms.
    assert!(again.contains("repeated 1,43"), "{again}");
    let doc: Value = serde_json::from_str(&good(&[&args[..], &["--json"]].concat())).expect("JSON");
    let steps = doc["cases"][0]["steps"].as_array().expect("steps");
    assert!(steps.len() < 60, "{}", steps.len());
    let times: Vec<u64> = steps
        .iter()
        .filter_map(|s| s["again"]["times"].as_u64())
        .collect();
    assert!(matches!(times[..], [n] if n > 1_400_000), "{times:?}");
}
