//! Repeats the tests of ext4 on xfs. The scheduler below the file system is found. Schedulers are
//! set, measured and restored. The recording equals the requests to the device.

use crate::disk::{missing_requirement, run};
use crate::host::document;
use crate::rig::Rig;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// A little more than the minimum size of mkfs.xfs.
const MIB: u64 = 320;

/// A mounted xfs on the test's device.
struct Xfs {
    at: PathBuf,
    rig: Rig,
}

impl Xfs {
    fn new(what: &str) -> Option<Xfs> {
        if let Some(why) = missing_requirement(&["mkfs.xfs", "mount"]) {
            println!("skipped: {what}: {why}");
            return None;
        }
        if !fs::read_to_string("/proc/filesystems").is_ok_and(|t| t.contains("\txfs\n")) {
            println!("skipped: {what}: this kernel has no xfs, or has not loaded it");
            return None;
        }
        let rig = Rig::with(what, MIB)?;
        let node = format!("/dev/{}", rig.name);
        run("mkfs.xfs", &["-q", "-f", &node]);
        let at = rig.dir.join("mnt");
        fs::create_dir(&at).expect("made");
        run("mount", &["-t", "xfs", &node, &at.display().to_string()]);
        fs::create_dir(at.join("work")).expect("made");
        Some(Xfs { at, rig })
    }
}

impl Drop for Xfs {
    fn drop(&mut self) {
        let at = self.at.display().to_string();
        let _ = std::process::Command::new("umount").arg(at).status();
    }
}

#[test]
fn host_experiment_runs_on_xfs() {
    let Some(x) = Xfs::new("an experiment on xfs") else {
        return;
    };
    let work = x.at.join("work").display().to_string();
    let r = x.rig.run(&["host", &work]);
    assert_eq!(r.code, Some(0), "{}", r.err);
    let says = format!("A scheduler can act on {}; `none` is active", x.rig.name);
    assert!(r.out.contains("xfs") && r.out.contains(&says), "{}", r.out);
    let results = x.rig.dir.join("results").display().to_string();
    let r = x.rig.run(&[
        "compare",
        "--host",
        &work,
        "--workload",
        "fs-mark:files=10,workers=1",
        "--schedulers",
        "none,mq-deadline,bfq",
        "--seeds",
        "2",
        "--confirm",
        &x.rig.name,
        "--results",
        &results,
        "--json",
    ]);
    assert_eq!(r.code, Some(0), "{}", r.err);
    let doc = document(&r);
    assert_eq!(doc["failed"], 0, "{}", r.err);
    let sides = doc["analysis"]["cells"][0]["sides"].as_array();
    let sides = sides.expect("three");
    assert_eq!(sides.len(), 3);
    for side in sides {
        println!("fs-mark on xfs: {} files/s", side["mean"]);
        assert!(side["mean"].as_f64() > Some(0.0), "{side}");
    }
    assert_eq!(
        fs::read_dir(&work).expect("there").count(),
        0,
        "nothing is left"
    );
    x.rig.is_as_before();
}

/// A megabyte of direct writes is a megabyte in the recording, whatever the file system's log adds.
#[test]
fn recording_on_xfs_contains_every_written_byte() {
    let Some(x) = Xfs::new("a record on xfs") else {
        return;
    };
    let (work, file) = (x.at.join("work"), x.rig.dir.join("x.csv"));
    let to = format!("of={}", work.join("a").display());
    let r = x.rig.run(&[
        "-q",
        "record",
        work.to_str().expect("text"),
        "--by",
        "tracefs",
        "-o",
        file.to_str().expect("text"),
        "--json",
        "--",
        "dd",
        "if=/dev/zero",
        &to,
        "bs=64k",
        "count=16",
        "oflag=direct",
    ]);
    assert_eq!(r.code, Some(0), "{}", r.err);
    let from = r.out.find("{\n").unwrap_or_else(|| panic!("{}", r.out));
    let doc: Value = serde_json::from_str(&r.out[from..]).expect("JSON");
    let (direct, all) = (&doc["classes"]["synchronous writes"], &doc["bytes"]);
    println!("{} (a recorder that saw nothing: 0)", doc["classes"]);
    assert_eq!(doc["device"], *x.rig.name);
    assert!(direct["bytes"].as_u64() >= Some(1 << 20), "{doc}");
    assert!(all.as_u64() < Some(4 << 20), "and not much else: {doc}");
    assert_eq!(doc["lost"], 0);
}
