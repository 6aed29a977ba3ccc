//! Runs real programs by their recipes: PostgreSQL under pgbench, SQLite and nginx. Each cell takes
//! seconds, on ext4 on the test's loop device. Another test replaces the kernel's /sys by that of a
//! phone.

use crate::disk::missing_requirement;
use crate::host::{Mount, document};
use crate::rig::ran;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

/// Each program must give its metric, and its requests must reach the device. No process and no
/// file may remain.
#[test]
fn real_programs_report_their_metrics_and_leave_nothing_behind() {
    let mut m = None;
    for (program, workload, unit) in [
        ("sqlite3", "sqlite3:inserts=20", "s"),
        ("pgbench", "pgbench:scale=1,time=1,clients=2", "tps"),
        ("nginx", "nginx:requests=20,clients=2", "requests/s"),
        ("mariadbd", "mariadb-scan:rows=2000", "s"),
    ] {
        if let Some(why) = missing_requirement(&[program]) {
            println!("skipped: {program} on a host: {why}");
            continue;
        }
        if m.is_none() {
            m = Mount::with("programs on a host", 512);
        }
        let Some(m) = &m else { return };
        let dir = m.at().display().to_string();
        let results = m
            .rig
            .dir
            .join(format!("results-{program}"))
            .display()
            .to_string();
        let r = m.rig.run(&[
            "compare",
            "--host",
            &dir,
            "--workload",
            workload,
            "--schedulers",
            "none,bfq",
            "--seeds",
            "1",
            "--confirm",
            &m.rig.name,
            "--results",
            &results,
            "--json",
        ]);
        if r.err.contains("install the package") {
            println!("skipped: {program} on a host: {}", r.err.trim());
            continue;
        }
        assert_eq!(r.code, Some(0), "{workload}: {}", r.err);
        let doc = document(&r);
        let cell = &doc["analysis"]["cells"][0];
        assert_eq!(cell["metric"]["unit"], unit, "{cell}");
        for side in cell["sides"].as_array().expect("sides") {
            let mean = side["mean"].as_f64();
            println!("{workload}: {mean:?} {unit} (a run that did nothing: none)");
            assert!(mean > Some(0.0), "{side}");
        }
        let csv = m.rig.run(&["export", &results, "-f", "csv"]);
        assert_eq!(csv.code, Some(0), "{}", csv.err);
        assert!(
            !csv.out.contains("no request reached the block device"),
            "{}",
            csv.out
        );
        m.is_as_before();
        // No process may remain. Its working directory, or one of its files, would be below this
        // directory.
        for e in fs::read_dir("/proc").expect("there").flatten() {
            let cwd = fs::read_link(e.path().join("cwd")).unwrap_or_default();
            assert!(
                !cwd.starts_with(m.at()),
                "{:?} works in {}",
                e.file_name(),
                cwd.display()
            );
        }
    }
}

/// `host`, `switch` and `run` must work with the /sys of a phone of 2014 (eMMC, single-queue
/// names). It is mounted over this machine's /sys in a separate mount namespace.
#[test]
fn host_switch_and_run_work_with_a_phones_sys() {
    if let Some(why) = missing_requirement(&["unshare", "mount"]) {
        println!("skipped: a phone's /sys: {why}");
        return;
    }
    let dir = std::env::temp_dir().join(format!("seekwell-phone-{}", std::process::id()));
    let put = |path: &str, text: &str| {
        let path = dir.join("sys").join(path);
        fs::create_dir_all(path.parent().expect("not the root")).expect("made");
        fs::write(path, text).expect("written");
    };
    fs::create_dir_all(dir.join("data")).expect("made");
    let number = fs::metadata(dir.join("data")).expect("there").dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    if major == 0 {
        println!(
            "skipped: a phone's /sys: {} is on no block device",
            dir.display()
        );
        fs::remove_dir_all(&dir).expect("ours");
        return;
    }
    put("block/mmcblk0/dev", "179:0\n");
    put("block/mmcblk0/size", "30777344\n");
    put("block/mmcblk0/device/name", "MMC16G\n");
    for (file, text) in [
        ("scheduler", "noop deadline row [cfq]\n"),
        ("nr_requests", "128\n"),
        ("rotational", "0\n"),
        ("read_ahead_kb", "128\n"),
        ("iosched/slice_idle", "0\n"),
    ] {
        put(&format!("block/mmcblk0/queue/{file}"), text);
    }
    // The phone's partition for user data gets the device number of the test's directory.
    put(
        "block/mmcblk0/mmcblk0p28/dev",
        &format!("{major}:{minor}\n"),
    );
    put("block/mmcblk0/mmcblk0p28/partition", "28\n");
    fs::create_dir_all(dir.join("sys/dev/block")).expect("made");
    let link = dir.join(format!("sys/dev/block/{major}:{minor}"));
    std::os::unix::fs::symlink("../../block/mmcblk0/mmcblk0p28", link).expect("linked");
    let seekwell = env!("CARGO_BIN_EXE_seekwell");
    let (at, data) = (dir.display(), dir.join("data").display().to_string());
    // The kernel puts the active scheduler in brackets. A plain file does not, so the script writes
    // them.
    let script = format!(
        "set -e\n\
         mount --bind {at}/sys /sys\n\
         {seekwell} host\n\
         {seekwell} host {data}\n\
         {seekwell} switch mmcblk0 row --yes\n\
         echo 'noop deadline [row] cfq' >/sys/block/mmcblk0/queue/scheduler\n\
         {seekwell} run fs-mark:files=3,workers=1 --dir {data} --json\n"
    );
    let o = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .env("SEEKWELL_RUN_DIR", dir.join("records"))
        .env("NO_COLOR", "1")
        .output()
        .expect("unshare runs");
    let r = ran(o);
    fs::remove_dir_all(&dir).expect("ours");
    if r.err.contains("mount:") || r.err.contains("unshare:") {
        println!("skipped: a phone's /sys: {}", r.err);
        return;
    }
    assert_eq!(r.code, Some(0), "{}{}", r.out, r.err);
    for says in [
        "MMC16G",
        "mmcblk0 schedules, with cfq.",
        "mmcblk0: cfq -> row, read back",
        "\"name\": \"row\"",
    ] {
        assert!(r.out.contains(says), "{says}: {}{}", r.out, r.err);
    }
}
