//! `convert`, standard input, and the two CSV readers.

use crate::{Ran, command, good, ran, scratch, seekwell};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Makes a trace of two processes with everything that the exchange format can express.
fn trace() -> String {
    let mut text = "t_ns,op,flags,sector,sectors,pid,cpu,device,t_complete\n".to_owned();
    for i in 0..200u64 {
        let (op, flags) = if i % 4 == 0 { ("W", "sync") } else { ("R", "") };
        let (t, sector, pid) = (i * 2_000_500, (i * 7919) % 100_000 * 8, 10 + i % 2);
        text += &format!("{t},{op},{flags},{sector},8,{pid},0,8:0,{}\n", t + 900_000);
    }
    text
}

fn scratch_path(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

/// Runs the command with these bytes on standard input.
fn run_with_stdin(args: &[&str], bytes: &[u8]) -> Ran {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut to = child.stdin.take().expect("a pipe");
    let bytes = bytes.to_vec();
    // The command may stop reading before all bytes are written.
    let feed = std::thread::spawn(move || drop(to.write_all(&bytes)));
    let out = child.wait_with_output().expect("it ends");
    feed.join().expect("fed");
    ran(out)
}

#[test]
fn converted_traces_survive_a_round_trip() {
    let csv = scratch("there.csv", trace().as_bytes());
    let canonical = good(&["convert", &csv]);
    assert_eq!(canonical.lines().count(), 201);
    for (name, drops) in [
        ("there.csv.zst", ""),
        ("there.blktrace", ""),
        ("there.blkparse.gz", ""),
        ("there.vscsi", "pids (200)"),
        ("there.iolog.zst", "completions (200)"),
    ] {
        let out = scratch_path(name);
        let path = out.display().to_string();
        let r = seekwell(&["convert", &csv, "-o", &path]);
        assert_eq!((r.code, &*r.out), (0, ""), "{name}: {}", r.err);
        assert!(r.err.contains(drops), "{name}: {}", r.err);
        assert_eq!(r.err.is_empty(), drops.is_empty(), "{name}: {}", r.err);
        let back = seekwell(&["convert", &path, "--to", "csv"]);
        assert_eq!(back.code, 0, "{}", back.err);
        if drops.is_empty() {
            assert_eq!(back.out, canonical, "{name}");
        } else {
            assert_eq!(back.out.lines().count(), 201, "{name}");
        }
    }
    // Converts text to binary, and back to text.
    let text = good(&["convert", &csv, "--to", "blkparse"]);
    let first = scratch("text.blkparse", text.as_bytes());
    let binary = scratch_path("text.blktrace").display().to_string();
    assert_eq!(good(&["convert", &first, "-o", &binary]), "");
    assert_eq!(good(&["convert", &binary, "--to", "blkparse"]), text);
}

#[test]
fn convert_selects_time_range_process_and_several_inputs() {
    let csv = scratch("part.csv", trace().as_bytes());
    let part = good(&[
        "convert", &csv, "--from", "0.1", "--until", "0.2", "--pid", "10",
    ]);
    // The range contains the records 50 to 99. Those of process 10 have even numbers.
    assert_eq!(part.lines().count(), 1 + 25);
    assert!(
        part.lines()
            .nth(1)
            .is_some_and(|l| l.starts_with("25000,R,")),
        "{part}"
    );
    assert_eq!(good(&["convert", &csv, "--limit", "7"]).lines().count(), 8);
    let twice = good(&["convert", &csv, &csv]);
    assert_eq!(twice.lines().count(), 401);
    let times: Vec<u64> = twice
        .lines()
        .skip(1)
        .map(|l| l.split(',').next().unwrap().parse().unwrap())
        .collect();
    assert!(times.is_sorted() && times[0] == times[1]);
}

#[test]
fn invalid_conversions_are_rejected() {
    let csv = scratch("refused.csv", trace().as_bytes());
    let before = std::fs::metadata(&csv).unwrap().ino();
    let link = scratch_path("refused-link.csv");
    std::fs::hard_link(&csv, &link).unwrap();
    let link = link.display().to_string();
    for (args, says) in [
        (vec!["convert", &csv, "-o", &csv], "the same file"),
        (vec!["convert", &csv, "-o", &link], "the same file"),
        (
            vec!["convert", &csv, "-o", "x.unknown"],
            "--to FORMAT, one of blktrace",
        ),
        (
            vec!["convert", &csv, "--to", "ftrace"],
            "can be read but not written",
        ),
        (
            vec!["convert", &csv, "--to", "blktrase"],
            "did you mean `blktrace`",
        ),
        (vec!["convert", "no/such/file"], "no/such/file"),
        (
            vec!["convert", &csv, "--trace-device", "9,9"],
            "its devices are (records): 8,0 (200)",
        ),
        (
            vec!["convert", &csv, "--pid", "3"],
            "its pids are (records): 10 (100), 11 (100)",
        ),
        (vec!["convert", &csv, "--from", "soon"], "0.25"),
    ] {
        let r = seekwell(&args);
        assert_eq!((r.code, &*r.out), (2, ""), "{args:?}: {}", r.err);
        assert!(r.err.contains(says), "{args:?}: {}", r.err);
    }
    assert_eq!(std::fs::read_to_string(&csv).unwrap(), trace(), "untouched");
    assert_eq!(std::fs::metadata(&csv).unwrap().ino(), before);
}

/// A fuzzer found this table. The library panics on it if overflow checks are on.
#[test]
fn harmful_parquet_file_is_rejected_in_one_line() {
    let harmful = crate::project("crates/seekwell-trace/tests/data/parquet/harmful.parquet");
    let r = seekwell(&["convert", &harmful, "--to", "csv"]);
    assert_eq!(r.code, 2, "{}", r.err);
    assert!(r.err.contains("cannot be read as Parquet"), "{}", r.err);
    assert_eq!(r.err.lines().count(), 1, "{}", r.err);
}

#[test]
fn standard_input_is_accepted_wherever_a_trace_file_is() {
    let text = trace();
    let csv = scratch("stdin.csv", text.as_bytes());
    let zst = zstd::encode_all(text.as_bytes(), 3).unwrap();
    // A stream can be read only once, so only one seed is possible.
    let one = ["-s", "noop,cfq,bfq-v7r8", "--seeds", "1", "--quiet"];
    let from_file = good(&[&["replay", &*csv][..], &one].concat());
    for bytes in [text.as_bytes(), &zst] {
        let r = run_with_stdin(&[&["replay", "-"][..], &one].concat(), bytes);
        assert_eq!((r.code, &*r.err), (0, ""));
        assert_eq!(r.out, from_file.replace(&csv, "standard input"));
        let r = run_with_stdin(&["convert", "-"], bytes);
        assert_eq!((r.code, &*r.err), (0, ""));
        assert_eq!(r.out, good(&["convert", &csv]));
        let r = run_with_stdin(&["explain", "-", "--csv", "-s", "noop"], bytes);
        assert_eq!(r.code, 0, "{}", r.err);
        assert_eq!(r.out, good(&["explain", &csv, "--csv", "-s", "noop"]));
    }
    let r = run_with_stdin(&["replay", "-", "-s", "noop"], b"");
    assert_eq!(r.code, 2);
    assert!(r.err.contains("standard input: is empty"), "{}", r.err);
    let r = run_with_stdin(&["replay", "-", "-s", "noop"], b"Dear disk,\n");
    assert!(
        r.code == 2 && r.err.contains("standard input: no format"),
        "{}",
        r.err
    );
}

/// An endless stream is read only up to the limit.
#[test]
fn replay_stops_reading_a_pipe_at_the_limit() {
    let mut child = command(&[
        "replay",
        "-",
        "-s",
        "noop,deadline",
        "--limit",
        "50",
        "--quiet",
    ])
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let mut to = child.stdin.take().unwrap();
    let feed = std::thread::spawn(move || {
        to.write_all(b"t_us,op,sector,n\n").unwrap();
        let mut n = 0u64;
        while writeln!(to, "{},R,{},8", n * 100, n % 1000 * 8).is_ok() {
            n += 1;
        }
        n
    });
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    assert!(feed.join().unwrap() < 1_000_000, "it stopped reading");
}

/// `explain` and `replay` read the same request list.
#[test]
fn explain_and_replay_read_the_same_csv_files() {
    for (name, text) in [
        (
            "a",
            "t_us,id,pid,op,sector,n\n0,1,5,R,800,8\n10,2,5,W,80,8\n",
        ),
        ("b", "0,1,5,R,800,8\n10,2,5,W,80,8\n"),
        (
            "c",
            "t_ns,op,sector,sectors,pid,t_complete\n0,R,800,8,5,9\n10000,W,80,8,5,20000\n",
        ),
        (
            "d",
            "t_ms,op,offset,bytes,pid\n0,read,409600,4096,5\n0.01,write,40960,4096,5\n",
        ),
    ] {
        let file = scratch(&format!("dialect-{name}.csv"), text.as_bytes());
        let log = good(&["explain", &file, "--csv", "-s", "noop"]);
        assert_eq!(
            log, "id,t_ns,event\n1,0,dispatch\n2,5000000,dispatch\n",
            "{name}"
        );
        let csv = good(&["convert", &file]);
        let lines: Vec<&str> = csv.lines().skip(1).collect();
        assert!(lines[0].starts_with("0,R,,800,8,5,"), "{name}: {csv}");
        assert!(lines[1].starts_with("10000,W,,80,8,5,"), "{name}: {csv}");
        let out = good(&["replay", &file, "-s", "noop"]);
        assert!(out.contains("a csv trace"), "{out}");
    }
}

#[test]
fn skipped_records_are_reported() {
    let file = scratch(
        "gone.csv",
        b"t_us,op,sector,n\n0,R,0,8\n1,R,8,0\n2,W,8,0\n3,R,8,8\n",
    );
    let out = good(&["replay", &file, "-s", "noop"]);
    assert!(
        out.contains("2 reads, writes or discards of length zero skipped"),
        "{out}"
    );
    let none = scratch("none.csv", b"t_us,op,sector,n\n0,R,8,0\n");
    let r = seekwell(&["replay", &none, "-s", "noop"]);
    assert_eq!(r.code, 2, "{}", r.out);
    assert!(
        r.err.contains("no record to replay") && r.err.contains("length zero"),
        "{}",
        r.err
    );
    let r = seekwell(&["replay", &file, "-s", "noop", "--trace-device", "99,99"]);
    assert_eq!((r.code, &*r.out), (2, ""));
    assert!(
        r.err.contains("its devices are (records): 0,0 (4)"),
        "{}",
        r.err
    );
    let long = scratch("long.csv", b"t_us,op,sector,n\n0,D,0,4000000000\n");
    let r = seekwell(&["replay", &long, "-s", "noop", "--fit", "wrap"]);
    assert!(
        r.code == 2 && r.err.contains("longer than the whole device"),
        "{}",
        r.err
    );
    assert!(!r.err.contains("--fit"), "it was given already: {}", r.err);
    let many = b"7,R,0,4096,100\n8,W,0,4096,200\n7,R,4096,4096,300\n";
    let many = scratch("many.csv", many);
    let r = seekwell(&["replay", &many, "-s", "noop"]);
    assert!(
        r.code == 2 && r.err.contains("holds 2 volumes"),
        "{}",
        r.err
    );
    good(&["replay", &many, "-s", "noop", "--trace-device", "7"]);
}

/// Every option that a message recommends must exist.
#[test]
fn remedies_name_only_existing_options() {
    let helps: String = [
        "replay",
        "convert",
        "explain",
        "compare",
        "run",
        "serve",
        "calibrate",
        "host",
        "switch",
        "new",
        "results",
        "export",
        "import",
        "diff",
        "apply",
        "record",
        "report",
        "recommend",
        "reproduce",
    ]
    .iter()
    .chain(
        [
            "check-worlds",
            "defaults",
            "demo",
            "devices",
            "schedulers",
            "workloads",
            "formats",
        ]
        .iter(),
    )
    .map(|c| good(&[c, "--help"]))
    .chain([
        good(&["host", "restore", "--help"]),
        good(&["arena", "--help"]),
        good(&["new", "device", "--help"]),
        good(&["guest", "build", "--help"]),
        good(&["guest", "run", "--help"]),
        good(&["guest", "diff", "--help"]),
        good(&["guest", "check", "--help"]),
        good(&["predict", "--help"]),
        good(&["trial", "--help"]),
    ])
    .collect();
    let options = |text: &str| -> Vec<String> {
        let starts = text.match_indices("--").map(|(i, _)| i);
        let names = starts.map(|i| {
            let rest = &text[i + 2..];
            let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-');
            rest[..end.unwrap_or(rest.len())].to_owned()
        });
        names
            .filter(|n| n.len() > 1 && !n.starts_with('-'))
            .collect()
    };
    let known = options(&helps);
    assert!(known.iter().any(|o| o == "trace-device"));
    let mut bad = Vec::new();
    let mut files = Vec::new();
    for dir in [
        "crates/seekwell-trace/src",
        "crates/seekwell-cli/src",
        "crates/seekwell-sim/src",
    ] {
        sources(Path::new(&crate::project(dir)), &mut files);
    }
    assert!(files.len() > 60);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (n, line) in text.lines().enumerate() {
            // Messages are in quotes. The options of `zstd -d --long` and of cargo belong to other
            // programs.
            let others = line.contains("zstd -d") || line.contains("cargo ");
            let said = line.contains('"') && !line.trim_start().starts_with("//");
            for o in options(line).iter().filter(|_| said && !others) {
                // An option that is passed to a child process is not advice to the user.
                let passed_on = line.contains(&format!("\"--{o}\""));
                if !known.contains(o) && !passed_on {
                    bad.push(format!("{}:{}: --{o}", file.display(), n + 1));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn formats_page_equals_the_registry() {
    let page = std::fs::read_to_string(crate::project("docs/formats.md")).unwrap_or_default();
    assert!(
        page == good(&["formats", "--markdown"]),
        "docs/formats.md is not that of the registry: run `make docs`"
    );
}
