//! `replay`: modes, warnings, and faulty traces.

use crate::{good, scratch, seekwell};
use serde_json::Value;
use std::io::Write;

/// Returns a trace of two processes with completions, in the exchange format.
fn two_processes(records: u64) -> String {
    let mut text = "t_ns,op,sector,sectors,pid,t_complete\n".to_owned();
    for i in 0..records {
        let (t, pid) = (i * 5_000_000, 1 + i % 2);
        let sector = pid * 50_000_000 + (i / 2) * 8;
        let op = if i % 5 == 4 { "W" } else { "R" };
        text += &format!("{t},{op},{sector},8,{pid},{}\n", t + 3_000_000);
    }
    text
}

fn json(args: &[&str]) -> Vec<Value> {
    let doc: Value = serde_json::from_str(&good(args)).expect("one JSON document");
    doc["records"].as_array().unwrap().clone()
}

#[test]
fn every_replay_mode_runs_and_is_explained() {
    let file = scratch("modes.csv", two_processes(400).as_bytes());
    for (mode, words) in [
        ("timed", "open loop"),
        ("scaled:1/2", "multiplied by a factor"),
        ("depth:8", "order is kept"),
        ("closed", "think time"),
    ] {
        let text = good(&[
            "replay",
            &file,
            "--mode",
            mode,
            "-s",
            "noop,cfq,mq-deadline",
            "--details",
        ]);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{mode}: {text}");
        assert!(flat.contains(&format!("replayed {mode}")), "{text}");
        assert!(flat.contains("Verdict:"), "{text}");
        for part in [
            "READ LATENCY",
            "WRITE LATENCY",
            "SHARE OF BYTES",
            "P99.9",
            "SEEK",
            "BUSY",
        ] {
            assert!(text.contains(part), "{mode}: {part}");
        }
        let quiet = good(&["replay", &file, "--mode", mode, "-s", "noop,cfq", "--quiet"]);
        assert!(!quiet.contains(words), "{quiet}");
        let first = good(&["replay", &file, "--mode", mode, "-s", "noop,cfq"]);
        let flat = first.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{mode}: {first}");
        assert!(first.len() < text.len(), "{first}");
    }
}

#[test]
fn every_record_is_replayed_once_and_modes_differ_in_duration() {
    let file = scratch("served.csv", two_processes(400).as_bytes());
    let run = |mode: &str| {
        json(&[
            "replay",
            &file,
            "--json",
            "--mode",
            mode,
            "-s",
            "noop,cfq,bfq-v7r8",
        ])
    };
    let (timed, half, deep) = (run("timed"), run("scaled:1/2"), run("depth:8"));
    for r in timed.iter().chain(&half).chain(&deep) {
        assert_eq!(
            (&r["read"]["ios"], &r["write"]["ios"]),
            (&320.into(), &80.into())
        );
        assert_eq!(r["processes"].as_array().unwrap().len(), 2);
    }
    let ns = |r: &Value| r["duration_ns"].as_u64().unwrap();
    assert!(
        (1_995_000_000..2_100_000_000).contains(&ns(&timed[0])),
        "{}",
        ns(&timed[0])
    );
    assert!(ns(&half[0]) < ns(&timed[0]));
}

#[test]
fn process_based_scheduler_warns_about_a_trace_without_pids() {
    let text = "t_ns,op,sector,sectors\n0,R,0,8\n1000,R,800000,8\n2000,R,16,8\n";
    let file = scratch("nopids.csv", text.as_bytes());
    let out = good(&["replay", &file, "-s", "noop,cfq"]);
    assert!(out.contains("! cfq: cfq distinguishes processes"), "{out}");
    let out = good(&["replay", &file, "-s", "noop,deadline"]);
    assert!(!out.contains("distinguishes processes"), "{out}");
    let r = seekwell(&["replay", &file, "--mode", "closed"]);
    assert_eq!(r.code, 2);
    assert!(
        r.err.contains("closed loop") && r.err.contains("depth:N"),
        "{}",
        r.err
    );
}

#[test]
fn same_seed_gives_same_bytes_on_any_number_of_threads() {
    let file = scratch("threads.csv", two_processes(300).as_bytes());
    let run = |threads: &str| {
        good(&[
            "replay",
            &file,
            "--json",
            "--threads",
            threads,
            "-s",
            "all",
            "--mode",
            "closed",
        ])
    };
    assert_eq!(run("1"), run("5"));
}

/// Checks that a command ends with exit code 2, with one message, and with nothing on stdout.
fn assert_rejected(args: &[&str], says: &[&str]) {
    let r = seekwell(args);
    assert_eq!((r.code, &*r.out), (2, ""), "{args:?}: {}", r.err);
    assert!(
        r.err.starts_with("error: ") && !r.err.contains("panicked"),
        "{}",
        r.err
    );
    for s in says {
        assert!(r.err.contains(s), "{args:?}: `{s}` is not in: {}", r.err);
    }
}

