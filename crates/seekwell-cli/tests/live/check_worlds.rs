//! Tests `seekwell check-worlds`: figures that agree on any machine, and the removal of everything
//! that it creates.

use crate::disk::{attached, missing_requirement, mounted, run, serialize_tests, until, written};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const NEEDED: &[&str] = &["losetup", "mkfs.ext4", "debugfs", "e2fsck", "mount"];

fn command(args: &[&str]) -> Command {
    // A background job ignores SIGINT, and so do its child processes. The command resets this.
    let mut c = Command::new("env");
    c.args([
        "--default-signal=INT,TERM,HUP",
        env!("CARGO_BIN_EXE_seekwell"),
        "check-worlds",
    ])
    .args(args)
    .stdin(Stdio::null());
    c
}

/// Returns the reason why the test cannot run here, if there is one.
fn skip() -> Option<String> {
    missing_requirement(NEEDED).or_else(|| {
        let there = Path::new("/sys/kernel/tracing").exists();
        (!there).then(|| "no tracefs".to_owned())
    })
}

/// A separate directory for temporary files of the command, in which leftovers can be found.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let pid = std::process::id();
        let dir = std::env::temp_dir().join(format!("seekwell-live-worlds-{name}-{pid}"));
        std::fs::create_dir_all(&dir).expect("a directory");
        Place(dir)
    }
    fn left(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.0).expect("listed");
        entries.flatten().map(|e| e.path()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Takes the rows that have a limit and that this run can judge. Rows that depend on time can be
/// judged only if the machine was not busy. Returns descriptions of the rows that differ, and the
/// number of all these rows. Throughput is left out, because it depends on the machine.
fn judged_rows(workload: &Value) -> (Vec<String>, usize) {
    let rows = workload["verdict"]["rows"].as_array().expect("rows");
    let limited = rows
        .iter()
        .filter(|r| r["name"] != "throughput" && r["limit"].is_f64() && r["judged"] == true);
    let mut bad = Vec::new();
    let mut all = 0;
    for row in limited {
        let number = |key: &str| row[key].as_f64().unwrap_or_default();
        let (real, sim) = (number("real"), number("sim"));
        all += 1;
        if (sim - real).abs() > (real * number("limit")).max(number("slack")) {
            let (name, unit) = (&row["name"], &row["unit"]);
            bad.push(format!("{name} {unit}: real {real}, simulated {sim}"));
        }
    }
    (bad, all)
}

fn row<'a>(workload: &'a Value, name: &str, unit: &str) -> &'a Value {
    let rows = workload["verdict"]["rows"].as_array().expect("rows");
    let found = rows.iter().find(|r| r["name"] == name && r["unit"] == unit);
    found.unwrap_or_else(|| panic!("no row {name} {unit}"))
}

#[test]
fn simulated_and_real_workloads_send_the_same_requests() {
    let _turn = serialize_tests();
    if let Some(skip) = skip() {
        println!("skipped: check-worlds: {skip}");
        return;
    }
    let place = Place::new("same");
    let keep = place.0.join("traces/of/these");
    let out = command(&[
        "--json",
        "--size",
        "1G",
        "--keep",
        &keep.display().to_string(),
        "fs-mark:files=60,size=16KiB",
        "postmark:files=4000,transactions=4000,high=16KiB,low=512,sync=2000",
        "tiobench:size=4MiB,threads=2,random=50",
        "fs-mark:files=50",
        "iozone:size=32MiB,flush=yes",
    ])
    .output()
    .expect("the binary runs");
    let err = String::from_utf8_lossy(&out.stderr);
    // Exit code 1 means that something differs, which is checked here. Exit code 5 means that the
    // machine was busy.
    assert!(matches!(out.status.code(), Some(0 | 1 | 5)), "{err}");
    let all: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(all["missed"].as_array().map(Vec::len), Some(0), "{err}");
    let workloads = all["workloads"].as_array().expect("workloads");
    assert_eq!(workloads.len(), 5);
    for workload in workloads {
        let name = &workload["verdict"]["workload"];
        let (bad, limited) = judged_rows(workload);
        let rate = workload["verdict"]["rows"]
            .as_array()
            .and_then(|r| r.last());
        let rate = rate.expect("throughput");
        let (real, sim, unit) = (&rate["real"], &rate["sim"], &rate["unit"]);
        println!("{name}: {limited} counts; {real} {unit} real, {sim} simulated");
        assert!(bad.is_empty(), "{name}: {}", bad.join("; "));
        assert!(limited >= 4, "{name}: {limited} counts with a limit");
        // The null model has no journal.
        assert!(row(workload, "journal", "requests")["null"] == 0.0);
    }
    // PostMark is synced once. It has data that no task waits for, and metadata that are written in
    // place. The other workloads have neither.
    for name in ["async data", "metadata"] {
        let real = row(&workloads[1], name, "KiB")["real"].as_f64();
        assert!(real > Some(100.0), "{name}: {real:?} KiB");
    }
    for name in ["fs-mark", "postmark", "tiobench"] {
        let trace = std::fs::read_to_string(keep.join(format!("{name}.ftrace")));
        assert!(trace.expect("kept").contains("block_rq_issue"), "{name}");
    }
}

