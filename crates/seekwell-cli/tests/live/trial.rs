//! `seekwell trial` on a loop device with ext4, while a thread of the test does the machine's work.

use crate::host::{Mount, document, until};
use crate::rig::{pid, wait_for_end};
use rustix::fs::OFlags;
use rustix::process::{Signal, kill_process};
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that writes and syncs blocks until it is dropped.
struct Work {
    over: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Work {
    fn begin(dir: &Path) -> Work {
        let path = dir.join("busy");
        fs::write(&path, vec![1; 1 << 20]).expect("written");
        let (over, done) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (told, count) = (Arc::clone(&over), Arc::clone(&done));
        let thread = std::thread::spawn(move || {
            let mut how = OpenOptions::new();
            let file = how
                .write(true)
                .custom_flags(OFlags::DSYNC.bits().cast_signed())
                .open(&path);
            let file = file.expect("open");
            let mut at = 0;
            while !told.load(Ordering::Acquire) {
                file.write_all_at(&[7; 4096], at % (1 << 20))
                    .expect("written");
                at += 5 * 4096;
                count.fetch_add(1, Ordering::Release);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Work {
            over,
            done,
            thread: Some(thread),
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))), "the work failed");
    }
}

/// Six blocks of two schedulers, with one metric of the disk and one of the programs. The scheduler
/// changes, nothing is written, the results are an ordinary folder, and everything is restored.
#[test]
fn trial_measures_the_machines_own_work_and_restores_it() {
    let Some(m) = Mount::new("a trial") else {
        return;
    };
    let work = Work::begin(&m.at());
    // The test serves its count of writes in the format of Prometheus.
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/metrics", server.local_addr().expect("bound"));
    let done = Arc::clone(&work.done);
    std::thread::spawn(move || {
        for stream in server.incoming() {
            let mut stream = stream.expect("a client");
            let _ = stream.read(&mut [0; 1024]);
            let n = done.load(Ordering::Acquire);
            let page = format!("HTTP/1.0 200 OK\r\n\r\n# TYPE writes counter\nwrites {n}\n");
            let _ = stream.write_all(page.as_bytes());
        }
    });
    let dir = m.at().display().to_string();
    let results = m.results().display().to_string();
    let before = fs::read_dir(m.at()).expect("read").count();
    let writes = format!("rate:{url} writes");
    let r = m.rig.run(&[
        "trial",
        &dir,
        "--for",
        "40s",
        "-s",
        "none,mq-deadline",
        "--baseline",
        "3s",
        "--period",
        "2s",
        "--washout",
        "1s",
        "--guard-for",
        "2s",
        "--metric",
        &writes,
        "--metric",
        "write mean",
        "--results",
        &results,
        "--json",
    ]);
    assert_eq!(r.code, Some(0), "{}", r.err);
    assert!(r.err.contains("6 blocks of 2 periods"), "{}", r.err);
    m.rig.is_as_before();
    assert_eq!(
        fs::read_dir(m.at()).expect("read").count(),
        before,
        "nothing is written"
    );
    let doc = document(&r);
    let cells = doc["analysis"]["cells"].as_array().expect("cells");
    let metrics: Vec<_> = cells.iter().map(|c| c["metric"]["name"].as_str()).collect();
    assert_eq!(metrics, [Some("writes"), Some("write mean")]);
    for side in cells[0]["sides"].as_array().expect("sides") {
        let mean = side["mean"].as_f64().expect("a mean");
        assert!(mean > 1.0 && mean < 1000.0, "writes per second: {side}");
    }
    for command in ["recommend", "export"] {
        let r = m.rig.run(&[command, &results]);
        assert_eq!(r.code, Some(0), "{command}: {}", r.err);
        assert!(!r.out.contains("Not compared"), "{}", r.out);
    }
}

/// A trial is ended by another command, and by `kill -9`. Both times the settings are restored.
#[test]
fn trial_ends_on_command_and_the_guardian_restores_after_a_kill() {
    let Some(m) = Mount::new("a stopped trial") else {
        return;
    };
    let _work = Work::begin(&m.at());
    let dir = m.at().display().to_string();
    for kill in [false, true] {
        let mut c = m.rig.command(&[
            "trial",
            &dir,
            "--for",
            "10m",
            "-s",
            "bfq,mq-deadline",
            "--baseline",
            "2s",
            "--period",
            "5s",
            "--washout",
            "2s",
        ]);
        c.arg("--results")
            .arg(m.rig.dir.join(format!("stopped-{kill}")));
        let child = c.spawn().expect("started");
        until("the first switch", || m.rig.active() != "none");
        match kill {
            true => kill_process(pid(&child), Signal::KILL).expect("killed"),
            false => {
                let r = m.rig.run(&["trial", &dir, "--stop"]);
                assert_eq!(r.code, Some(0), "{}", r.err);
            }
        }
        let r = wait_for_end(child);
        if !kill {
            assert_eq!(r.code, Some(130), "{}", r.err);
        }
        until("the restored scheduler", || {
            m.rig.active() == "none" && !m.rig.records().exists()
        });
        m.rig.is_as_before();
    }
    let r = m.rig.run(&["trial", &dir, "--stop"]);
    assert_eq!(r.code, Some(2));
    assert!(r.err.contains("no trial is running"), "{}", r.err);
}

/// Without work, a trial changes nothing and says why.
#[test]
fn trial_of_an_idle_disk_is_refused() {
    let Some(m) = Mount::new("a trial of an idle disk") else {
        return;
    };
    let dir = m.at().display().to_string();
    let mut base = vec!["trial", &dir, "--for", "90s", "--baseline", "1s"];
    let r = m.rig.run(&base);
    assert_eq!(r.code, Some(2));
    assert!(r.err.contains("6 blocks of"), "too short: {}", r.err);
    base.extend(["-s", "none,bfq", "--period", "3s", "--washout", "2s"]);
    let r = m.rig.run(&[&base[..], &["--guard-for", "6s"]].concat());
    assert!(r.err.contains("would never act"), "{}", r.err);
    let r = m.rig.run(&[&base[..], &["--guard", "0.5"]].concat());
    assert!(r.err.contains("a number above 1"), "{}", r.err);
    base.extend(["--guard-for", "4s"]);
    let r = m.rig.run(&base);
    assert_eq!(r.code, Some(2));
    assert!(r.err.contains("needs a machine at work"), "{}", r.err);
    let r = m
        .rig
        .run(&[&base[..], &["--metric", "rate:exit 3"]].concat());
    assert!(r.err.contains("--metric rate:exit 3"), "{}", r.err);
    m.rig.is_as_before();
}
