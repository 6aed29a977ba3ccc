//! A served disk with its data in a file: durability of flushes, refused files, and the mount point
//! of a killed server.

use crate::disk::{self, Served, missing_requirement, serialize_tests};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

/// Opens the served file for writing. Each write and fsync goes to the server.
fn open(served: &Served, flags: i32) -> File {
    let mut how = File::options();
    how.write(true)
        .custom_flags(flags)
        .open(served.file())
        .expect("open")
}

/// Returns the number of fdatasync calls in a trace. With `ok`, counts only those that succeeded.
fn fdatasyncs(trace: &Path, ok: bool) -> usize {
    let text = fs::read_to_string(trace).expect("a trace");
    let ended = |l: &&str| l.contains("fdatasync") && l.contains(") ") && l.contains("= ");
    let calls = text.lines().filter(ended);
    calls.filter(|l| !ok || l.contains("= 0")).count()
}

fn count(account: &Value, what: &str) -> u64 {
    account[what]
        .as_u64()
        .unwrap_or_else(|| panic!("{what}: {}", account[what]))
}

#[test]
fn client_flush_reaches_the_disk_under_the_backing_file() {
    let _turn = serialize_tests();
    if let Some(skip) = missing_requirement(&[]) {
        println!("skipped: flushes of a backing file: {skip}");
        return;
    }
    let strace = missing_requirement(&["strace"]);
    if let Some(why) = &strace {
        println!("skipped: system calls counted beside: {why}");
    }
    // Test a drive with a volatile cache, and a drive without one, which has nothing to flush.
    for cache in ["yes", "no"] {
        let device = format!("constant:service_us=200,write_cache={cache}");
        let trace = strace.is_none().then_some("trace=fdatasync");
        let served = Served::traced(&device, "64M", &["--backing"], trace);
        let file = open(&served, 0);
        for i in 0..20u8 {
            file.write_at(&[i + 1; 4096], u64::from(i) * 8192)
                .expect("written");
            file.sync_data().expect("flushed");
        }
        let durable = open(&served, libc_dsync());
        for i in 0..5u8 {
            durable
                .write_at(&[99; 4096], u64::from(i) << 20)
                .expect("written");
        }
        // The data must be in the file while the server is still running.
        let kept = File::open(served.dir().join("backing.img")).expect("made");
        let mut page = [0; 4096];
        kept.read_exact_at(&mut page, 19 * 8192).expect("read");
        assert_eq!(page, [20; 4096]);
        drop((file, durable));
        let (dir, account) = served.stop_with_dir();
        for (what, n) in [("flushes", 20), ("durable_writes", 5), ("errors", 0)] {
            assert_eq!(count(&account, what), n, "{what}, cache {cache}");
        }
        // The writes follow each other, so no two of them share a call. If a server ignored the
        // backing file, both counts would be 0.
        assert_eq!(count(&account, "backed"), 25, "cache {cache}");
        assert_eq!(count(&account, "backing_syncs"), 25, "cache {cache}");
        if strace.is_none() {
            // There is one more call at the end.
            assert_eq!(
                fdatasyncs(&dir.0.join("strace.txt"), true),
                26,
                "cache {cache}"
            );
        }
    }
    let served = Served::start("constant:service_us=200,write_cache=yes", "64M", &[]);
    open(&served, 0).sync_data().expect("flushed");
    let account = served.stop();
    assert_eq!(count(&account, "flushes"), 1);
    assert_eq!(account["backed"], Value::Null, "memory keeps nothing");
}

/// Returns the flag O_DSYNC, which the standard library does not define.
fn libc_dsync() -> i32 {
    rustix::fs::OFlags::DSYNC.bits() as i32
}

