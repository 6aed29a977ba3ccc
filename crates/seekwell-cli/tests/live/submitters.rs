//! The I/O priority of a program reaches the scheduler, and an account shows where the kernel hides
//! the program.

use crate::disk::{self, Served, check_if_machine_had_time, missing_requirement, serialize_tests};
use crate::{model, replayed};
use seekwell_core::Class;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// The device serves one request at a time. It is rotational, because cfq does not idle on other
/// disks. Without idling, a reader whose next request comes a moment later loses its turn in any
/// class.
const DEVICE: &str = "constant:service_us=2000,depth=1,rotational=yes";

/// fio runs two readers of different classes.
#[test]
fn reader_of_the_higher_io_class_is_served_first() {
    let _turn = serialize_tests();
    if let Some(why) = missing_requirement(&["fio"]) {
        println!("skipped: I/O priorities over a served disk: {why}");
        return;
    }
    for scheduler in ["cfq", "bfq"] {
        readers_under(scheduler);
    }
}

fn readers_under(scheduler: &str) {
    let served = Served::start(DEVICE, "64M", &["--log", "--scheduler", scheduler]);
    let file = format!("--filename={}", served.file().display());
    let global = ["--direct=1", "--rw=randread", "--bs=4k", "--ioengine=psync"];
    let timed = ["--time_based", "--runtime=3", "--output-format=json", &file];
    let best_effort = ["--name=be", "--prioclass=2", "--prio=4"];
    let idle = ["--name=idle", "--prioclass=3"];
    let args = [&global[..], &timed, &best_effort, &idle].concat();
    let out = disk::run("fio", &args);
    let doc: Value = serde_json::from_str(&out).expect("JSON");
    let reads = |i: usize| {
        doc["jobs"][i]["read"]["total_ios"]
            .as_u64()
            .expect("a count")
    };
    let (be, idle) = (reads(0), reads(1));
    let (log, account) = served.stop_with_log();
    println!("{scheduler}: BE4 against IDLE {be} to {idle} reads (one that is not told: 1 to 1)");

    let options = seekwell_trace::ReadOptions::default();
    let records = seekwell_trace::open(&log, None, &options).expect("a log");
    let mut by_class: BTreeMap<u8, u64> = BTreeMap::new();
    for r in records {
        let class = r.expect("readable").ioprio.map(|p| p.class as u8);
        *by_class.entry(class.expect("a priority")).or_default() += 1;
    }
    let logged = |c: Class| by_class.get(&(c as u8)).copied().unwrap_or(0);
    assert!(logged(Class::Be) >= be && be > 0, "{by_class:?}");
    assert_eq!(logged(Class::Idle), idle, "{by_class:?}");
    let owners = &account["owners"];
    assert!(owners["program"].as_u64() >= Some(be + idle), "{owners}");
    assert_eq!(
        (&owners["kernel"], &owners["unknown"]),
        (&0.into(), &0.into())
    );

    // On a busy machine too, the scheduler must have used the priorities in the log.
    let (same, all) = replayed(model(DEVICE, Some(scheduler)), &log);
    std::fs::remove_file(&log).expect("ours");
    println!("{same} of {all} completion times as predicted");
    assert_eq!(same, all, "{scheduler}");
    check_if_machine_had_time(&account, |_| {
        assert!(be > 5 * idle, "{scheduler}: {be} to {idle}")
    });
}

/// Through a loop device, every request comes from a kernel worker. The server reports this at the
/// start and at the end.
#[test]
fn account_reports_that_a_loop_device_hides_the_submitters() {
    let _turn = serialize_tests();
    if let Some(why) = missing_requirement(&["losetup", "dd"]) {
        println!("skipped: owners behind a loop device: {why}");
        return;
    }
    for (scheduler, needs_them) in [("cfq", true), ("deadline", false)] {
        let dir = std::env::temp_dir().join(format!("seekwell-owners-{}", std::process::id()));
        let mount = dir.join("fuse");
        std::fs::create_dir_all(&mount).expect("made");
        let mut child = Command::new(env!("CARGO_BIN_EXE_seekwell"))
            .args(["serve", "--until-eof", "-d", DEVICE, "--size", "64M"])
            .args(["-s", scheduler, "--fuse"])
            .arg(&mount)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let stdout = disk::ready(&mut child);
        let device = seekwell_host::watch::LoopDevice::attach(&mount.join("disk"));
        let device = device.expect("a loop device");
        let name = format!("if={}", device.path().display());
        disk::run(
            "dd",
            &[&name, "of=/dev/null", "bs=4k", "count=50", "iflag=direct"],
        );
        drop(device);
        drop(child.stdin.take());
        let account = std::io::read_to_string(stdout).expect("an account");
        let o = child.wait_with_output().expect("it ends");
        let notes = String::from_utf8_lossy(&o.stderr);
        assert!(o.status.success(), "{notes}");
        std::fs::remove_dir(&mount).expect("empty");
        std::fs::remove_dir(&dir).expect("empty");
        println!("{scheduler}: {notes}{account}");
        let before = notes.contains("every request has the priority of a kernel worker");
        assert_eq!(before, needs_them, "{notes}");
        let after = account.contains("of the commands came from kernel workers");
        assert_eq!(after, needs_them, "{account}");
        assert_eq!(
            account.contains("commands of programs:"),
            needs_them,
            "{account}"
        );
    }
}
