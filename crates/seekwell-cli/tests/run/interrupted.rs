//! The progress bar appears only on a terminal. A signal or a failed run in the middle keeps the
//! finished results.

use crate::watched_run::{CLEAR, Watched};
use crate::{Ran, command, good, ran, scratch, seekwell};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

/// Two short runs, followed by two runs that would take minutes.
const LONG: &[&str] = &[
    "compare",
    "-d",
    "hdd:hitachi-7k200",
    "-w",
    "seeker:seconds=1s",
    "-w",
    "random-read:size=64m,seconds=24h,tasks=64,depth=8",
    "-s",
    "noop,mq-deadline",
    "--threads",
    "1",
    "--seeds",
    "1",
    // With this seed, the runs have this order.
    "--seed",
    "8",
];

/// Runs the four runs above, sends a signal in the middle of the third run, and waits for the end.
fn stopped_in_the_third(more: &[&str], signal: Signal) -> Ran {
    let mut run = Watched::begin(&[LONG, more].concat());
    assert!(run.shows("the second run's end", |f| f.contains("2 of 4 runs")));
    // Wait until the third run has made progress.
    run.works(0.5);
    run.signal(signal);
    run.end()
}

#[test]
fn interrupted_compare_prints_the_finished_runs() {
    let r = stopped_in_the_third(&[], Signal::INT);
    assert_eq!(r.code, 130);
    assert_eq!(
        r.err,
        "error: stopped by SIGINT (interrupted): 2 of 4 runs finished; their results are shown\n"
    );
    let (first, second) = r.out.split_once("random-read:").expect("both workloads");
    assert!(first.contains("Verdict:"), "{}", r.out);
    let cut = "! noop: stopped after";
    assert!(
        second.contains("Not finished, and not compared:"),
        "{second}"
    );
    assert!(second.contains(cut), "{second}");
    assert!(
        second.contains("reads of"),
        "what it had measured: {second}"
    );
    assert!(second.contains("! mq-deadline: not begun"), "{second}");
    assert!(!second.contains("Verdict:"), "nothing to judge: {second}");
}

#[test]
fn interrupted_compare_prints_json_and_reports_any_signal() {
    let r = stopped_in_the_third(&["--json"], Signal::TERM);
    assert_eq!(r.code, 143);
    let doc: Value = serde_json::from_str(&r.out).expect("one whole JSON document");
    assert_eq!(doc["records"].as_array().map(Vec::len), Some(2));
    let rest = doc["unfinished"].as_array().expect("two");
    assert_eq!(rest.len(), 2);
    assert_eq!(rest[0]["scheduler"], "noop");
    assert!(rest[0]["record"]["read"]["ios"].as_u64() > Some(0));
    assert_eq!(
        (&rest[1]["why"], &rest[1]["record"]),
        (&"not begun".into(), &Value::Null)
    );
}

#[test]
fn interrupted_demo_prints_the_finished_demos() {
    let mut run = Watched::begin(&["demo", "all", "--seeds", "50"]);
    let some = |f: &str| f.contains(" demos ") && !f.contains(" 0 of ");
    assert!(run.shows("the first demo's end", some));
    run.signal(Signal::INT);
    let r = run.end();
    assert_eq!(r.code, 130, "{}", r.err);
    assert!(
        r.err.contains("stopped by SIGINT (interrupted): "),
        "{}",
        r.err
    );
    assert!(r.err.contains("demos"), "{}", r.err);
}

/// `run` and `replay` print the measurements of a run that would not end. Their other runs have not
/// started.
#[test]
fn interrupted_run_or_replay_prints_its_measurements() {
    let mut trace = b"t_ns,op,sector,sectors\n".to_vec();
    for i in 0..400_000u64 {
        let line = format!("{},R,{},8\n", i * 20_000_000, i * 7_919_777 % 100_000_000);
        trace.extend_from_slice(line.as_bytes());
    }
    let file = scratch("long.csv", &trace);
    let never = "random-read:size=64m,seconds=24h,tasks=64,depth=8";
    let common = ["-d", "hdd:hitachi-7k200", "-s", "noop,mq-deadline"];
    for what in [&["run", never][..], &["replay", &file]] {
        let one = ["--threads", "1", "--seeds", "1"];
        let mut run = Watched::begin(&[what, &common, &one].concat());
        run.works(0.3);
        run.signal(Signal::INT);
        let r = run.end();
        assert_eq!(r.code, 130, "{what:?}: {}", r.err);
        let none = "none of 2 runs finished";
        assert!(
            r.err.contains("stopped by SIGINT") && r.err.contains(none),
            "{}",
            r.err
        );
        let out = &r.out;
        assert!(
            out.contains("Not finished, and not compared:"),
            "{what:?}: {out}"
        );
        assert!(
            out.contains(": not begun") && out.contains("reads of"),
            "{what:?}: {out}"
        );
    }
}

