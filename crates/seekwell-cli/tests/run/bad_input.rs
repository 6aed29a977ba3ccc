//! For any wrong input, the exit code is 2, and one line names the file, the position and the
//! remedy.

use crate::{project, scratch, seekwell};
use std::io::Write;

/// Checks that a command prints one message, does not panic, and prints nothing on stdout.
fn assert_rejected(args: &[&str], says: &[&str]) {
    let r = seekwell(args);
    assert_eq!(r.code, 2, "{args:?}: {}{}", r.out, r.err);
    assert_eq!(r.out, "", "{args:?}");
    assert!(r.err.starts_with("error: "), "{args:?}: {}", r.err);
    assert!(!r.err.contains("panicked"), "{args:?}: {}", r.err);
    for s in says {
        assert!(r.err.contains(s), "{args:?}: `{s}` is not in: {}", r.err);
    }
}

const CASE: &str = r#"{"case":"a","elevator":"noop","input":[[0,1,1,"R",0,8]]}"#;

#[test]
fn invalid_case_files_are_rejected() {
    let zst = |text: &[u8]| zstd::encode_all(text, 3).unwrap();
    let whole = zst(CASE.repeat(2000).as_bytes());
    let rows: &[(&str, Vec<u8>, &[&str])] = &[
        ("empty", Vec::new(), &["line 1", "no case"]),
        ("blank", b"\n\n# only a comment\n".to_vec(), &["no case"]),
        ("binary", vec![0xff; 300], &["line 1", "not text"]),
        (
            "prose",
            b"Dear disk,\n".to_vec(),
            &["line 1", "t_us,id,pid,op,sector,n"],
        ),
        ("half.jsonl", CASE.as_bytes()[..30].to_vec(), &["line 1"]),
        (
            "second.jsonl",
            format!("{CASE}\n{{\"case\":3}}\n").into_bytes(),
            &["line 2"],
        ),
        (
            "key.jsonl",
            CASE.replace("case\"", "kase\"").into_bytes(),
            &["line 1", "kase"],
        ),
        (
            "short.zst",
            whole[..whole.len() / 2].to_vec(),
            &["line 1", "fetch"],
        ),
        (
            "broken.zst",
            b"\x28\xb5\x2f\xfdgarbage!".to_vec(),
            &["broken"],
        ),
        (
            "broken.gz",
            b"\x1f\x8bgarbage!garbage!".to_vec(),
            &["broken"],
        ),
        (
            "op.csv",
            b"0,1,1,Q,0,8\n".to_vec(),
            &["row 1", "op \"Q\"", "R W S"],
        ),
        (
            "length.csv",
            b"0,1,1,R,0,0\n".to_vec(),
            &["row 1", "length"],
        ),
        (
            "sector.csv",
            b"0,1,1,R,99999999999999999,8\n".to_vec(),
            &["row 1", "sector"],
        ),
        (
            "time.csv",
            b"-5,1,1,R,0,8\n".to_vec(),
            &["row 1", "microseconds"],
        ),
        (
            "columns.csv",
            b"0,1,1,R,0\n".to_vec(),
            &["line 1", "t_us,id,pid,op,sector,n"],
        ),
    ];
    for (name, content, says) in rows {
        let file = scratch(&format!("bad-{name}"), content);
        let mut all = vec![&*file];
        all.extend(*says);
        assert_rejected(&["explain", &file], &all);
    }
}

#[test]
fn a_decompression_bomb_stops_at_the_line_limit() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let zeros = vec![b' '; 1 << 20];
    for _ in 0..1024 {
        encoder.write_all(&zeros).unwrap();
    }
    let file = scratch("bomb.zst", &encoder.finish().unwrap());
    assert_rejected(&["explain", &file], &[&file, "line 1", "16 MiB"]);
}

#[test]
fn cases_with_unknown_or_invalid_settings_are_rejected() {
    let with = |from: &str, to: &str| CASE.replace(from, to);
    let rows: &[(&str, String, &[&str])] = &[
        (
            "elevator",
            with("noop", "elevator-9000"),
            &["elevator-9000", "deadline"],
        ),
        ("version", with("noop", "deadline-9.9"), &["9.9", "7.0"]),
        (
            "hz",
            with("\"input\"", "\"hz\":0,\"input\""),
            &["hz 0", "1..=10000"],
        ),
        (
            "depth",
            with("\"input\"", "\"device\":{\"depth\":0},\"input\""),
            &["depth 0"],
        ),
        (
            "harness",
            with("\"input\"", "\"harness\":\"moon\",\"input\""),
            &["moon", "serial"],
        ),
        (
            "dispatch",
            with("\"input\"", "\"dispatch\":[[\"a\"]],\"input\""),
            &["dispatch row 1"],
        ),
        (
            "tunable",
            with("\"input\"", "\"tunables\":{\"warp\":9},\"input\""),
            &["warp"],
        ),
    ];
    for (name, case, says) in rows {
        let file = scratch(&format!("asks-{name}.jsonl"), case.as_bytes());
        assert_rejected(&["explain", &file], says);
    }
}

