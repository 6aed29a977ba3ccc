//! Adverse conditions: no space for a record, a read-only /sys, two commands at the same time.

use crate::disk::{missing_requirement, serialize_tests};
use crate::host::{Mount, until};
use crate::rig::{Ran, Rig, pid, ran, wait_for_end};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::process::Command;

/// Runs a script in a separate mount namespace. Returns `None` if that is not possible, and prints
/// the reason.
fn run_in_mount_namespace(rig: &Rig, script: &str) -> Option<Ran> {
    if let Some(why) = missing_requirement(&["unshare", "mount"]) {
        println!("skipped: in a namespace of its own: {why}");
        return None;
    }
    let o = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .env("SEEKWELL_RUN_DIR", rig.records())
        .env("SEEKWELL_STATE_DIR", rig.dir.join("state"))
        .output()
        .expect("unshare runs");
    let r = ran(o);
    if r.err.contains("mount: ") || r.err.contains("unshare: ") {
        println!("skipped: in a namespace of its own: {}", r.err);
        return None;
    }
    Some(r)
}

/// If the settings cannot be recorded, nothing is changed.
#[test]
fn without_space_for_a_record_nothing_is_switched() {
    let Some(rig) = Rig::new("a full disk for records") else {
        return;
    };
    let (seekwell, name, dir) = (env!("CARGO_BIN_EXE_seekwell"), &rig.name, rig.records());
    fs::create_dir(&dir).expect("made");
    let at = dir.display();
    // First there is no space for a file name. Then there is space for a name, but not for data.
    for options in ["size=4k,nr_inodes=1", "size=4k,nr_inodes=9"] {
        let script = format!(
            "mount -t tmpfs -o mode=700,{options} none {at}\n\
             head -c 4096 /dev/zero >{at}/../fill; cp {at}/../fill {at}/fill 2>/dev/null\n\
             {seekwell} switch {name} bfq; echo code $?\n\
             cat /sys/block/{name}/queue/scheduler\n"
        );
        let Some(r) = run_in_mount_namespace(&rig, &script) else {
            return;
        };
        assert!(
            r.err.contains("cannot be recorded there: No space left"),
            "{options}: {}",
            r.err
        );
        assert!(
            r.out.contains("code 2") && r.out.contains("[none]"),
            "{options}: {}",
            r.out
        );
    }
    fs::remove_dir(&dir).expect("empty");
    rig.is_as_before();
}

#[test]
fn read_only_sys_is_reported() {
    let Some(m) = Mount::new("a read-only /sys") else {
        return;
    };
    let (seekwell, name, at) = (env!("CARGO_BIN_EXE_seekwell"), &m.rig.name, m.at());
    let script = format!(
        "cd {}\n\
         mount --bind /sys /sys && mount -o remount,ro,bind /sys || exit 9\n\
         {seekwell} switch {name} bfq; echo code $?\n\
         {seekwell} compare --host {} --workload cmd:true --seeds 1 --confirm {name} --results r; \
         echo code $?\n",
        m.rig.dir.display(),
        at.display()
    );
    let Some(r) = run_in_mount_namespace(&m.rig, &script) else {
        return;
    };
    assert!(
        r.err.contains("/sys is mounted read-only here"),
        "{}",
        r.err
    );
    assert!(r.err.contains("/sys cannot be written here"), "{}", r.err);
    assert!(
        r.out.starts_with("code 2") && r.out.ends_with("code 0\n"),
        "{}{}",
        r.out,
        r.err
    );
    m.is_as_before();
}

/// An experiment locks its device. No other command can switch the device, and no second experiment
/// can start. If the note cannot be written, the experiment runs nevertheless.
#[test]
fn experiment_and_other_commands_on_one_device_exclude_each_other() {
    // The commands would also report leftovers of another test's killed run.
    let _turn = serialize_tests();
    let Some(m) = Mount::new("two at once") else {
        return;
    };
    let file = m.file(
        1000,
        "mq-deadline,bfq",
        "[[workload]]\nname = \"w\"\ncommand = 'sleep 0.05'\n",
    );
    let results = m.results().display().to_string();
    let mut c = m.rig.command(&["compare", &file, "--results", &results]);
    let child = c
        .env("SEEKWELL_STATE_DIR", "/proc/nowhere")
        .spawn()
        .expect("the binary runs");
    let record = m.rig.records().join(format!("{}.json", m.rig.name));
    until("it holds the device", || record.exists());
    let name = &*m.rig.name;
    let other = m.rig.dir.join("other").display().to_string();
    for args in [
        vec!["switch", name, "kyber"],
        vec!["apply", "kyber", "--device", name],
        vec!["compare", &file, "--results", &other],
    ] {
        let r = m.rig.run(&args);
        assert_eq!(r.code, Some(2), "{args:?}: {}", r.err);
        let held = format!("{name} is being switched by process {} (live)", child.id());
        assert!(r.err.contains(&held), "{args:?}: {}", r.err);
    }
    let r = m.rig.run(&["host", "restore"]);
    assert_eq!(
        r.out, "There is nothing to restore: no killed run left settings, files or programs.\n",
        "one that lives is left alone"
    );
    until("a run was made", || m.results().join("journal").exists());
    let _ = kill_process(pid(&child), Signal::TERM);
    let r = wait_for_end(child);
    assert_eq!(r.code, Some(143), "{}", r.err);
    assert!(r.err.contains("cannot write the record for"), "{}", r.err);
    m.is_as_before();
}
