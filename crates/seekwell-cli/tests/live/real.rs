//! Runs `run --dir` and `--raw` on disks of the test. They are loop devices over files. A small
//! ext4 on them is full, read-only, or on a partition.

use crate::disk::{missing_requirement, run, serialize_tests, until, written};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Result of a run of `seekwell`.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn of(child: Child) -> Self {
        let o = child.wait_with_output().expect("it ends");
        Ran {
            code: o.status.code(),
            out: String::from_utf8(o.stdout).expect("UTF-8"),
            err: String::from_utf8(o.stderr).expect("UTF-8"),
        }
    }
    fn record(&self) -> Value {
        assert!(!self.out.is_empty(), "{}", self.err);
        let doc: Value = serde_json::from_str(&self.out).expect("one JSON document");
        doc["records"][0].clone()
    }
}

fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_seekwell"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs")
}

fn seekwell(args: &[&str]) -> Ran {
    Ran::of(start(args))
}

/// A loop device over a file of 64 MiB. Dropping it removes the device with everything on it.
struct Loop {
    dir: PathBuf,
    dev: String,
    mounts: Vec<PathBuf>,
    partitioned: bool,
}

impl Loop {
    /// Makes a loop device over a file in memory, if possible, because its speed does not matter.
    fn quick() -> Self {
        let memory = Path::new("/dev/shm");
        let temporary = std::env::temp_dir();
        Self::new(512, if memory.is_dir() { memory } else { &temporary })
    }
    fn new(sector: u32, at: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = at.join(format!("seekwell-real-{}-{n}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let image = dir.join("image");
        let bytes: Vec<u8> = (0..64u64 << 17).flat_map(u64::to_le_bytes).collect();
        fs::write(&image, bytes).expect("an image");
        let image = image.display().to_string();
        let sector = sector.to_string();
        let args = ["--find", "--show", "--sector-size", &sector, &image];
        Loop {
            dev: run("losetup", &args).trim().to_owned(),
            dir,
            mounts: Vec::new(),
            partitioned: false,
        }
    }
    fn name(&self) -> &str {
        self.dev.trim_start_matches("/dev/")
    }
    /// Returns the text of `queue/scheduler`.
    fn schedulers(&self) -> String {
        let path = format!("/sys/block/{}/queue/scheduler", self.name());
        fs::read_to_string(path).expect("a loop device has one")
    }
    /// The active scheduler.
    fn scheduler(&self) -> String {
        let text = self.schedulers();
        let inside = text.split(['[', ']']).nth(1);
        inside.unwrap_or(text.trim()).to_owned()
    }
    /// Creates ext4 on a device and mounts it. Returns the mount point.
    fn ext4(&mut self, dev: &str) -> PathBuf {
        run("mkfs.ext4", &["-q", "-F", dev]);
        let at = self.dir.join(format!("mnt{}", self.mounts.len()));
        fs::create_dir(&at).expect("a directory");
        run("mount", &[dev, &at.display().to_string()]);
        self.mounts.push(at.clone());
        at
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let quiet = |program: &str, args: &[&str]| {
            let mut c = Command::new(program);
            let _ = c.args(args).stderr(Stdio::null()).status();
        };
        for m in &self.mounts {
            quiet("umount", &[&m.display().to_string()]);
            let _ = fs::remove_dir(m);
        }
        if self.partitioned {
            quiet("delpart", &[&self.dev, "1"]);
        }
        quiet("losetup", &["--detach", &self.dev]);
        let _ = fs::remove_file(self.dir.join("image"));
        let _ = fs::remove_dir(&self.dir);
    }
}

/// Fills a file system to its last block. Space reserved for a failed write returns later, so the
/// write is repeated until nothing more fits.
fn fill(path: &Path) {
    let mut file = fs::File::create(path).expect("a file");
    for block in [1 << 20, 4096, 4096, 4096] {
        let full = loop {
            if let Err(e) = file.write_all(&vec![1; block]) {
                break e;
            }
        };
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        let _ = file.sync_all();
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("there").flatten();
    let mut names: Vec<_> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|n| n != "lost+found")
        .collect();
    names.sort();
    names
}

#[test]
fn full_disk_is_rejected_before_or_reported_during_a_run() {
    let _turn = serialize_tests();
    if let Some(skip) = missing_requirement(&["losetup", "mkfs.ext4", "mount"]) {
        println!("skipped: full disks: {skip}");
        return;
    }
    let mut disk = Loop::quick();
    let dev = disk.dev.clone();
    let mnt = disk.ext4(&dev);
    let here = mnt.display().to_string();

    let r = seekwell(&["run", "fs-mark:files=100000,size=64k", "--dir", &here]);
    assert_eq!((r.code, &*r.out), (Some(2), ""), "{}", r.err);
    assert!(
        r.err.contains("MB are free, and fs-mark may need"),
        "{}",
        r.err
    );

    // Another process fills the file system in the middle of the run.
    for workload in [
        "fs-mark:files=8000,size=4k",
        "sqlite:transactions=10000,row=400,think=0,pause=0",
    ] {
        let child = start(&["run", workload, "--json", "--dir", &here]);
        until("some work", || written(&mnt) > 100 << 10);
        // The run is stopped meanwhile, so that it cannot end before the disk is full.
        let pid = child.id().to_string();
        run("kill", &["-s", "STOP", &pid]);
        let filler = mnt.join("filler");
        fill(&filler);
        run("kill", &["-s", "CONT", &pid]);
        let r = Ran::of(child);
        assert_eq!(r.code, Some(4), "{workload}: {}", r.err);
        assert!(r.err.contains("(ENOSPC)"), "{workload}: {}", r.err);
        let record = r.record();
        let counts = record["operations"].as_array().expect("a list").iter();
        let most = counts.filter_map(|o| o["latency"]["count"].as_u64()).max();
        assert!(most > Some(0), "results so far: {workload}");
        assert_eq!(names(&mnt), ["filler"], "{workload}");
        fs::remove_file(&filler).expect("ours");
    }

    run("mount", &["-o", "remount,ro", &here]);
    let r = seekwell(&["run", "fs-mark:files=2", "--dir", &here]);
    assert_eq!(r.code, Some(2), "{}", r.err);
    assert!(r.err.contains("is mounted read-only"), "{}", r.err);
}

#[test]
fn active_scheduler_is_detected_and_left_unchanged() {
    let _turn = serialize_tests();
    if let Some(skip) = missing_requirement(&["losetup", "mkfs.ext4", "mount"]) {
        println!("skipped: the scheduler in force: {skip}");
        return;
    }
    let mut disk = Loop::quick();
    let (dev, before) = (disk.dev.clone(), disk.schedulers());
    let whole = format!("ext4 on {} [{}]", disk.name(), disk.scheduler());
    let partition = format!("{dev}p1");
    let made = Command::new("addpart")
        .args([&*dev, "1", "2048", "120000"])
        .status();
    let on = if made.is_ok_and(|s| s.success()) {
        disk.partitioned = true;
        partition
    } else {
        println!("skipped: a partition: no addpart");
        dev
    };
    let mnt = disk.ext4(&on);
    let r = seekwell(&[
        "run",
        "fs-mark:files=2,size=4k",
        "--json",
        "--dir",
        &mnt.display().to_string(),
    ]);
    assert_eq!(r.code, Some(0), "{}", r.err);
    let said = format!("current scheduler, which is not changed: {whole}");
    assert!(r.err.contains(&said), "{} lacks {said}", r.err);
    let record = r.record();
    let name = record["device"]["name"].as_str().unwrap_or_default();
    assert!(name.starts_with(&whole), "{name}");
    assert_eq!(disk.schedulers(), before);

    let memory = disk.dir.join("memory");
    fs::create_dir(&memory).expect("a directory");
    let at = memory.display().to_string();
    run("mount", &["-t", "tmpfs", "-o", "size=8m", "tmpfs", &at]);
    disk.mounts.push(memory);
    let r = seekwell(&["run", "fs-mark:files=2,size=4k", "--dir", &at]);
    assert_eq!(r.code, Some(0), "{}", r.err);
    let said = "tmpfs, which has no block device of its own";
    assert!(r.err.contains(said) && r.out.contains(said), "{}", r.err);
}

#[test]
fn raw_devices_run_at_depth_on_both_sector_sizes() {
    let _turn = serialize_tests();
    if let Some(skip) = missing_requirement(&["losetup", "mkfs.ext4", "mount"]) {
        println!("skipped: raw devices: {skip}");
        return;
    }
    for sector in [512, 4096] {
        let mut disk = Loop::new(sector, &std::env::temp_dir());
        let here = disk.dir.display().to_string();
        let image = disk.dir.join("image").display().to_string();
        let dev = disk.dev.clone();
        let in_force = format!("raw device {} [{}]", disk.name(), disk.scheduler());
        for (raw, place) in [(&dev, &*in_force), (&image, "")] {
            for workload in [
                "hdparm:seconds=200ms,settle=0",
                "hdparm:seconds=200ms,settle=0,direct=yes",
                "seeker:seconds=200ms",
                "seeker:seconds=200ms,direct=yes,threads=4",
            ] {
                let args = ["run", workload, "--json", "--dir", &here, "--raw", raw];
                let r = seekwell(&args);
                assert_eq!(r.code, Some(0), "{sector} {args:?}: {}", r.err);
                let record = r.record();
                let value = record["metric"]["value"].as_f64().unwrap_or_default();
                let unit = &record["metric"]["unit"];
                println!("{sector} {raw} {workload}: {value} {unit}");
                assert!(value > 0.0, "{args:?}");
                assert_eq!(record["device"]["spec"].as_str(), Some(&**raw));
                let name = record["device"]["name"].as_str().unwrap_or_default();
                assert!(name.starts_with(place), "{name}");
            }
        }
        // Sixteen requests at a time go through io_uring and bypass the page cache, first on the
        // device and then on files.
        let job = disk.dir.join("deep.fio");
        let text = format!(
            "[deep]\nfilename={dev}\nrw=randread\nbs=4k\nsize=8m\ndirect=1\nioengine=io_uring\n\
             iodepth=16\n"
        );
        fs::write(&job, &text).expect("a job file");
        let file = job.display().to_string();
        for raw in [&dev, &image] {
            let r = seekwell(&["run", &file, "--json", "--dir", &here, "--raw", raw]);
            assert_eq!(r.code, Some(0), "{}", r.err);
            let record = r.record();
            let ops = record["operations"].as_array().expect("a list");
            assert_eq!(ops[0]["latency"]["count"], 2048, "{raw}");
        }
        // Writes to a device are refused.
        fs::write(&job, text.replace("randread", "randwrite")).expect("a job file");
        let r = seekwell(&["run", &file, "--dir", &here, "--raw", &dev]);
        assert_eq!(r.code, Some(2), "{}", r.err);
        assert!(r.err.contains("which would destroy its data"), "{}", r.err);
        let mnt = disk.ext4(&dev);
        let text = "[deep]\nrw=randrw\nbs=4k\nsize=8m\ndirect=1\nioengine=io_uring\niodepth=16\n";
        fs::write(&job, text).expect("a job file");
        let args = ["run", &job.display().to_string(), "--json", "--dir"];
        let r = seekwell(&[&args[..], &[&*mnt.display().to_string()]].concat());
        assert_eq!(r.code, Some(0), "{}", r.err);
        let record = r.record();
        let tasks = record["tasks"].as_array().expect("a list");
        let sum = |k: &str| tasks.iter().filter_map(|t| t[k].as_u64()).sum::<u64>();
        let (read, written) = (sum("read_bytes"), sum("written_bytes"));
        println!("{sector} fio: {read} bytes read, {written} written");
        assert!(read > 0 && read + written >= 8 << 20, "{read} + {written}");
        fs::remove_file(job).expect("ours");
    }
}