#[test]
fn invalid_traces_are_rejected() {
    let good = two_processes(2000);
    let zst = zstd::encode_all(good.as_bytes(), 3).unwrap();
    let line = |l: &str| format!("t_ns,op,sector,sectors\n0,R,0,8\n{l}\n").into_bytes();
    let rows: &[(&str, Vec<u8>, &[&str])] = &[
        ("empty", Vec::new(), &["empty"]),
        (
            "prose",
            b"Dear disk,\nhow are you?\n".to_vec(),
            &["format", "blktrace"],
        ),
        ("binary", vec![0xa5; 5000], &["format"]),
        ("short.zst", zst[..zst.len() / 2].to_vec(), &["allow"]),
        ("text.csv", line("5,R,ten,8"), &["line 3", "ten"]),
        ("op.csv", line("5,Q,10,8"), &["line 3"]),
        ("range.csv", line("5,R,18446744073709551000,8"), &["line 3"]),
        (
            "beyond.csv",
            line("5,R,999999999999,8"),
            &["record 2", "--fit wrap"],
        ),
        (
            "columns.csv",
            b"t_ns,op\n0,R\n".to_vec(),
            &["format", "csv"],
        ),
    ];
    for (name, content, says) in rows {
        let file = scratch(&format!("trace-{name}"), content);
        let mut all = vec![&*file];
        all.extend(*says);
        assert_rejected(&["replay", &file, "-s", "noop"], &all);
    }
    assert_rejected(&["replay", "no/such/trace"], &["no/such/trace"]);
}

#[test]
fn decompression_bomb_is_stopped_at_a_limit() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(b"t_ns,op,sector,sectors\n").unwrap();
    let lines = b"0,R,0,8\n".repeat(1 << 17);
    for _ in 0..200 {
        encoder.write_all(&lines).unwrap();
    }
    let file = scratch("bomb.csv.zst", &encoder.finish().unwrap());
    assert_rejected(
        &["replay", &file, "-s", "noop", "--mode", "depth:1"],
        &[&file],
    );
}

#[test]
fn unsorted_times_are_reported() {
    let text = "t_ns,op,sector,sectors\n0,R,0,8\n9000000,R,80,8\n5000000,R,160,8\n";
    let file = scratch("unsorted.csv", text.as_bytes());
    let out = good(&["replay", &file, "-s", "noop,deadline"]);
    assert!(
        out.contains("with an earlier time than the record before them"),
        "{out}"
    );
}

#[test]
fn invalid_replay_options_are_rejected() {
    let file = scratch("options-trace.csv", two_processes(4).as_bytes());
    let rows: &[(&[&str], &[&str])] = &[
        (&["--mode", "backwards"], &["backwards", "depth:N"]),
        (&["--mode", "scaled:0"], &["scaled:0"]),
        (&["--mode", "depth:0"], &["depth:0"]),
        (&["--format", "papyrus"], &["papyrus", "blktrace"]),
        (&["--format", "blktrace"], &[&file]),
        (&["--device", "tape:reel"], &["tape", "hdd"]),
        (
            &["--device", "hdd:hitachi-7k2000"],
            &["did you mean `hdd:hitachi-7k200`"],
        ),
        (&["--device", "hdd:hitachi-7k200,rpm=-5"], &["rpm"]),
        (
            &["--schedulers", "noop,elevator"],
            &["elevator", "deadline"],
        ),
        (&["--schedulers", ""], &["at least one"]),
        (
            &["--schedulers", "deadline:warp=9"],
            &["warp", "fifo_batch"],
        ),
        (
            &["-s", "noop", "--tunable", "fifo_batch=1"],
            &["fifo_batch"],
        ),
        (
            &["-s", "noop", "--tunable", "deadline.fifo_batch=1"],
            &["not among"],
        ),
        (
            &["-s", "deadline", "--tunable", "deadline.fifo_batch=-1"],
            &["-1"],
        ),
        (&["--hz", "7"], &["--hz", "24"]),
        (&["--nr-requests", "1"], &["--nr-requests", "4..=10240"]),
        (&["--depth", "0"], &["--depth", "1..=65536"]),
        (&["--nomerges", "3"], &["--nomerges", "0..=2"]),
        (
            &["--max-sectors-kb", "1"],
            &["--max-sectors-kb", "4..=32767"],
        ),
        (&["--threads", "0"], &["--threads"]),
        (&["--trace-device", "sda"], &["MAJOR,MINOR"]),
    ];
    for (args, says) in rows {
        assert_rejected(&[&["replay", &file], *args].concat(), says);
    }
}

/// The trace contains only block_rq_* events. The replay uses the issue times, and says so.
#[test]
fn trace_with_only_issue_events_is_replayed_by_issue_times() {
    let text = b"# tracer: nop
     app-300  [002] d..1  8018.233161: block_rq_issue: 8,0 WS 8192 () 1000000 + 16 [app]
  <idle>-0     [004] d.h1  8018.243833: block_rq_complete: 8,0 WS () 1000000 + 16 [0]
     app-300  [002] d..1  8018.253161: block_rq_issue: 8,0 R 8192 () 1000600 + 16 [app]
  <idle>-0     [004] d.h1  8018.254833: block_rq_complete: 8,0 R () 1000600 + 16 [0]
";
    let file = scratch("issue-only.ftrace", text);
    let r = seekwell(&["replay", &file, "-s", "noop,cfq", "--seeds", "1"]);
    assert_eq!(r.code, 0, "{}", r.err);
    let said = r.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("no queue events (Q, block_bio_queue): records are the requests issued"),
        "{said}"
    );
    let json: Value = serde_json::from_str(&good(&[
        "replay", &file, "-s", "noop", "--seeds", "1", "--json",
    ]))
    .expect("JSON");
    let record = &json["records"][0];
    assert_eq!(
        (
            record["read"]["ios"].as_u64(),
            record["write"]["ios"].as_u64()
        ),
        (Some(1), Some(1))
    );
    let r = seekwell(&["report", &file]);
    assert!(
        r.out
            .contains("21.7 ms: 1 read (8.19 kB), 1 write (8.19 kB)"),
        "{}",
        r.out
    );
    assert!(r.err.contains("no queue events"), "{}", r.err);
}
