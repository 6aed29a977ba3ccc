//! Tests `compare --host` with its simulation, with limits of control groups, and after a power
//! cut.

use crate::disk::serialize_tests;
use crate::host::{Mount, document, until, wait_until_directory_unused};
use crate::rig::{Ran, guard_process, pid};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::path::Path;

/// The same script also runs in simulation. One document contains both figures and their ratio, and
/// the disk is restored before the simulation starts. In simulation, a disk with ten times the
/// service time is slower.
#[test]
fn simulation_and_host_results_are_reported_with_their_ratio() {
    let Some(m) = Mount::new("simulation beside reality") else {
        return;
    };
    let dir = m.at().display().to_string();
    let ratio = |service_us: u32, more: &[&str]| -> (f64, Ran) {
        let sim = format!("constant:service_us={service_us}");
        let results = m.rig.dir.join(format!("sim-{service_us}-{}", more.len()));
        let results = results.display().to_string();
        let base = [
            "compare",
            "--host",
            &dir,
            "--workload",
            "fs-mark:files=20",
            "--schedulers",
            "none,mq-deadline",
            "--seeds",
            "3",
            "--confirm",
            &m.rig.name,
            "--with-sim",
            &sim,
            "--results",
            &results,
        ];
        let r = m.rig.run(&[&base, more].concat());
        assert_eq!(r.code, Some(0), "{}", r.err);
        if more.is_empty() {
            return (0.0, r);
        }
        let doc = document(&r);
        let twin = &doc["simulation"];
        let figures = twin["figures"].as_array().expect("a list");
        assert_eq!(figures.len(), 2, "{twin}");
        for f in figures {
            let (a, b) = (f["real"].as_f64(), f["simulated"].as_f64());
            let (a, b) = (a.expect("a number"), b.expect("a number"));
            assert!(a > 0.0 && (f["ratio"].as_f64().expect("a number") - b / a).abs() < 1e-9);
            assert_eq!(f["unit"], "files/s");
        }
        assert_eq!(twin["pairs"].as_array().map(Vec::len), Some(1));
        let put_back = r.err.find("all settings are restored").expect("said");
        assert!(
            put_back
                < r.err
                    .find("the same workloads in simulation")
                    .expect("said"),
            "{}",
            r.err
        );
        (figures[0]["simulated"].as_f64().expect("a number"), r)
    };
    let (fast, _) = ratio(100, &["--json"]);
    let (slow, _) = ratio(1000, &["--json"]);
    assert!(fast > 2.0 * slow, "{fast} and {slow} files/s");
    let (_, r) = ratio(100, &[]);
    for says in ["MEASURED", "SIMULATED", "RATIO", "mq-deadline / none"] {
        assert!(r.out.contains(says), "{says}: {}", r.out);
    }
    m.is_as_before();
    // A program cannot be simulated. This is reported before anything runs.
    let r = m.rig.run(&[
        "compare",
        "--host",
        &dir,
        "--workload",
        "cmd:true",
        "--confirm",
        &m.rig.name,
        "--with-sim",
        "constant",
    ]);
    assert_eq!(r.code, Some(2), "{}", r.err);
    assert!(r.err.contains("programs only run for real"), "{}", r.err);
    m.is_as_before();
}

