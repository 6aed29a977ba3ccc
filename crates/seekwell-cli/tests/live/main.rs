//! Tests the modelled disk with other programs: dd, fio, and the kernel's ext4.
//!
//! The tests need root, FUSE and loop devices. Where these are missing, a test prints `skipped:`.
//! Facts that hold on any machine are always checked (the model's times, the data, no leftovers).
//! Facts that need an idle machine (rates, lateness) are checked only if the account's verdict
//! allows it. The tests run one at a time, because each serves a disk.

mod adverse_conditions;
mod alongside;
mod backing;
mod check_worlds;
mod disk;
mod figures;
mod host;
mod kernel;
mod lab;
mod leftovers;
mod predict;
mod programs;
mod real;
mod record;
mod rig;
mod submitters;
mod switch;
mod throttle;
mod trial;
mod twin;
mod xfs;

use disk::{Served, missing_requirement, serialize_tests};
use seekwell_core::{Bio, Control, Flags, Instant, IoPrio, Nanos, Op, TaskId};
use seekwell_server::{Engine, Served as Disk};
use seekwell_sim::Setup;
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the disk, under the named scheduler if there is one.
fn model(device: &str, scheduler: Option<&str>) -> Disk {
    let opened = seekwell_device::open(device, 1).expect("a device");
    let Some(name) = scheduler else {
        return Disk::device(opened);
    };
    let setup = Setup {
        device: device.to_owned(),
        scheduler: name.to_owned(),
        ..Setup::default()
    };
    let queue = |d| setup.build_over(d).map(|q| Box::new(q) as Box<_>);
    Disk::behind(opened, queue).expect("a queue")
}

/// Sends the logged arrivals to the same model on a virtual clock, and compares the completion
/// times with those in the log. Returns the number of times that are equal to the nanosecond, and
/// the number of all times.
fn replayed(disk: Disk, log: &Path) -> (usize, usize) {
    let options = seekwell_trace::ReadOptions::default();
    let records: Vec<_> = seekwell_trace::open(log, None, &options)
        .expect("a log")
        .collect::<Result<_, _>>()
        .expect("readable");
    // The clock of the trace reader starts at the first arrival. The clock of the model started
    // earlier, and its platter has been rotating since then.
    let text = std::fs::read_to_string(log).expect("a log");
    let first = text
        .lines()
        .nth(1)
        .and_then(|l| l.split(',').next())
        .map(str::parse::<u64>);
    let first = first.expect("a record").expect("a time");
    let mut engine = Engine::new(disk.into_sink());
    let mut prios: BTreeMap<TaskId, IoPrio> = BTreeMap::new();
    for (id, r) in records.iter().enumerate() {
        let n = match r.op {
            Op::Flush => 0,
            _ => r.sectors.0,
        };
        let flags = match r.op {
            Op::Write => Flags::SYNC,
            _ => Flags::empty(),
        };
        let task = r.task.unwrap_or(TaskId(0));
        let bio = Bio::new(id as u64, task, r.op, flags, r.sector.0, n);
        // The scheduler is told a task's priority when it changes. A new task has BE4.
        let changed = r.ioprio.filter(|p| {
            let known = prios.insert(task, *p).unwrap_or(IoPrio::be(4));
            known != *p
        });
        let told = changed.map(|p| Control::Prio(task, p));
        engine.arrive_told(Instant::at_ns(first + r.t_ns), told, bio);
    }
    let mut done = Vec::new();
    engine.run_to(Instant::at_ns(first) + Nanos::from_secs(3600), &mut done);
    let same = done.iter().filter(|d| {
        let logged = records[d.id.0 as usize].complete_ns;
        logged.map(|t| first + t) == Some(d.at.since_start())
    });
    (same.count(), records.len())
}

#[test]
fn wall_clock_times_equal_model_times() {
    let _turn = serialize_tests();
    if let Some(skip) = missing_requirement(&["losetup"]) {
        println!("skipped: the wall clock against the model: {skip}");
        return;
    }
    let device = "hdd:hitachi-7k200";
    let served = Served::start(device, "2G", &["--log"]);
    // First dd reads sequentially. Then random reads come through a loop device at a large depth.
    disk::run(
        "dd",
        &[
            &format!("if={}", served.file().display()),
            "of=/dev/null",
            "bs=128k",
            "count=200",
            "iflag=direct",
        ],
    );
    let fio = missing_requirement(&["fio"]);
    if let Some(why) = &fio {
        println!("skipped: random reads by fio: {why}");
    } else {
        let loop_device = served.attach();
        let out = disk::run(
            "fio",
            &[
                "--name=r",
                &format!("--filename={}", loop_device.path().display()),
                "--direct=1",
                "--rw=randread",
                "--bs=4k",
                "--ioengine=libaio",
                "--iodepth=16",
                "--runtime=4",
                "--time_based",
                "--output-format=json",
            ],
        );
        assert!(out.contains("\"error\" : 0"), "{out}");
    }
    let (log, account) = served.stop_with_log();
    let (same, all) = replayed(model(device, None), &log);
    std::fs::remove_file(&log).expect("ours");
    println!("{same} of {all} completion times are the model's on a virtual clock");
    // The null model, a constant service time, would predict no completion time correctly.
    let mean = account["model"]["mean_ns"].as_f64().expect("a mean");
    let spread = account["model"]["p99_ns"].as_f64().expect("p99") / mean;
    println!("(a constant disk: 0; the slowest hundredth takes {spread:.1} times the mean)");
    assert_eq!(same, all, "late or not, the model decides alike");
    assert!(all >= 200 && account["errors"] == 0);
    if fio.is_none() {
        assert!(
            account["depth_max"].as_u64() > Some(8),
            "depth reaches the model"
        );
    }
    disk::check_if_machine_had_time(&account, |error| {
        assert!(error.abs() < 0.10, "delivered {error:+.3} off the model");
    });
}

