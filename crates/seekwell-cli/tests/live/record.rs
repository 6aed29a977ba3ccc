//! `seekwell record` and `seekwell apply` on the test's loop devices. blkparse, btt and Seekwell's
//! replay read the recording, and a replay gives the same requests. A written rule has the intended
//! effect.

use crate::disk::{missing_requirement, serialize_tests};
use crate::rig::{Ran, Rig};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn recorded(rig: &Rig, name: &str, command: &[&str]) -> Value {
    let file = rig.dir.join(name).display().to_string();
    // tracefs is used, because it cannot miss a completion while another disk is active.
    let args = [
        "-q", "record", &rig.name, "--by", "tracefs", "-o", &file, "--json", "--",
    ];
    let r = rig.run(&[&args, command].concat());
    assert_eq!(r.code, Some(0), "{}", r.err);
    // The output of the measured command comes before the JSON document.
    let from = r.out.find("{\n").unwrap_or_else(|| panic!("{}", r.out));
    serde_json::from_str(&r.out[from..]).expect("JSON")
}

#[test]
fn recorded_trace_is_readable_by_other_tools_and_replays_identically() {
    let Some(rig) = Rig::new("recorded traces") else {
        return;
    };
    if let Some(why) = missing_requirement(&["fio"]) {
        println!("skipped: recorded traces: {why}");
        return;
    }
    let node = format!("/dev/{}", rig.name);
    let job = |rw: &str| {
        [
            "--name=a".to_owned(),
            format!("--filename={node}"),
            "--direct=1".to_owned(),
            format!("--rw={rw}"),
            "--size=32m".to_owned(),
            "--io_size=400k".to_owned(),
            "--bs=4k".to_owned(),
            "--output=/dev/null".to_owned(),
        ]
    };
    let job = job("randrw");
    let fio: Vec<&str> = ["fio"]
        .into_iter()
        .chain(job.iter().map(String::as_str))
        .collect();
    let first = recorded(&rig, "a.ftrace", &fio);
    assert_eq!(first["lost"], 0);
    let reads = &first["classes"]["reads"];
    let writes = &first["classes"]["synchronous writes"];
    assert!(
        reads["bios"].as_u64() > Some(20) && writes["bios"].as_u64() > Some(20),
        "{first}"
    );

    // fio replays the trace on the same device, and the replay is recorded again.
    let at = |name: &str| rig.dir.join(name).display().to_string();
    let (a, iolog) = (at("a.ftrace"), at("a.iolog"));
    let r = rig.run(&[
        "-q",
        "convert",
        &a,
        "-o",
        &iolog,
        "--iolog-file",
        &node,
        "--to",
        "fio-iolog-v2",
    ]);
    assert_eq!(r.code, Some(0), "{}", r.err);
    let log = format!("--read_iolog={iolog}");
    let again = recorded(
        &rig,
        "b.blktrace.0",
        &[
            "fio",
            "--name=b",
            "--direct=1",
            "--ioengine=psync",
            "--output=/dev/null",
            &log,
        ],
    );
    for class in ["reads", "synchronous writes"] {
        assert_eq!(
            first["classes"][class], again["classes"][class],
            "{class}: {first} {again}"
        );
    }

    // Seekwell's replay reads both.
    for name in ["a.ftrace", "b.blktrace.0"] {
        let r = rig.run(&[
            "-q",
            "replay",
            &at(name),
            "--mode",
            "closed",
            "--seeds",
            "1",
            "--schedulers",
            "none",
            "--device",
            "ssd:sata3-256-2011",
            "--fit",
            "wrap",
            "--json",
        ]);
        assert_eq!(r.code, Some(0), "{}", r.err);
        let doc: Value = serde_json::from_str(&r.out).expect("JSON");
        let text = doc.to_string();
        assert!(
            text.contains(&format!("\"ios\":{}", reads["bios"])),
            "{name}: {text:.2000}"
        );
    }
    rig.is_as_before();

    if let Some(why) = missing_requirement(&["blkparse", "btt"]) {
        println!("skipped: blkparse and btt on what was recorded: {why}");
        return;
    }
    let dump = at("b.dump");
    // The merged file of all CPUs is read from standard input.
    let o = Command::new("blkparse")
        .args(["-i", "-", "-d", &dump])
        .stdin(fs::File::open(at("b.blktrace.0")).expect("written"))
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&o.stdout).into_owned();
    let count = |action: &str, of: char| {
        let lines = text
            .lines()
            .map(|l| l.split_whitespace().collect::<Vec<_>>());
        lines
            .filter(|f| f.len() > 7 && f[5] == action && f[6].starts_with(of))
            .count() as u64
    };
    assert_eq!(Some(count("Q", 'R')), reads["bios"].as_u64(), "{text:.500}");
    assert_eq!(Some(count("C", 'W')), writes["bios"].as_u64());
    assert!(text.contains("[fio]"), "names are kept");
    // btt writes files to its working directory.
    let o = Command::new("btt")
        .args(["-i", &dump])
        .current_dir(Path::new(&dump).parent().expect("a directory"))
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&o.stdout).into_owned();
    assert!(text.contains("D2C") && text.contains("Q2C"), "{text}");
}

