//! Scripts that mix tasks, compared with independent programs of the same shape: fio, dd, and a few
//! lines of C, on ext4 over the same modelled hard disk.
//!
//! `fsync-latency` and `app-start` are compared with C. They are not compared with a loop of dd,
//! because dd pauses between two files, and an fsync during a pause takes half as long.
//!
//! A task of a script must not wait for another task's system call. When a file was closed under
//! the lock of all open files, a read of `interactive` took 23 to 31 times as long as fio's.

use crate::disk::{Served, missing_requirement, serialize_tests};
use seekwell_host::watch::Ext4;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Maximum ratio of the two means. Even two runs of the same program can differ by a third.
const FACTOR: f64 = 2.0;
/// Number of pairs of runs. A busy machine disturbs some of the pairs, but a wrong lock disturbs
/// all of them.
const PAIRS: usize = 3;

/// Runs a workload with Seekwell. Returns the first of the metrics that the workload itself
/// reports.
fn measured_by_seekwell(workload: &str, dir: &Path) -> f64 {
    let o = Command::new(env!("CARGO_BIN_EXE_seekwell"))
        .args(["run", workload, "--json", "-q", "--dir"])
        .arg(dir)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let err = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!(o.status.code(), Some(0), "{err}");
    let doc: Value = serde_json::from_slice(&o.stdout).expect("JSON");
    let metric = doc["records"][0]["metric"]["value"].as_f64();
    metric.expect("a metric")
}

/// Runs fio, and returns its report on the last job.
fn fio(dir: &Path, args: &[&str]) -> Value {
    let o = Command::new("fio")
        .args(["--output-format=json", "--ioengine=psync", "--bs=4k"])
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .expect("fio runs");
    let err = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(o.status.success(), "{err}");
    let doc: Value = serde_json::from_slice(&o.stdout).expect("JSON");
    let jobs = doc["jobs"].as_array().expect("jobs");
    jobs.last().expect("a job").clone()
}

/// Runs fio as a reader. Meanwhile dd writes two files in turn for `seconds` seconds, as the writer
/// of the script does.
fn fio_beside_dd(dir: &Path, seconds: u32, bulk_mib: u32) -> Value {
    let script = format!(
        "n=0; while :; do dd if=/dev/zero of=bulk.$n bs=256k count={} status=none; n=$((1 - n)); \
         done",
        bulk_mib * 4
    );
    let mut writer = Command::new("timeout")
        .args([&seconds.to_string(), "sh", "-c", &script])
        .current_dir(dir)
        .stdin(Stdio::null())
        .spawn()
        .expect("timeout runs");
    let job = fio(
        dir,
        &[
            "--name=reader",
            "--filename=data",
            "--rw=randread",
            "--size=64m",
            "--norandommap",
            "--thinktime=50ms",
            "--time_based",
            &format!("--runtime={seconds}"),
        ],
    );
    writer.wait().expect("ours");
    drop_from_cache(dir, &["bulk.0", "bulk.1"]);
    job
}

/// Returns the mean fsync latency, in ms, of a C program that does the same work as
/// `fsync-latency`.
fn syncer(program: &Path, dir: &Path, seconds: u32, bulk_mib: u32) -> f64 {
    let numbers = [seconds, bulk_mib].map(|n| n.to_string());
    let o = Command::new(program).arg(dir).args(numbers).output();
    let o = o.expect("it was compiled");
    let err = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(o.status.success(), "{err}");
    drop_from_cache(dir, &["bulk.0", "bulk.1", "log"]);
    let text = String::from_utf8_lossy(&o.stdout).into_owned();
    text.trim().parse().expect("a number")
}

/// Returns the mean start time, in ms, of a C program that does the same work as `app-start`.
fn starter(program: &Path, dir: &Path) -> f64 {
    let own = dir.join("starter");
    fs::create_dir(&own).expect("made");
    let numbers = ["2", "4", "12", "64", "500"];
    let o = Command::new(program).arg(&own).args(numbers).output();
    let o = o.expect("it was compiled");
    let err = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(o.status.success(), "{err}");
    fs::remove_dir_all(&own).expect("written by the test");
    let text = String::from_utf8_lossy(&o.stdout).into_owned();
    text.trim().parse().expect("a number")
}