#[test]
fn device_without_a_model_is_not_judged_and_no_event_is_lost() {
    let _turn = serialize_tests();
    if let Some(skip) = skip() {
        println!("skipped: check-worlds --raw: {skip}");
        return;
    }
    let out = command(&[
        "--raw",
        "--size",
        "512M",
        "random-read:size=64MiB,seconds=2s",
    ])
    .output()
    .expect("the binary runs");
    let (text, err) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(0), "{text}{err}");
    assert!(text.contains("not judged, because"), "{text}");
    for word in ["agree", "differs", "the kernel lost"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until a run has reached a stage, which its files show.
fn wait_for(child: &mut Child, what: &str, there: impl Fn() -> bool) {
    until(what, || {
        let over = child.try_wait().expect("a child");
        assert!(over.is_none(), "ended before {what}: {over:?}");
        there()
    });
}

/// Checks that a run has left no mounts, loop devices, trace instances or files.
fn assert_no_leftovers(place: &Place, pid: u32) {
    let own = place.0.join(format!("seekwell-worlds-{pid}"));
    assert!(!mounted(&own.join("mnt")) && !mounted(&own.join("fuse")));
    assert!(!attached(&place.0));
    assert_eq!(place.left(), Vec::<PathBuf>::new());
    for root in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        let list = std::fs::read_dir(Path::new(root).join("instances"));
        for e in list.into_iter().flatten().flatten() {
            let name = e.file_name().to_string_lossy().into_owned();
            assert!(!name.starts_with(&format!("seekwell-{pid}-")), "{name}");
        }
    }
}

#[test]
fn signal_at_any_stage_leaves_nothing_behind() {
    let _turn = serialize_tests();
    if let Some(skip) = skip() {
        println!("skipped: signals to check-worlds: {skip}");
        return;
    }
    // The stages are: the disk is served; a loop device is attached and the file system is created;
    // the file system is mounted; the workload is running.
    for (stage, signal) in [
        ("fuse", "INT"),
        ("loop", "TERM"),
        ("mnt", "INT"),
        ("work", "TERM"),
    ] {
        let place = Place::new(stage);
        let mut child = command(&["--size", "1G", "fs-mark:files=4000,size=16KiB"])
            .env("TMPDIR", &place.0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let pid = child.id();
        let own = place.0.join(format!("seekwell-worlds-{pid}"));
        wait_for(&mut child, stage, || match stage {
            "loop" => attached(&own),
            "work" => written(&own.join("mnt")) > 1 << 20,
            dir => mounted(&own.join(dir)),
        });
        run("kill", &["-s", signal, &pid.to_string()]);
        let Output { status, stderr, .. } = child.wait_with_output().expect("it ends");
        let err = text(&stderr);
        let number = if signal == "INT" { 2 } else { 15 };
        assert_eq!(status.code(), Some(128 + number), "{stage}: {err}");
        assert!(err.contains("0 of 1"), "{stage}: {err}");
        assert_no_leftovers(&place, pid);
        println!("{stage}: nothing left after SIG{signal}");
    }
}

#[test]
fn killed_run_is_cleaned_up_by_its_server_and_the_next_run() {
    let _turn = serialize_tests();
    if let Some(skip) = skip() {
        println!("skipped: killing check-worlds: {skip}");
        return;
    }
    let place = Place::new("kill");
    let mut child = command(&["--size", "1G", "fs-mark:files=4000,size=16KiB"])
        .env("TMPDIR", &place.0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let pid = child.id();
    let own = place.0.join(format!("seekwell-worlds-{pid}"));
    wait_for(&mut child, "the mount", || mounted(&own.join("mnt")));
    child.kill().expect("ours");
    child.wait().expect("it ends");
    until("the letting go of its disk", || {
        !mounted(&own.join("fuse")) && !mounted(&own.join("mnt")) && !attached(&own)
    });
    // A workload that does not fit on the disk fails on the real kernel. Everything is removed
    // nevertheless.
    let out = command(&["--size", "64M", "fs-mark:files=100,size=1MiB"])
        .env("TMPDIR", &place.0)
        .output()
        .expect("the binary runs");
    let err = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{err}");
    assert!(err.contains("could not be compared"), "{err}");
    assert_no_leftovers(&place, pid);
}