/// Both recorders record the same run, one nested in the other. They must record the same requests.
/// Every field must be equal, including the process. Only the times differ, because tracefs rounds
/// them.
#[test]
fn bpf_and_tracefs_record_the_same_requests() {
    let Some(rig) = Rig::new("BPF against tracefs") else {
        return;
    };
    if let Some(why) = missing_requirement(&["fio"]) {
        println!("skipped: BPF against tracefs: {why}");
        return;
    }
    let at = |name: &str| rig.dir.join(name).display().to_string();
    let node = format!("--filename=/dev/{}", rig.name);
    let (outer, inner) = (at("outer.csv"), at("inner.csv"));
    let both = |by: &'static str, file: &str| {
        let words = ["record", &rig.name, "--by", by, "-o", file, "--json", "--"];
        words.map(str::to_owned)
    };
    let mut all = both("tracefs", &outer).to_vec();
    all.push(env!("CARGO_BIN_EXE_seekwell").to_owned());
    all.extend(both("bpf", &inner));
    let job = [
        "fio",
        "--name=a",
        &node,
        "--direct=1",
        "--rw=randrw",
        "--bsrange=4k-64k",
        "--size=32m",
        "--io_size=24m",
        "--ioengine=libaio",
        "--iodepth=16",
        "--iodepth_batch=8",
        "--fsync=64",
        "--output=/dev/null",
    ];
    all.extend(job.map(str::to_owned));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    // BPF can miss a completion that comes while a program runs for an event of another disk. The
    // exit code is then 4. With 1,000 I/Os next to a disk with 1,000 I/Os per second, that happens
    // at most once in a hundred runs. Five times in a row has a probability of 10^-10.
    let recorded = || -> Option<(Ran, Vec<Value>)> {
        let r = rig.run(&all);
        if r.err.contains("a BPF ") || r.err.contains("does not count") {
            println!("skipped: BPF against tracefs: {}", r.err);
            return None;
        }
        let both = serde_json::Deserializer::from_str(&r.out).into_iter();
        let both: Result<Vec<Value>, _> = both.collect();
        let both = both.unwrap_or_else(|e| panic!("{e}: {}{}", r.out, r.err));
        Some((r, both))
    };
    let mut tries = 0;
    let (r, documents) = loop {
        let Some((r, documents)) = recorded() else {
            return;
        };
        tries += 1;
        if documents[0]["lost"] == 0 || tries == 5 {
            break (r, documents);
        }
        println!("again: {} lost", documents[0]["lost"]);
        assert_eq!(r.code, Some(4), "{}", r.err);
    };
    let [bpf, tracefs] = documents.as_slice() else {
        panic!("{}{}", r.out, r.err)
    };
    assert_eq!(
        (&bpf["by"], &tracefs["by"]),
        (&"bpf".into(), &"tracefs".into())
    );
    println!("{}", bpf["classes"]);
    assert_eq!((&bpf["lost"], &tracefs["lost"]), (&0.into(), &0.into()));
    let lines = |file: &str| -> Vec<String> {
        let text = fs::read_to_string(file).expect("written");
        text.lines().map(str::to_owned).collect()
    };
    let (a, b) = (lines(&inner), lines(&outer));
    assert_eq!(r.code, Some(0), "{}", r.err);
    assert!(bpf["bios"].as_u64() > Some(500), "{bpf}");
    assert_eq!(
        (&bpf["classes"], &bpf["bytes"]),
        (&tracefs["classes"], &tracefs["bytes"])
    );
    // Simultaneous events on two CPUs may be in either order. The times of the two recorders
    // differ.
    let requests = |all: &[String]| -> Vec<String> {
        let names: Vec<&str> = all[0].split(',').collect();
        let place = |name: &str| names.iter().position(|n| *n == name).expect("a column");
        let kept = ["sector", "sectors", "op", "flags", "pid", "device", "error"].map(place);
        let row = |l: &String| {
            let fields: Vec<&str> = l.split(',').collect();
            kept.map(|i| fields[i]).join(",")
        };
        let mut rows: Vec<String> = all[1..].iter().map(row).collect();
        rows.sort();
        rows
    };
    assert_eq!(requests(&a), requests(&b));
    rig.is_as_before();
}

