//! Tests `run` and `workloads` in simulation and on real files.

use crate::{Ran, good, scratch, seekwell};
use seekwell_workload::workloads;
use serde_json::Value;
use std::path::PathBuf;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&good(args)).expect("one JSON document")
}

/// An empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory");
    dir
}

#[test]
fn every_workload_is_listed_and_has_a_page() {
    let list = good(&["workloads"]);
    for w in workloads() {
        let first = |l: &str| l.split_whitespace().next() == Some(w.name);
        assert!(list.lines().any(first), "{}", w.name);
        let brief = good(&["workloads", w.name]);
        assert!(brief.lines().count() <= 24, "{brief}");
        assert!(w.params.iter().all(|p| brief.contains(p.name)), "{brief}");
        let page = good(&["workloads", w.name, "--details"]);
        for p in w.params {
            let line = format!("{}  default {}, {}", p.name, p.default, p.kind);
            assert!(page.contains(&line), "{}: {line}", w.name);
        }
        for p in w.profiles {
            assert!(page.contains(p.name), "{}: {}", w.name, p.name);
        }
    }
    let doc = json(&["workloads", "--json"]);
    assert_eq!(doc.as_array().map(Vec::len), Some(workloads().len()));
    let r = seekwell(&["workloads", "levitation"]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("levitation") && r.err.contains("fs-mark"));
}

#[test]
fn simulated_run_reports_metric_operations_and_marks() {
    let args = [
        "run", "fs-mark", "--param", "files=10", "--json", "-s", "noop,cfq",
    ];
    let doc = json(&[&args[..], &["--device", "hdd:hitachi-7k200"]].concat());
    let records = doc["records"].as_array().expect("records");
    assert_eq!(records.len(), 2);
    for r in records {
        assert_eq!(
            (&r["substrate"], &r["workload"]),
            (&"sim".into(), &"fs-mark".into())
        );
        assert_eq!(r["params"]["files"], "10");
        let rate = r["metric"]["value"].as_f64().expect("a metric");
        assert!(
            (1.0..60.0).contains(&rate),
            "{rate} files/s on a laptop disk"
        );
        let ops = r["operations"].as_array().expect("operations");
        let fsync = ops.iter().find(|o| o["kind"] == "fsync").expect("fsync");
        assert_eq!(fsync["latency"]["count"], 10);
        assert!(
            r["marks"]
                .as_array()
                .is_some_and(|m| m.iter().any(|m| m["name"] == "clock start"))
        );
    }
    assert_eq!(records[1]["scheduler"]["spec"], "cfq");
}

#[test]
fn real_run_leaves_its_directory_unchanged() {
    let dir = directory("real-run");
    std::fs::write(dir.join("mine"), "precious").expect("a file of the user's");
    let path = dir.display().to_string();
    let args = ["run", "fs-mark:files=3,size=64k", "--dir", &path];
    let doc = json(&[&["--quiet"], &args[..], &["--json"]].concat());
    let r = &doc["records"][0];
    assert_eq!(r["substrate"], "host");
    assert!(r["metric"]["value"].as_f64().is_some_and(|v| v > 0.0));
    let left: Vec<_> = std::fs::read_dir(&dir).expect("there").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let text = seekwell(&args);
    assert_eq!(text.code, 0, "{}", text.err);
    assert!(
        text.err.contains("current scheduler, which is not changed"),
        "{}",
        text.err
    );
    assert!(
        text.out.starts_with("Measured on this machine, in "),
        "{}",
        text.out
    );
}

/// The data on a named device belong to the user, so a job file may only read a real device.
#[test]
fn fio_job_never_writes_to_a_real_device() {
    let disk = scratch("a-disk.img", &[7u8; 1 << 20]);
    let dir = directory("fio-raw").display().to_string();
    for rw in ["randwrite", "rw", "trim", "trimwrite"] {
        let job = format!("[j]\nfilename=/dev/disk\nrw={rw}\nsize=256k\n");
        let file = scratch(&format!("raw-{rw}.fio"), job.as_bytes());
        let r = seekwell(&["run", &file, "--dir", &dir, "--raw", &disk]);
        assert_eq!(r.code, 2, "{rw}: {}", r.err);
        assert!(r.err.contains("would destroy its data"), "{rw}: {}", r.err);
        let r = seekwell(&["run", &file, "-d", "ssd:x25m-g2-160", "-s", "noop"]);
        assert_eq!(r.code, 0, "simulated, {rw}: {}", r.err);
    }
    assert!(std::fs::read(&disk).expect("there").iter().all(|b| *b == 7));
    let job = scratch(
        "raw-read.fio",
        b"[j]\nfilename=/dev/disk\nrw=randread\nsize=256k\n",
    );
    let r = seekwell(&["run", &job, "--dir", &dir, "--raw", &disk]);
    assert_eq!(r.code, 0, "{}", r.err);
}