/// Compiles a C program of this test into a directory.
fn compiled(name: &str, into: &Path) -> PathBuf {
    let program = into.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/live/{name}.c"));
    let (to, from) = (program.display().to_string(), source.display().to_string());
    crate::disk::run("cc", &["-O1", "-pthread", "-o", &to, &from, "-lm"]);
    program
}

fn drop_from_cache(dir: &Path, names: &[&str]) {
    for name in names {
        fs::remove_file(dir.join(name)).expect("written by the test");
    }
}

/// Measures both programs, until the two results of a pair agree.
fn assert_agreement(what: &str, unit: &str, ours: impl Fn() -> f64, theirs: impl Fn() -> f64) {
    let mut ratio = f64::INFINITY;
    for _ in 0..PAIRS {
        let (a, b) = (ours(), theirs());
        ratio = a / b;
        println!("{what}: ours {a:.1} {unit}, theirs {b:.1} {unit}, {ratio:.2} times");
        if (1.0 / FACTOR..=FACTOR).contains(&ratio) {
            return;
        }
    }
    panic!("{what}: {ratio:.2} times theirs, in each of {PAIRS} pairs beyond {FACTOR}");
}

#[test]
fn multi_task_scripts_agree_with_independent_programs() {
    let _turn = serialize_tests();
    if let Some(why) = missing_requirement(&[
        "losetup",
        "mkfs.ext4",
        "debugfs",
        "fio",
        "dd",
        "timeout",
        "cc",
    ]) {
        println!("skipped: scripts of many tasks beside fio: {why}");
        return;
    }
    let served = Served::start("hdd:hitachi-7k200", "1G", &[]);
    let device = served.attach();
    // Keep as few bytes in flight as on a SATA disk. A loop device accepts 160 MB. A read would
    // then wait for a whole file, and a wrong lock would add little to that time.
    let name = device.path().file_name().expect("a name");
    let queue = Path::new("/sys/block").join(name).join("queue");
    fs::write(queue.join("max_sectors_kb"), "64").expect("set");
    let ext4 = Ext4::make(device.path()).expect("mkfs");
    let mnt = served.dir().join("mnt");
    fs::create_dir(&mnt).expect("made");
    let mounted = ext4.mount(&mnt).expect("mounted");

    let data = mnt.join("data");
    fs::write(&data, vec![1; 64 << 20]).expect("written");
    fs::File::open(&data)
        .and_then(|f| f.sync_all())
        .expect("synced");
    assert_agreement(
        "a read of interactive",
        "ms",
        || measured_by_seekwell("interactive:seconds=3s,size=64m,bulk=64m", &mnt),
        || {
            let read = &fio_beside_dd(&mnt, 3, 64)["read"];
            read["clat_ns"]["mean"].as_f64().expect("a mean") / 1e6
        },
    );
    drop_from_cache(&mnt, &["data"]);

    let program = compiled("starter", served.dir());
    assert_agreement(
        "a start of app-start",
        "ms",
        || {
            1e3 * measured_by_seekwell(
                "app-start:starts=2,libraries=4,small=12,readers=1,writers=1,bulk=64m,pause=500ms",
                &mnt,
            )
        },
        || starter(&program, &mnt),
    );

    let program = compiled("syncer", served.dir());
    assert_agreement(
        "an fsync of fsync-latency",
        "ms",
        || measured_by_seekwell("fsync-latency:seconds=5s,bulk=16m", &mnt),
        || syncer(&program, &mnt, 5, 16),
    );

    let threads = [
        "--filename_format=tio.$jobnum",
        "--size=8m",
        "--numjobs=4",
        "--group_reporting",
        "--end_fsync=1",
    ];
    let layout = ["--name=write", "--rw=write", "--fallocate=none"];
    let random = [
        "--name=random",
        "--stonewall",
        "--rw=randwrite",
        "--norandommap",
        "--io_size=800k",
        "--overwrite=1",
        "--invalidate=0",
    ];
    let job = [&layout[..], &threads, &random, &threads].concat();
    assert_agreement(
        "random writes of tiobench",
        "MiB/s",
        || measured_by_seekwell("tiobench:size=8m,threads=4,random=200", &mnt),
        || {
            let write = &fio(&mnt, &job)["write"];
            let number = |what: &str| write[what].as_f64().expect("a number");
            number("io_bytes") / f64::from(1 << 20) / (number("runtime") / 1e3)
        },
    );

    drop(mounted);
    fs::remove_dir(&mnt).expect("unmounted");
    drop(device);
    served.stop();
}