/// An old scheduler runs in real time. Its decisions must be those that the simulator predicts for
/// the same arrivals. They must differ from the order of the device without a scheduler.
#[test]
fn scheduler_in_a_served_disk_decides_as_simulated() {
    let _turn = serialize_tests();
    if let Some(skip) = missing_requirement(&["losetup", "fio"]) {
        println!("skipped: a scheduler in the path: {skip}");
        return;
    }
    let device = "hdd:hitachi-7k200,depth=4";
    for scheduler in ["deadline", "mq-deadline"] {
        let served = Served::start(device, "2G", &["--log", "--scheduler", scheduler]);
        let loop_device = served.attach();
        let out = disk::run(
            "fio",
            &[
                "--name=r",
                &format!("--filename={}", loop_device.path().display()),
                "--direct=1",
                "--rw=randrw",
                "--bs=4k",
                "--ioengine=libaio",
                "--iodepth=24",
                "--io_size=1600k",
                "--output-format=json",
            ],
        );
        assert!(out.contains("\"error\" : 0"), "{out}");
        drop(loop_device);
        let (log, account) = served.stop_with_log();
        let (same, all) = replayed(model(device, Some(scheduler)), &log);
        let (null, _) = replayed(model(device, None), &log);
        std::fs::remove_file(&log).expect("ours");
        println!("{scheduler}: {same} of {all} completion times as predicted, {null} without it");
        assert_eq!(same, all, "{scheduler}");
        // There are four hundred requests, on a machine of any speed.
        assert!(all >= 400 && null < all / 4, "{scheduler}: {null} of {all}");
        assert_eq!(account["errors"], 0);
        assert_eq!(account["depth_max"], 4, "the backlog is the scheduler's");
        assert!(account["outstanding_max"].as_u64() > Some(8));
    }
}

#[test]
fn ext4_on_a_served_disk_keeps_its_data() {
    let _turn = serialize_tests();
    if let Some(skip) = missing_requirement(&["losetup", "mkfs.ext4", "e2fsck"]) {
        println!("skipped: ext4 over the modelled disk: {skip}");
        return;
    }
    let served = Served::start("constant:service_us=300,write_cache=yes", "512M", &[]);
    let loop_device = served.attach();
    let fs = seekwell_host::watch::Ext4::make(loop_device.path()).expect("mkfs");
    let mnt = served.dir().join("mnt");
    std::fs::create_dir(&mnt).expect("a directory");
    let bytes: Vec<u8> = (0..12_000_000u64)
        .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect();
    let mounted = fs.mount(&mnt).expect("mounted");
    std::fs::write(mnt.join("file"), &bytes).expect("written");
    // Unmounting writes everything; the second mount reads it from the disk.
    drop(mounted);
    let mounted = fs.mount(&mnt).expect("mounted again");
    assert!(
        std::fs::read(mnt.join("file")).expect("read") == bytes,
        "other bytes"
    );
    drop(mounted);
    fs.check().expect("clean");
    std::fs::remove_dir(&mnt).expect("unmounted");
    drop(loop_device);
    let account = served.stop();
    assert_eq!(account["errors"], 0);
    assert!(account["write_bytes"].as_u64() > Some(12_000_000));
    assert!(account["flushes"].as_u64() > Some(0), "unmounting flushes");
}

#[test]
fn served_disk_leaves_nothing_behind() {
    let _turn = serialize_tests();
    if let Some(skip) = missing_requirement(&["losetup"]) {
        println!("skipped: what a served disk leaves behind: {skip}");
        return;
    }
    let device = "constant:service_us=1000";
    // After a signal, the disk is unmounted, the report is written, and the status is 0.
    let served = Served::start(device, "64M", &[]);
    let (mount, status) = served.signal("TERM");
    assert!(status.success() && !disk::mounted(&mount));

    // If the client dies while a loop device is attached, the server removes the mount and the loop
    // device.
    let served = Served::start(device, "64M", &[]);
    let mount = served.mount();
    let loop_device = served.attach();
    let name = loop_device.path().to_owned();
    // As if this process had been killed, the loop device is not detached here.
    std::mem::forget(loop_device);
    let account = served.stop();
    assert_eq!(account["verdict"], "idle");
    assert!(
        !disk::mounted(&mount) && !disk::attached(&mount),
        "{}",
        name.display()
    );

    // If the server is killed, its mount remains without a server. The next start replaces it.
    let served = Served::start(device, "64M", &[]);
    let (mount, status) = served.signal("KILL");
    assert!(!status.success() && disk::mounted(&mount));
    let again = Served::start_at(&mount, device, "64M");
    assert!(std::fs::metadata(again.file()).is_ok_and(|m| m.len() == 64 << 20));
    again.stop();
    assert!(!disk::mounted(&mount));
}