#[test]
fn fio_job_runs_in_simulation_and_on_the_host() {
    let job = "[global]\nsize=256k\nverify=md5\n[w]\nrw=write\nbs=16k\nend_fsync=1\n[r]\nstonewall\nrw=randread\n";
    let file = scratch("both.fio", job.as_bytes());
    let dir = directory("fio-run").display().to_string();
    for args in [
        vec![
            "run",
            &file,
            "-s",
            "noop",
            "-d",
            "ssd:sata3-256-2011",
            "--json",
        ],
        vec!["run", &file, "--dir", &dir, "--json"],
    ] {
        let r = seekwell(&args);
        assert_eq!(r.code, 0, "{}", r.err);
        assert!(r.err.contains("verify: data are not verified"), "{}", r.err);
        let doc: Value = serde_json::from_str(&r.out).expect("JSON");
        let ops = doc["records"][0]["operations"]
            .as_array()
            .expect("operations");
        let count = |k: &str| {
            let of = ops.iter().find(|o| o["kind"] == k);
            of.and_then(|o| o["latency"]["count"].as_u64())
        };
        assert_eq!(
            (count("read"), count("write")),
            (Some(64), Some(16)),
            "{args:?}"
        );
    }
}

#[test]
fn fio_command_and_options_beside_a_job_file_run() {
    let file = scratch("beside.fio", b"[j]\nrw=write\nsize=1g\nfilename=/mnt/x\n");
    let sim = ["-d", "ssd:sata3-256-2011", "-s", "noop"];
    let count = |r: &Ran, kind: &str| {
        assert_eq!(r.code, 0, "{}", r.err);
        let doc: Value = serde_json::from_str(&r.out).expect("JSON");
        let ops = doc["records"][0]["operations"].as_array().cloned();
        let of = ops
            .unwrap_or_default()
            .into_iter()
            .find(|o| o["kind"] == kind);
        of.and_then(|o| o["latency"]["count"].as_u64())
    };
    let mut args = vec!["run", &file, "-p", "size=64k", "-p", "bs=16k", "--json"];
    args.extend(sim);
    assert_eq!(count(&seekwell(&args), "write"), Some(4));
    let mut args = vec!["run", "--json", "--seeds", "1"];
    args.extend(sim);
    args.extend([
        "--",
        "fio",
        "--name=a",
        "--rw=randread",
        "--size",
        "64k",
        "--output=x",
    ]);
    assert_eq!(count(&seekwell(&args), "read"), Some(16));
    for (args, words) in [
        (
            vec!["run", "--", "fio", "--rw=read"],
            "fio command: the command has no job",
        ),
        (
            vec!["run", "--", "fio", "--name=a", "--frob=1"],
            "the option \"frob\"",
        ),
        (
            vec!["run", "fs-mark", "--", "fio", "--name=a"],
            "cannot be used with",
        ),
        (vec!["run", &file, "-p", "frob=1"], "the option \"frob\""),
    ] {
        let r = seekwell(&args);
        assert_eq!(r.code, 2, "{args:?}: {}", r.err);
        assert!(r.err.contains(words), "{args:?}: {}", r.err);
    }
    // A run tells first how long it takes.
    let long = scratch(
        "long.fio",
        b"[j]\nrw=read\nsize=1m\nruntime=10m\ntime_based\n",
    );
    let r = seekwell(&[
        "run",
        &long,
        "-s",
        "noop",
        "-d",
        "hdd:hitachi-7k200",
        "--limit",
        "1",
    ]);
    assert!(
        r.err.contains("long: each run measures 10 min"),
        "{}",
        r.err
    );
}

#[test]
fn invalid_parameters_are_reported_with_value_and_range() {
    let bad_job = scratch("bad.fio", b"[a]\nsize=1m\nfrobnicate=1\n");
    for (args, words) in [
        (
            vec!["run", "levitation"],
            "no workload is called \"levitation\"; there are fs-mark",
        ),
        (
            vec!["run", "fs-mark", "--param", "files=0"],
            "parameter files=0 of fs-mark: expected a number of 1..10000000",
        ),
        (
            vec!["run", "fs-mark", "--param", "files"],
            "write NAME=VALUE",
        ),
        (
            vec!["run", "fs-mark", "--param", "colour=red"],
            "has no parameter \"colour\"",
        ),
        (vec!["run", "fs-mark", "--machine", "wings=2"], "--machine"),
        (
            vec!["run", "fs-mark", "--dir", "/nonexistent/here"],
            "/nonexistent/here",
        ),
        (vec!["run", "seeker", "--dir", "."], "--raw"),
        (vec!["run", "missing.fio"], "missing.fio"),
        (
            vec!["run", &bad_job],
            "line 3: the option \"frobnicate\" is not supported",
        ),
        (
            vec!["compare", "--workload", "fs-mark:files=x"],
            "parameter files=x of fs-mark",
        ),
    ] {
        let r = seekwell(&args);
        assert_eq!(r.code, 2, "{args:?}: {}", r.err);
        assert!(r.err.contains(words), "{args:?}: {}", r.err);
        assert_eq!(r.out, "", "{args:?}");
    }
    let r = seekwell(&["run", "fs-mark", "--dir", ".", "--device", "ssd"]);
    assert_eq!(r.code, 2, "a real run has the device it has: {}", r.err);
}

#[test]
fn run_stopped_by_a_limit_reports_its_partial_results() {
    let args = [
        "run",
        "fs-mark",
        "-s",
        "noop",
        "-d",
        "hdd:hitachi-7k200",
        "--machine",
        "limit=2",
        "--json",
    ];
    let r = seekwell(&args);
    assert_eq!(r.code, 4, "{}", r.err);
    let doc: Value = serde_json::from_str(&r.out).expect("JSON");
    assert!(
        doc["records"][0]["metric"]["value"]
            .as_f64()
            .is_some_and(|v| v > 0.0)
    );
}