/// All processes are killed at once, including the guard process. One command then reports,
/// restores and removes the leftovers, and a second command finds nothing. After a boot the same
/// holds, except that there are no settings to restore.
#[test]
fn leftovers_of_a_power_cut_are_restored_and_reported() {
    // The commands would also report leftovers of another test's killed run.
    let _turn = serialize_tests();
    let Some(m) = Mount::new("what a power cut leaves") else {
        return;
    };
    let begun = m.rig.dir.join("begun");
    let file = m.file(
        1000,
        "mq-deadline,bfq",
        &format!(
            "[[workload]]\nname = \"w\"\nweight = 500\ncommand = 'echo . >> {}; exec sleep 1'\n",
            begun.display()
        ),
    );
    let state = m.rig.dir.join("state/runs");
    for booted in [false, true] {
        let _ = fs::remove_file(&begun);
        let mut child = m.start(&file);
        let runs = || fs::read_to_string(&begun).map_or(0, |t| t.lines().count());
        until("it is at work", || runs() > 1);
        let guardian = guard_process(&child);
        let _ = kill_process(guardian.expect("there is one"), Signal::KILL);
        let _ = kill_process(pid(&child), Signal::KILL);
        child.wait().expect("ours");
        assert!(m.rig.records().exists() && state.exists(), "both are left");
        if booted {
            // After a boot, no process exists, /run is empty, and the boot has another ID.
            wait_until_directory_unused(&m.at());
            fs::remove_dir_all(m.rig.records()).expect("ours");
            let scheduler = m.rig.queue().join("scheduler");
            fs::write(scheduler, "none").expect("as a boot leaves it");
            fs::write(m.rig.queue().join("wbt_lat_usec"), "-1").expect("as a boot leaves it");
            for e in fs::read_dir(&state).expect("there").flatten() {
                let text = fs::read_to_string(e.path()).expect("a note");
                let at = text.find("boot_id").expect("its boot") + 10;
                fs::write(e.path(), format!("{}other{}", &text[..at], &text[at..])).expect("ours");
            }
        }
        let r = m.rig.run(&["host", "restore"]);
        assert_eq!(r.code, Some(0), "{}", r.err);
        let by = if booted {
            "a power failure or reset of the machine"
        } else {
            "kill -9"
        };
        assert!(
            r.out.contains(&format!("live: was interrupted by {by}")),
            "{}",
            r.out
        );
        assert!(r.out.contains("resume with: sudo "), "{}", r.out);
        assert!(
            r.out.contains("left by this experiment; removed"),
            "{}",
            r.out
        );
        assert_eq!(
            r.out.contains("all settings are restored"),
            !booted,
            "{}",
            r.out
        );
        if !booted {
            assert!(
                r.out.contains("/sys/fs/cgroup"),
                "its control group, too: {}",
                r.out
            );
            assert_eq!(m.rig.settings(), m.rig.before);
        }
        let left: Vec<_> = fs::read_dir(m.at()).expect("there").flatten().collect();
        assert!(left.is_empty() && !state.exists(), "{left:?}");
        let r = m.rig.run(&["host", "restore"]);
        assert_eq!(
            r.out, "There is nothing to restore: no killed run left settings, files or programs.\n",
            "{}",
            r.err
        );
    }
}

/// A limit of a control group works under any scheduler. Under `none`, the limited reader must take
/// the expected time, and no group may remain.
#[test]
fn cgroup_limit_applies_to_a_neighbour() {
    let Some(m) = Mount::new("limits of control groups") else {
        return;
    };
    if !Path::new("/sys/fs/cgroup/blkio/tasks").exists() {
        println!("skipped: limits of control groups: no blkio of version 1 here");
        return;
    }
    // Thirty reads of 4 KiB bypass the page cache. They run at 20 per second, or at full speed.
    let read = "dd if=f of=/dev/null bs=4k count=30 iflag=direct";
    let write = "dd if=/dev/zero of=f bs=4k count=30 conv=fsync";
    let file = m.file(
        3,
        "none",
        &format!(
            "[[workload]]\nname = \"free\"\ncommand = '{write}; {read}'\n\
             [[workload]]\nname = \"limited\"\nriops = 20\ncommand = '{write}; {read}'\n"
        ),
    );
    let r = m.run(&file);
    assert_eq!(r.code, Some(0), "{}", r.err);
    let doc = document(&r);
    let mean = |name: &str| {
        let mut all = doc["analysis"]["cells"].as_array().expect("cells").iter();
        let cell = all.find(|c| c["workload"] == name).expect("there");
        cell["sides"][0]["mean"].as_f64().expect("a mean")
    };
    let (free, limited) = (mean("free"), mean("limited"));
    println!("30 reads: {free:.3} s, at 20 a second {limited:.3} s (without limits: the same)");
    assert!(limited > 0.9, "{limited} s");
    m.is_as_before();
    for e in fs::read_dir("/sys/fs/cgroup/blkio")
        .expect("there")
        .flatten()
    {
        let name = e.file_name().to_string_lossy().into_owned();
        let pid = name
            .strip_prefix("seekwell-")
            .and_then(|n| n.split('-').next());
        let lives = pid.is_none_or(|p| Path::new("/proc").join(p).exists());
        assert!(lives, "{name} is left");
    }
}
