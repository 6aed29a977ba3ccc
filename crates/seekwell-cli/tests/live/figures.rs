//! Compares three figures with figures of other programs. Requests per second and the 99th
//! percentile are compared with those of fio. The number of recorded requests is compared with that
//! of the kernel.

use crate::disk::{Served, missing_requirement, serialize_tests};
use crate::rig::Rig;
use seekwell_host::watch::{Ext4, Queue};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const JOB: &str = "[a]\nrw=randread\nbs=4k\nsize=8m\ndirect=1\nioengine=libaio\niodepth=4\n\
                   runtime=2\ntime_based\n";

/// Runs a job file with Seekwell. Returns I/Os per second, and the 99th percentile of their latency
/// in ns.
fn measured_by_seekwell(job: &Path, dir: &Path) -> (f64, f64) {
    let o = Command::new(env!("CARGO_BIN_EXE_seekwell"))
        .arg("run")
        .arg(job)
        .args(["--json", "-q", "--dir"])
        .arg(dir)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let err = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!(o.status.code(), Some(0), "{err}");
    let doc: Value = serde_json::from_slice(&o.stdout).expect("JSON");
    let r = &doc["records"][0];
    let p99 = r["operations"][0]["latency"]["p99_ns"].as_f64();
    (
        r["metric"]["value"].as_f64().expect("a metric"),
        p99.expect("a percentile"),
    )
}

/// Runs a job file with fio, and returns the same two figures.
fn measured_by_fio(job: &Path, dir: &Path) -> (f64, f64) {
    let o = Command::new("fio")
        .arg("--output-format=json")
        .arg(job)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .expect("fio runs");
    let doc: Value = serde_json::from_slice(&o.stdout).expect("JSON");
    let read = &doc["jobs"][0]["read"];
    let p99 = read["clat_ns"]["percentile"]["99.000000"].as_f64();
    (
        read["iops"].as_f64().expect("a rate"),
        p99.expect("a percentile"),
    )
}

/// fio and Seekwell run the same job file in turn. The disk serves four commands in parallel, each
/// in 8 ms, so both programs must reach its 500 I/Os per second.
///
/// A busy machine disturbs some pairs of runs in either direction. An error of Seekwell's runner
/// would disturb all of them in the same way. Therefore a pair is repeated up to ten times, until
/// one pair is undisturbed. A rate that is 10 % wrong, or a tail that is 25 % wrong, would be wrong
/// in all ten.
#[test]
fn seekwell_runner_and_fio_measure_equal_rates_and_latencies() {
    let _turn = serialize_tests();
    if let Some(why) = missing_requirement(&["losetup", "mkfs.ext4", "debugfs", "fio"]) {
        println!("skipped: our runner against fio: {why}");
        return;
    }
    let served = Served::start("constant:service_us=8000,depth=4", "256M", &[]);
    let mut device = served.attach();
    device.settle(&Queue::default()).expect("settled");
    let ext4 = Ext4::make(device.path()).expect("mkfs");
    let mnt = served.dir().join("mnt");
    fs::create_dir(&mnt).expect("made");
    let mounted = ext4.mount(&mnt).expect("mounted");
    let job = served.dir().join("job.fio");
    fs::write(&job, JOB).expect("written");
    let off = |ratios: &(f64, f64)| (ratios.0 - 1.0).abs() >= 0.1 || (ratios.1 - 1.0).abs() >= 0.25;
    let mut ratios = (0.0, 0.0);
    for _ in 0..10 {
        let (a, b) = (
            measured_by_fio(&job, &mnt),
            measured_by_seekwell(&job, &mnt),
        );
        println!(
            "fio {:.0} IOPS, p99 {:.2} ms; ours {:.0} IOPS, p99 {:.2} ms (the disk: 500, 8.0)",
            a.0,
            a.1 / 1e6,
            b.0,
            b.1 / 1e6
        );
        ratios = (b.0 / a.0, b.1 / a.1);
        if !off(&ratios) {
            break;
        }
    }
    drop(mounted);
    drop(device);
    println!("ours to fio's: rate {:.3}, p99 {:.3}", ratios.0, ratios.1);
    crate::disk::check_if_machine_had_time(&served.stop(), |_| {
        assert!(!off(&ratios), "{ratios:?}")
    });
}

/// In every format, the recording has as many requests and sectors as the kernel counted.
#[test]
fn recorded_request_count_equals_the_kernel_count() {
    let Some(rig) = Rig::new("recorded requests against the kernel's count") else {
        return;
    };
    if let Some(why) = missing_requirement(&["fio"]) {
        println!("skipped: recorded requests against the kernel's count: {why}");
        return;
    }
    let stat = || -> Vec<u64> {
        let path = Path::new("/sys/block").join(&rig.name).join("stat");
        let text = fs::read_to_string(path).expect("counted");
        text.split_whitespace()
            .filter_map(|w| w.parse().ok())
            .collect()
    };
    let node = format!("--filename=/dev/{}", rig.name);
    for name in ["a.parquet", "a.csv", "a.blktrace.0"] {
        let file = rig.dir.join(name).display().to_string();
        let before = stat();
        // The requests are 8 KiB apart and do not merge, so each bio is a request.
        let r = rig.run(&[
            "-q",
            "record",
            &rig.name,
            "--by",
            "tracefs",
            "-o",
            &file,
            "--json",
            "--",
            "fio",
            "--name=a",
            &node,
            "--direct=1",
            "--rw=rw:4k",
            "--bs=4k",
            "--size=8m",
            "--io_size=2m",
            "--output=/dev/null",
        ]);
        assert_eq!(r.code, Some(0), "{}", r.err);
        let after = stat();
        let counted = |i: usize| after[i] - before[i];
        let doc: Value =
            serde_json::from_str(&r.out[r.out.find("{\n").expect("JSON")..]).expect("JSON");
        let class = |what: &str, of: &str| doc["classes"][what][of].as_u64().unwrap_or(0);
        let told = [
            class("reads", "bios"),
            class("reads", "bytes") / 512,
            class("synchronous writes", "bios") + class("writes", "bios"),
            (class("synchronous writes", "bytes") + class("writes", "bytes")) / 512,
        ];
        let kernel = [
            counted(0) + counted(1),
            counted(2),
            counted(4) + counted(5),
            counted(6),
        ];
        println!("{name}: {told:?} recorded, {kernel:?} counted (a program that saw nothing: 0)");
        assert!(told[0] + told[2] == 512 && told[0] > 100, "{told:?}");
        assert_eq!(told, kernel, "{name}");
        assert_eq!(doc["lost"], 0);
        // When the written file is read, it gives the same counts.
        let csv = rig.dir.join("back.csv").display().to_string();
        let r = rig.run(&["-q", "convert", &file, "-o", &csv]);
        assert_eq!(r.code, Some(0), "{}", r.err);
        let lines = fs::read_to_string(&csv).expect("written").lines().count() as u64;
        assert_eq!(lines - 1, told[0] + told[2], "{name}");
    }
    rig.is_as_before();
}