/// Completed cases are printed as one complete document. A failed case does not affect the others.
#[test]
fn interrupted_explain_prints_the_finished_cases() {
    let case = |i: u64, elevator: &str| {
        let rows = (0..200u64).map(|k| format!("[{k},{},1,\"R\",{},8]", k + 1, k * i * 977));
        let rows = rows.collect::<Vec<_>>().join(",");
        format!(
            "{{\"case\":\"c{i}\",\"elevator\":\"{elevator}\",\"hz\":1000,\"input\":[{rows}]}}\n"
        )
    };
    let many: String = (1..4000).map(|i| case(i, "cfq")).collect();
    let file = scratch("many.jsonl", many.as_bytes());
    let mut run = Watched::begin(&["explain", &file, "--all", "--json"]);
    let some = |f: &str| f.contains(" cases ") && !f.contains(" 0 of ");
    assert!(run.shows("the first case's end", some));
    run.signal(Signal::INT);
    let r = run.end();
    assert_eq!(r.code, 130, "{}", r.err);
    assert!(r.err.contains(" of 3999 cases finished"), "{}", r.err);
    let doc: Value = serde_json::from_str(&r.out).expect("one whole JSON document");
    let given = doc["cases"].as_array().map_or(0, Vec::len);
    assert!((1..3999).contains(&given), "{given}");
}

#[test]
fn added_scheduler_is_compared_with_the_default_ones() {
    let usual = good(&[
        "compare",
        "-w",
        "seeker:seconds=1s",
        "-s",
        "+row",
        "--seeds",
        "1",
    ]);
    for name in ["none", "mq-deadline", "kyber", "bfq", "row"] {
        assert!(usual.contains(name), "{usual}");
    }
    let demo = good(&[
        "demo",
        "deceptive-idleness",
        "-s",
        "row,deadline:fifo_batch=1",
    ]);
    for row in ["anticipatory", "row ", "deadline:fifo_batch=1 "] {
        assert!(demo.contains(&format!("\n  {row}")), "{demo}");
    }
    let r = seekwell(&["demo", "cfq-ioprio", "-s", "row"]);
    assert!(
        r.code == 2 && r.err.contains("runs only with its own schedulers"),
        "{}",
        r.err
    );
}

/// The program `script` provides a terminal.
fn on_a_terminal(args: &str) -> Option<String> {
    let line = format!("{} {args}", env!("CARGO_BIN_EXE_seekwell"));
    let mut c = Command::new("script");
    c.args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .env("COLUMNS", "100")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    let Ok(o) = c.output() else {
        println!("skipped: no script(1) of util-linux here");
        return None;
    };
    assert!(o.status.success(), "{o:?}");
    Some(String::from_utf8(o.stdout).expect("UTF-8"))
}

const SHORT: &str = "compare -d hdd:hitachi-7k200 -w seeker:seconds=1s -s noop,cfq";

#[test]
fn terminal_shows_a_progress_bar_then_only_the_result() {
    let Some(text) = on_a_terminal(SHORT) else {
        return;
    };
    let bar = text.find(" of 2 runs  ").expect("a bar");
    let result = text.find("On a modelled disk").expect("the result");
    assert!(bar < result && text[..result].contains("ETA "), "{text:?}");
    assert!(text[..result].contains(" %  "), "{text:?}");
    let after = text.rfind(CLEAR).expect("the bar is cleared");
    assert!(after < result, "nothing is drawn behind the result");
    assert!(!text[after + CLEAR.len()..].contains("ETA"), "{text:?}");
    // These are the other long commands.
    for args in [
        "demo deceptive-idleness",
        "devices --validate",
        "replay FILE -s noop,cfq",
    ] {
        let file = scratch(
            "bar.csv",
            b"t_ns,op,sector,sectors\n0,R,400,8\n9000000,R,800,8\n",
        );
        let text = on_a_terminal(&args.replace("FILE", &file)).expect("there is one");
        assert!(
            text.contains("ETA ") && text.contains(CLEAR),
            "{args}: {text:?}"
        );
        let last = text.rfind(CLEAR).unwrap_or_default();
        assert!(!text[last..].contains("ETA "), "{args}: {text:?}");
    }
    let quiet = on_a_terminal(&format!("{SHORT} --quiet")).expect("there is one");
    assert!(
        !quiet.contains("ETA") && !quiet.contains(CLEAR),
        "{quiet:?}"
    );
}

