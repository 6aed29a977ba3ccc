//! `seekwell calibrate` on the test's own files and loop devices.

use super::*;
use crate::watched_run::Watched;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

const MIB: usize = 1 << 20;

/// Makes a file without holes, in which every block is different.
fn image(name: &str, mib: usize) -> String {
    let mut x = 1u64;
    let bytes: Vec<u8> = (0..mib * MIB / 8)
        .flat_map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            x.to_le_bytes()
        })
        .collect();
    let path = scratch(name, &bytes);
    let f = fs::File::open(&path).expect("the image");
    f.sync_all().expect("on the disk");
    path
}

fn shell(program: &str, args: &[&str]) -> Option<String> {
    let o = Command::new(program).args(args).output().ok()?;
    o.status
        .success()
        .then(|| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

/// A loop device over a file of the test. Dropping it detaches the device.
struct Loop(String);

impl Loop {
    fn over(file: &str) -> Option<Loop> {
        shell("losetup", &["-f", "--show", "--direct-io=on", file])
            .or_else(|| shell("losetup", &["-f", "--show", file]))
            .map(Loop)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        shell("losetup", &["-d", &self.0]);
    }
}

/// A mount of the test. Dropping it unmounts the file system.
struct Mount(String);

impl Drop for Mount {
    fn drop(&mut self) {
        shell("umount", &[&self.0]);
    }
}

fn path_of(name: &str) -> String {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    dir.join(name).display().to_string()
}

/// Checks the result of calibrating a real device under any load. Either there is a preset that can
/// be listed and run, or the result says why there is none.
fn check(r: &Ran, preset: &str) {
    let json: Value = serde_json::from_str(&r.out).unwrap_or_else(|e| panic!("{e}: {}", r.err));
    let seconds = json["seconds"].as_f64().expect("seconds");
    // On a slow machine one measurement may be in progress when the budget ends.
    assert!(seconds < 25.0, "the budget was 10 s, it took {seconds}");
    assert!(json["ios"].as_u64() > Some(100));
    if json["preset"].is_null() {
        // On a busy machine, the disk may need milliseconds for a read, or the budget may be too
        // short.
        assert!([2, 5].contains(&r.code), "{}: {}", r.code, r.err);
        assert!(r.err.contains("no preset"), "{}", r.err);
        println!("skipped: no preset to run: {}", json["because"]);
        return;
    }
    assert_eq!(r.code, 0, "{}", r.err);
    if !json["stopped_early"].is_null() {
        assert!(r.err.contains("--budget"), "{}", r.err);
    }
    assert_eq!(
        json["preset"],
        fs::read_to_string(preset).expect("the preset")
    );
    let parameters = json["parameters"].as_array().expect("parameters");
    let measured = parameters.iter().filter(|p| p["known"] == "measured");
    for p in measured.clone() {
        assert!(!p["method"].as_str().unwrap_or_default().is_empty(), "{p}");
    }
    assert!(measured.count() > 3);
    assert!(good(&["devices", preset]).contains("fitted"));
    let ran = good(&[
        "compare",
        "--quiet",
        "--device",
        preset,
        "--schedulers",
        "noop",
        "--workloads",
        "hdparm",
    ]);
    assert!(ran.contains("MB/s"), "{ran}");
}

#[test]
fn calibrated_file_gives_a_usable_preset() {
    let file = image("calibrate-file.img", 64);
    let (preset, plot) = (
        path_of("calibrate-file.toml"),
        path_of("calibrate-file.svg"),
    );
    let r = seekwell(&[
        "calibrate",
        &file,
        "--budget",
        "10s",
        "--json",
        "-o",
        &preset,
        "--plot",
        &plot,
    ]);
    if r.err.contains("O_DIRECT") {
        println!("skipped: {}", r.err);
        return;
    }
    check(&r, &preset);
    let svg = fs::read_to_string(&plot).expect("the plot");
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
}

/// With permission, an unused device is probed by writes. Afterwards every byte is unchanged, and
/// the device is free. A mounted device is refused.
#[test]
fn calibration_of_a_loop_device_with_writes_restores_its_bytes() {
    let file = image("calibrate-loop.img", 64);
    let before = fs::read(&file).expect("the image");
    let Some(device) = Loop::over(&file) else {
        println!("skipped: no loop device to be had (needs root and losetup)");
        return;
    };
    let preset = path_of("calibrate-loop.toml");
    let r = seekwell(&[
        "calibrate",
        &device.0,
        "--budget",
        "10s",
        "--json",
        "--allow-write",
        "-o",
        &preset,
    ]);
    check(&r, &preset);
    drop(device);
    assert!(
        before == fs::read(&file).expect("the image"),
        "the bytes have changed"
    );

    let Some(device) = shell("mkfs.ext4", &["-q", "-F", &file]).and_then(|_| Loop::over(&file))
    else {
        println!("skipped: no mkfs.ext4");
        return;
    };
    let point = path_of("calibrate-mount");
    fs::create_dir_all(&point).expect("a mount point");
    if shell("mount", &[&device.0, &point]).is_none() {
        println!("skipped: mounting is not allowed");
        return;
    }
    let mounted = Mount(point);
    let r = seekwell(&["calibrate", &device.0, "--allow-write", "--budget", "10s"]);
    drop(mounted);
    assert_eq!(r.code, 2, "{}", r.err);
    assert!(r.err.contains("is mounted at"), "{}", r.err);
    assert!(r.err.contains("umount"), "{}", r.err);
}

#[test]
fn interrupted_calibration_leaves_nothing_behind() {
    let file = image("calibrate-stop.img", 64);
    let before = fs::read(&file).expect("the image");
    let preset = path_of("calibrate-stop.toml");
    let _ = fs::remove_file(&preset);
    let mut run = Watched::begin(&["calibrate", &file, "--budget", "5m", "-o", &preset]);
    // Wait until the bar shows that at least one second of the budget was used.
    let measures = |f: &str| f.contains(" %  ") && !f.contains(" 0:00 ");
    if !run.shows("the measuring", measures) {
        let err = run.end().err;
        assert!(err.contains("O_DIRECT"), "it ended by itself: {err}");
        println!("skipped: {err}");
        return;
    }
    run.signal(Signal::INT);
    let r = run.end();
    assert_eq!(r.code, 130, "{}", r.err);
    assert!(r.err.contains("interrupted"), "{}", r.err);
    assert!(
        before == fs::read(&file).expect("the image"),
        "the bytes have changed"
    );
    // The parameters of flash are fitted after all measurements. So an interrupted calibration
    // gives no preset and no partial file.
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let parts = fs::read_dir(dir).expect("scratch").filter_map(Result::ok);
    let parts = parts.filter(|e| {
        e.file_name()
            .to_string_lossy()
            .starts_with(".calibrate-stop")
    });
    assert_eq!(parts.count(), 0);
}

#[test]
fn devices_that_cannot_be_probed_are_rejected_with_a_remedy() {
    let small = scratch("calibrate-small.img", &[7; 65_536]);
    let dir = env!("CARGO_TARGET_TMPDIR");
    for (path, what, remedy) in [
        ("/dev/no-such-disk", "no such file", "lsblk"),
        (dir, "neither a block device nor a regular file", "/dev/sdb"),
        (
            "/dev/null",
            "neither a block device nor a regular file",
            "/dev/sdb",
        ),
        (&small, "too little", "16 MiB"),
    ] {
        let r = seekwell(&["calibrate", path]);
        assert_eq!((r.code, &*r.out), (2, ""), "{path}: {}", r.err);
        // A scratch directory in memory may not support direct I/O.
        let ok = r.err.contains(what) && r.err.contains(remedy) || r.err.contains("O_DIRECT");
        assert!(ok && r.err.contains(path), "{path}: {}", r.err);
    }
    for budget in ["3", "2s", "x", "5y", ""] {
        let r = seekwell(&["calibrate", "/dev/null", "--budget", budget]);
        assert_eq!(r.code, 2, "{budget}");
        assert!(r.err.contains("--budget"), "{budget}: {}", r.err);
    }
}