#[test]
fn flush_waits_for_the_slower_of_model_and_host_and_reports_host_errors() {
    let _turn = serialize_tests();
    if let Some(skip) = missing_requirement(&["strace"]) {
        println!("skipped: a slow and a failing disk under the backing file: {skip}");
        return;
    }
    let device = "constant:service_us=200,write_cache=yes";
    let slow = Some("inject=fdatasync:delay_enter=300000");
    let served = Served::traced(device, "64M", &["--backing"], slow);
    let file = open(&served, 0);
    for _ in 0..3 {
        file.sync_data().expect("flushed");
    }
    drop(file);
    let account = served.stop();
    assert_eq!(
        (count(&account, "backed"), count(&account, "backing_waits")),
        (3, 3)
    );
    let ms = |what: &str| account[what]["max_ns"].as_f64().expect("a time") / 1e6;
    assert!(
        ms("model") < 10.0,
        "the model's own time: {} ms",
        ms("model")
    );
    assert!(
        ms("delivered") >= 300.0 && ms("late") >= 250.0,
        "and what was delivered"
    );
    let reasons = account["reasons"].to_string();
    assert!(
        reasons.contains("3 completions waited for the disk that holds"),
        "{reasons}"
    );

    let broken = Some("inject=fdatasync:error=EIO:when=2");
    let served = Served::traced(device, "64M", &["--backing"], broken);
    let file = open(&served, 0);
    file.sync_data().expect("the first one works");
    let e = file.sync_data().expect_err("the second one fails");
    assert_eq!(e.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    file.sync_data().expect("the third one works");
    drop(file);
    let account = served.stop();
    assert_eq!(
        (count(&account, "flushes"), count(&account, "errors")),
        (3, 1)
    );
    assert_eq!(count(&account, "backed"), 2);
}

#[test]
fn caught_signals_stop_the_server_cleanly_with_exit_code_0() {
    let _turn = serialize_tests();
    if let Some(skip) = missing_requirement(&[]) {
        println!("skipped: signals to a served disk: {skip}");
        return;
    }
    for name in ["INT", "TERM", "HUP"] {
        let served = Served::start("constant:service_us=1000", "64M", &[]);
        let account = served.dir().join("account.json");
        let (mount, status, _left) = served.signal_and_keep(name);
        assert_eq!(status.code(), Some(0), "SIG{name}, as its help says");
        assert!(!disk::mounted(&mount));
        assert!(fs::read_to_string(account).expect("told").contains("idle"));
    }
}

#[test]
fn mount_of_a_killed_server_is_reused_under_any_spelling() {
    let _turn = serialize_tests();
    if let Some(skip) = missing_requirement(&["losetup"]) {
        println!("skipped: the mount of a killed server: {skip}");
        return;
    }
    let device = "constant:service_us=1000";
    // The user may type the mount point as a link, with a `/` at the end, or as a relative path.
    for name in ["link", "fuse/", "./fuse"] {
        let served = Served::start(device, "64M", &[]);
        let dir = served.dir().to_owned();
        symlink("fuse", dir.join("link")).expect("linked");
        let attached = (name == "link").then(|| served.attach());
        let (mount, _, _left) = served.signal_and_keep("KILL");
        assert!(disk::mounted(&mount));
        let mut child = Command::new(env!("CARGO_BIN_EXE_seekwell"))
            .args([
                "serve",
                "--until-eof",
                "-d",
                device,
                "--size",
                "64M",
                "--fuse",
                name,
            ])
            .current_dir(&dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("runs");
        disk::ready(&mut child);
        drop(child.stdin.take());
        let o = child.wait_with_output().expect("ends");
        let err = String::from_utf8_lossy(&o.stderr).into_owned();
        assert!(o.status.success(), "{name}: {err}");
        assert!(
            err.contains("removed the mount of a killed server"),
            "{err}"
        );
        if let Some(attached) = attached {
            let remedy = format!("losetup -d {}", attached.path().display());
            assert!(err.contains(&remedy), "{err}");
        }
        assert!(!disk::mounted(&mount));
        fs::remove_file(dir.join("link")).expect("ours");
    }
    // The command that the help recommends must work too.
    let served = Served::start(device, "64M", &[]);
    let (mount, _, _left) = served.signal_and_keep("KILL");
    disk::run("umount", &["--lazy", &mount.display().to_string()]);
    assert!(!disk::mounted(&mount));
}
