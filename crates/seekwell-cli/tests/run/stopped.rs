//! A bar on a terminal and nothing elsewhere; a signal, or a run that fails, in the middle.

use crate::{Ran, command, good, ran, scratch, seekwell};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Two runs that end at once, then two that would take hours.
const LONG: &[&str] = &[
    "compare",
    "-d",
    "hdd:hitachi-7k200",
    "-w",
    "seeker:seconds=1s",
    "-w",
    "random-read:size=64m,seconds=20min,tasks=64,depth=8",
    "-s",
    "noop,mq-deadline",
    "--threads",
    "1",
];

/// Runs, sends a signal after so long, and waits for the end. `None` if it came before the program
/// had begun to catch signals.
fn stopped(args: &[&str], after: Duration, signal: Signal) -> Option<Ran> {
    let mut c = command(args);
    c.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = c.spawn().expect("the binary runs");
    std::thread::sleep(after);
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a process");
    kill_process(pid, signal).expect("it runs still");
    let o = child.wait_with_output().expect("it ends");
    o.status.code()?;
    Some(ran(o))
}

/// The same, after longer and longer, until something was finished before the signal.
fn stopped_in_the_middle(args: &[&str], signal: Signal, finished: impl Fn(&Ran) -> bool) -> Ran {
    for seconds in [2, 6, 20, 60] {
        match stopped(args, Duration::from_secs(seconds), signal) {
            Some(r) if finished(&r) => return r,
            _ => {}
        }
    }
    panic!("nothing was finished within a minute");
}

#[test]
fn an_interrupted_compare_gives_the_runs_that_were_finished() {
    let r = stopped_in_the_middle(LONG, Signal::INT, |r| r.err.contains("2 of 4 runs"));
    assert_eq!(r.code, 130);
    assert_eq!(
        r.err,
        "error: stopped by SIGINT (interrupted): 2 of 4 runs were finished, and are given\n"
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
fn json_and_other_signals_are_kept_alike() {
    let args = [LONG, &["--json"]].concat();
    let r = stopped_in_the_middle(&args, Signal::TERM, |r| r.err.contains("2 of 4 runs"));
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
fn an_interrupted_demo_gives_the_demos_that_were_finished() {
    let args = ["demo", "all", "--seeds", "50"];
    let begun = |r: &Ran| r.err.contains("stopped by");
    let r = stopped_in_the_middle(&args, Signal::INT, begun);
    assert_eq!(r.code, 130, "{}", r.err);
    assert!(
        r.err.contains("stopped by SIGINT (interrupted): "),
        "{}",
        r.err
    );
    assert!(r.err.contains("demos"), "{}", r.err);
}

/// Run for real by hand in a terminal, it is `script` that makes one.
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
const CLEAR: &str = "\r\u{1b}[2K";

#[test]
fn a_terminal_sees_a_bar_with_the_time_left_and_then_only_the_result() {
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
    // The other commands that take their time.
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
fn a_pipe_sees_the_result_and_nothing_else() {
    let args: Vec<&str> = SHORT.split(' ').collect();
    let r = seekwell(&args);
    assert_eq!((r.code, &*r.err), (0, ""));
    assert!(!r.out.contains('\u{1b}') && !r.out.contains('\r') && !r.out.contains("ETA"));
}

#[test]
fn a_run_that_fails_leaves_the_others() {
    // Behind the end of the one disk, well within the other.
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
        r.err.contains("2 of 4 runs failed, the others are given:"),
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
    // Where all fail it is the input, and nothing is printed.
    let r = seekwell(&args[..6]);
    assert_eq!((r.code, &*r.out), (2, ""));
    assert!(r.err.contains("choose a larger device"), "{}", r.err);
    let whole = good(&["replay", &file, "-s", "noop,cfq", "-d", "hdd:hitachi-7k200"]);
    assert!(whole.contains("Verdict:"), "{whole}");
}
