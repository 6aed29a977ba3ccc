//! An experiment can leave files if it is killed in its first run, before any run counts, or if its
//! file system is shut down. `host restore` must find all of them.

use crate::host::{Mount, until, wait_until_directory_unused};
use crate::rig::{PATIENCE, guard_process, pid};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Returns the directories of runs.
fn directories(at: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(at).expect("there").flatten();
    let mut all: Vec<PathBuf> = all.map(|e| e.path()).collect();
    all.sort();
    all
}

const WORKLOADS: &str = "[[workload]]\nname = \"w\"\n\
                         command = 'for i in 1 2 3; do echo $i >f$i; done; sleep 30'\n";

#[test]
fn kills_in_the_first_run_leave_only_detectable_leftovers() {
    let Some(m) = Mount::new("kills in the first run") else {
        return;
    };
    let file = m.file(1, "none,mq-deadline", WORKLOADS);
    let state = m.rig.dir.join("state/runs");
    let mut with_directory = 0;
    for i in 0..16_u64 {
        let mut child = m.start(&file);
        let end = Instant::now() + PATIENCE;
        // Half of the kills follow as soon as the first directory exists, and the others a little
        // later.
        while directories(&m.at()).is_empty() && child.try_wait().expect("ours").is_none() {
            assert!(Instant::now() < end, "{i}: no directory");
        }
        std::thread::sleep(Duration::from_millis(i / 2 * 3));
        if i % 4 == 3
            && let Some(guardian) = guard_process(&child)
        {
            let _ = kill_process(guardian, Signal::KILL);
        }
        kill_process(pid(&child), Signal::KILL).expect("it runs");
        child.wait().expect("ours");
        assert!(!m.results().exists(), "{i}: no run counts yet");
        let left = directories(&m.at());
        with_directory += usize::from(!left.is_empty());
        // If the guard process is still alive, it restores the settings meanwhile.
        until(&format!("{i}: restored"), || {
            let r = m.rig.run(&["host", "restore"]);
            r.code == Some(0) && !state.exists() && m.rig.settings() == m.rig.before
        });
        wait_until_directory_unused(&m.at());
        assert!(directories(&m.at()).is_empty(), "{i}: {left:?}");
    }
    assert!(with_directory > 8, "{with_directory} kills of 16 left one");
    let r = m.rig.run(&["host", "restore"]);
    assert_eq!(
        r.out,
        "There is nothing to restore: no killed run left settings, files or programs.\n"
    );
    m.is_as_before();
}

/// The experiment reports the leftovers at its end. `host restore` reports them too, until they can
/// be removed.
#[test]
fn leftovers_on_a_shut_down_file_system_stay_recorded() {
    let Some(mut m) = Mount::new("a file system that is shut down") else {
        return;
    };
    let file = m.file(1, "none,mq-deadline", WORKLOADS);
    let mount = m.rig.dir.join("mnt");
    let child = m.start(&file);
    let made = || {
        directories(&m.at())
            .first()
            .is_some_and(|d| d.join("f3").exists())
    };
    until("the first run is at work", made);
    let left = directories(&m.at());
    let synced = Command::new("sync").arg("-f").arg(&mount).status();
    assert!(synced.expect("sync").success());
    let aborted = Command::new("mount")
        .args(["-o", "remount,abort"])
        .arg(&mount)
        .status();
    kill_process(pid(&child), Signal::TERM).expect("it runs");
    let r = crate::rig::wait_for_end(child);
    if !aborted.expect("mount").success() {
        println!("skipped: a file system that is shut down: mount -o remount,abort");
        return;
    }
    assert!(r.err.contains("could not be removed"), "{}", r.err);
    assert!(r.err.contains("host restore"), "{}", r.err);
    let r = m.rig.run(&["host", "restore"]);
    assert_eq!(r.code, Some(4), "{}{}", r.out, r.err);
    assert!(r.err.contains(left[0].to_str().expect("text")), "{}", r.err);
    // While the file system is not mounted, the note is kept.
    m.unmount();
    let r = m.rig.run(&["host", "restore"]);
    assert!(
        r.code == Some(4) && r.err.contains("mount it, and try again"),
        "{}",
        r.err
    );
    m.mount();
    let r = m.rig.run(&["host", "restore"]);
    assert_eq!(r.code, Some(0), "{}{}", r.out, r.err);
    assert!(
        r.out.contains("left by this experiment; removed"),
        "{}",
        r.out
    );
    assert!(directories(&m.at()).is_empty());
    assert!(!m.rig.dir.join("state/runs").exists());
}

/// Another rule sets the scheduler last at every boot. `host` and `doctor` must name it.
#[test]
fn host_and_doctor_name_the_rule_that_sets_a_scheduler_at_boot() {
    let Some(m) = Mount::new("what sets a scheduler at boot") else {
        return;
    };
    let rule = format!(
        "KERNEL==\"{}\", ATTR{{queue/scheduler}}=\"bfq\"",
        m.rig.name
    );
    let wanted = format!("{}: /run/udev/rules.d/90-x.rules:1 sets bfq", m.rig.name);
    for command in ["host", "doctor"] {
        // The script uses a separate /run.
        let script = format!(
            "mount -t tmpfs none /run && mkdir -p /run/udev/rules.d && \
             printf '%s\\n' '{rule}' >/run/udev/rules.d/90-x.rules && exec \"$0\" {command}"
        );
        let o = Command::new("unshare")
            .args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_seekwell")])
            .env("COLUMNS", "200")
            .output()
            .expect("unshare");
        let out = String::from_utf8_lossy(&o.stdout).into_owned();
        let err = String::from_utf8_lossy(&o.stderr);
        if err.contains("unshare failed") || err.contains("permission denied") {
            println!("skipped: {command}: {err}");
            continue;
        }
        assert!(out.contains(&wanted), "{command}: {out}{err}");
    }
}