#[test]
fn recorded_commands_exit_code_is_returned_and_nothing_left_behind() {
    // The commands would also see leftovers of another test's killed run.
    let _turn = serialize_tests();
    let Some(rig) = Rig::new("a recorded command") else {
        return;
    };
    let file = rig.dir.join("x.blkparse").display().to_string();
    let r = rig.run(&[
        "record", &rig.name, "-o", &file, "--to", "blkparse", "--", "sh", "-c", "exit 7",
    ]);
    assert_eq!(r.code, Some(7), "{}", r.err);
    assert!(
        r.err
            .contains("no I/O reached the device, and no file was written; 0 events lost"),
        "{}",
        r.err
    );
    for (args, says) in [
        (
            vec!["record", &*rig.name, "-o", "/tmp/x.odd", "--", "true"],
            "does not determine an output format",
        ),
        (
            vec!["record", "/no/such", "-o", &*file, "--", "true"],
            "no such",
        ),
        (
            vec!["record", &*rig.name, "-o", &*file, "--", "/no/such"],
            "cannot be run",
        ),
    ] {
        let r = rig.run(&args);
        assert_eq!(r.code, Some(2), "{args:?}: {}", r.err);
        assert!(r.err.contains(says), "{args:?}: {}", r.err);
    }
    let left = fs::read_dir("/sys/kernel/tracing/instances")
        .into_iter()
        .flatten()
        .flatten();
    let own = left.filter(|e| e.file_name().to_string_lossy().starts_with("seekwell-"));
    let dead = own.filter(|e| {
        let name = e.file_name().to_string_lossy().into_owned();
        let pid = name.split('-').nth(1).unwrap_or_default().to_owned();
        !std::path::Path::new("/proc").join(pid).exists()
    });
    assert_eq!(dead.count(), 0);
}

/// The test uses a separate mount namespace, so that the rules and notes of this machine stay
/// unchanged.
#[test]
fn written_udev_rule_is_applied_by_udev_and_undone() {
    let Some(rig) = Rig::new("udev rules") else {
        return;
    };
    if let Some(why) = missing_requirement(&["unshare", "udevadm"]) {
        println!("skipped: udev rules: {why}");
        return;
    }
    let seekwell = env!("CARGO_BIN_EXE_seekwell");
    let name = &rig.name;
    let script = format!(
        "set -e\n\
         mkdir -p /etc/udev/rules.d\n\
         mount -t tmpfs none /etc/udev/rules.d\n\
         mount -t tmpfs none /var/lib\n\
         {seekwell} apply bfq -t low_latency=0 --device {name} --persist --yes\n\
         cat /etc/udev/rules.d/*\n\
         if udevadm --help | grep -q verify; then udevadm verify /etc/udev/rules.d; fi\n\
         echo none > /sys/block/{name}/queue/scheduler\n\
         udevadm test --action=change /sys/block/{name} 2>&1 | grep -i seekwell || true\n\
         cat /sys/block/{name}/queue/scheduler /sys/block/{name}/queue/iosched/low_latency\n\
         {seekwell} apply --undo --device {name}\n\
         echo left: $(find /etc/udev/rules.d /var/lib -mindepth 1)\n\
         cat /sys/block/{name}/queue/scheduler\n"
    );
    let o = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .env("SEEKWELL_RUN_DIR", rig.records())
        .output()
        .expect("unshare runs");
    let (out, err) = (
        String::from_utf8_lossy(&o.stdout).into_owned(),
        String::from_utf8_lossy(&o.stderr).into_owned(),
    );
    if err.contains("mount:") || err.contains("unshare:") {
        println!("skipped: udev rules: {err}");
        return;
    }
    assert!(o.status.success(), "{out}{err}");
    assert!(out.contains("ATTR{loop/backing_file}==\""), "{out}");
    assert!(out.contains("[bfq]"), "udev has set it: {out}");
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines.contains(&"0"), "and the tunable: {out}");
    assert!(lines.contains(&"left:"), "{out}");
    rig.is_as_before();
}