#[test]
fn pipe_receives_only_the_result() {
    let args: Vec<&str> = SHORT.split(' ').collect();
    let r = seekwell(&args);
    assert_eq!((r.code, &*r.err), (0, ""));
    assert!(!r.out.contains('\u{1b}') && !r.out.contains('\r') && !r.out.contains("ETA"));
}

#[test]
fn failed_run_does_not_affect_the_other_runs() {
    // The address is beyond the end of one disk, but not of the other.
    let file = scratch(
        "beyond.csv",
        b"t_ns,op,sector,sectors\n0,R,400,8\n9000000,R,40000000,8\n",
    );
    let args = [
        "replay",
        &file,
        "-s",
        "noop,cfq",
        "-d",
        "emmc:motog",
        "-d",
        "hdd:hitachi-7k200",
    ];
    let r = seekwell(&args);
    assert_eq!(r.code, 4, "{}", r.err);
    assert!(
        r.err.contains("2 of 4 runs failed; the others are shown:"),
        "{}",
        r.err
    );
    assert!(r.err.contains("lie beyond the device"), "{}", r.err);
    let (bad, fine) = r
        .out
        .split_once("On a modelled disk")
        .expect("the other disk's table");
    assert!(
        bad.contains("! noop, cfq: ") || bad.contains("! noop: "),
        "{bad}"
    );
    assert!(
        fine.contains("hitachi-7k200") && fine.contains("Verdict:"),
        "{fine}"
    );
    // If all runs fail, the input is at fault, and nothing is printed.
    let r = seekwell(&args[..6]);
    assert_eq!((r.code, &*r.out), (2, ""));
    assert!(r.err.contains("choose a larger device"), "{}", r.err);
    let whole = good(&["replay", &file, "-s", "noop,cfq", "-d", "hdd:hitachi-7k200"]);
    assert!(whole.contains("Verdict:"), "{whole}");
}

/// The input is endless, so on any machine the signal arrives in the middle.
#[test]
fn interrupted_convert_and_report_print_the_input_read_so_far() {
    let out = scratch("cut-short.csv", b"");
    for args in [
        &["convert", "-", "--format", "csv", "-o", &out, "--to", "csv"][..],
        &["report", "-", "--format", "csv"],
    ] {
        let mut run = command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut feed = run.stdin.take().expect("a pipe");
        let rows = |from: u64| -> String {
            let row = |i: u64| format!("{i},R,{},8,1\n", i * 8 % 1_000_000);
            (from..from + 10_000).map(row).collect()
        };
        feed.write_all(b"t_ns,op,sector,sectors,pid\n")
            .expect("it reads");
        for i in 0..20 {
            feed.write_all(rows(i * 10_000).as_bytes())
                .expect("it reads on");
        }
        let pid = Pid::from_child(&run);
        kill_process(pid, Signal::TERM).expect("it lives");
        let mut i = 20;
        while feed.write_all(rows(i * 10_000).as_bytes()).is_ok() {
            i += 1;
            assert!(i < 100_000, "{args:?} goes on");
        }
        drop(feed);
        let r = ran(run.wait_with_output().expect("it ends"));
        assert_eq!(r.code, 143, "{args:?}: {}", r.err);
        assert!(
            r.err.contains("stopped by SIGTERM (terminated): "),
            "{}",
            r.err
        );
        if args[0] == "report" {
            assert!(r.out.contains("reads ("), "{}", r.out);
            continue;
        }
        let kept = std::fs::read_to_string(&out).expect("it is kept");
        let n = kept.lines().count() as u64 - 1;
        assert!((4096..(i + 1) * 10_000).contains(&n), "{n}");
        let words: String = r.err.split("the first ").skip(1).collect();
        let said: String = words.chars().filter(char::is_ascii_digit).collect();
        assert_eq!(said, n.to_string(), "{}", r.err);
        assert!(kept.ends_with('\n'), "whole records");
    }
}