#[test]
fn out_of_range_options_are_rejected() {
    let case = project("cases/noop.jsonl");
    let csv = scratch("options.csv", b"0,1,1,R,0,8\n");
    let rows: &[(&[&str], &[&str])] = &[
        (
            &["explain", "no/such/file"],
            &["no/such/file", "No such file"],
        ),
        (&["explain", &case, "--case", "nil"], &["nil", "noop-N-1"]),
        (
            &["explain", &csv, "--scheduler", "elevator"],
            &["elevator", "noop"],
        ),
        (
            &["explain", &csv, "--tunable", "warp=9"],
            &["warp", "fifo_batch"],
        ),
        (
            &["explain", &csv, "--tunable", "fifo_batch"],
            &["NAME=VALUE"],
        ),
        (
            &["explain", &csv, "--tunable", "fifo_batch=-1"],
            &["-1", "0.."],
        ),
        (
            &["explain", &csv, "--tunable", "fifo_batch=many"],
            &["many", "whole number"],
        ),
        (
            &["explain", &csv, "--tunable", "fifo_batch=99999999999"],
            &["99999999999"],
        ),
        (&["explain", &csv, "--hz", "0"], &["--hz", "1..=10000"]),
        (&["explain", &csv, "--depth", "0"], &["--depth"]),
        (&["explain", &csv, "--service-us", "NaN"], &["--service-us"]),
        (&["explain", &csv, "--csv", "--json"], &["--json"]),
        (&["schedulers", "elevator"], &["elevator", "mq-deadline"]),
        (&["completions", "tcsh"], &["tcsh", "bash"]),
        (&["levitate"], &["levitate"]),
    ];
    for (args, says) in rows {
        assert_rejected(args, says);
    }
}

/// A faulty preset of the user gives one line with file, line and remedy, wherever a device is
/// named.
#[test]
fn faulty_device_files_are_rejected_with_line_and_remedy() {
    let preset = std::fs::read_to_string(project(
        "crates/seekwell-device/presets/hdd-hitachi-7k200.toml",
    ))
    .unwrap();
    let card = std::fs::read_to_string(project(
        "crates/seekwell-device/presets/emmc-motog-sandisk8.toml",
    ))
    .unwrap();
    let rows: &[(&str, &str, &str, &str, &[&str])] = &[
        (
            "key",
            &preset,
            "rpm = ",
            "rpms = ",
            &["toml:14:", "unknown parameter \"rpms\"", "`rpm`"],
        ),
        (
            "unit",
            &preset,
            "unit = \"rpm\", ",
            "",
            &["toml:14:", "has no unit", "rpm"],
        ),
        (
            "geometry",
            &preset,
            "value = 195371568",
            "value = 20",
            &["toml:13:", "cylinders", "check"],
        ),
        (
            "card",
            &card,
            "value = 8, unit = \"KiB\"",
            "value = 3, unit = \"KiB\"",
            &["toml:26:", "multiple"],
        ),
        (
            "kind",
            &card,
            "kind = \"emmc\"",
            "kind = \"floppy\"",
            &["toml:6:", "floppy", "hdd"],
        ),
    ];
    for (name, text, replace, by, says) in rows {
        assert!(text.contains(replace), "{name}");
        let file = scratch(
            &format!("preset-{name}.toml"),
            text.replacen(replace, by, 1).as_bytes(),
        );
        for args in [
            vec!["devices", &*file],
            vec!["compare", "--device", &*file, "--schedulers", "noop"],
        ] {
            let mut all = vec![&*file];
            all.extend(*says);
            assert_rejected(&args, &all);
        }
    }
}

#[test]
fn check_worlds_rejects_bad_input_before_any_action() {
    assert_rejected(&["check-worlds", "nope"], &["nope", "fs-mark"]);
    assert_rejected(&["check-worlds", "fs-mark:filez=3"], &["filez", "files"]);
    assert_rejected(&["check-worlds", "hdparm"], &["hdparm", "raw device"]);
    assert_rejected(&["check-worlds", "--device", "hdd:nope"], &["nope"]);
    assert_rejected(
        &["check-worlds", "--scheduler", "zyxwvut"],
        &["zyxwvut", "mq-deadline"],
    );
    assert_rejected(
        &["check-worlds", "--machine", "wheels=4"],
        &["--machine", "wheels", "cores"],
    );
    if rustix::process::geteuid().is_root() {
        let file = scratch("keep-below-a-file", b"");
        let dir = format!("{file}/traces");
        assert_rejected(
            &["check-worlds", "--keep", &dir],
            &["--keep", "traces", "can be created or written"],
        );
    } else {
        assert_rejected(&["check-worlds"], &["sudo seekwell check-worlds"]);
    }
}
