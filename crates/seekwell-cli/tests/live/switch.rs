//! Runs `seekwell switch` on the test's loop devices. The settings must become active. Everything
//! must be restored at the end, after a failed command, after signals, after a panic, and after
//! kill -9.

use crate::rig::{Killed, PATIENCE, Rig, guard_process, pid, ran, wait_for_end};
use rustix::process::{Signal, kill_process};
use seekwell_host::block::{Machine, Tree};
use seekwell_host::switch::journal::Records;
use seekwell_host::switch::{Switched, Wish};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn switch_takes_effect_and_the_printed_command_undoes_it() {
    let Some(rig) = Rig::new("a switch and back") else {
        return;
    };
    let r = rig.run(&[
        "switch",
        &rig.name,
        "mq-deadline",
        "-t",
        "fifo_batch=4",
        "-t",
        "read_expire=7",
    ]);
    assert_eq!(r.code, Some(0), "{}", r.err);
    assert_eq!(rig.active(), "mq-deadline");
    let now = rig.settings();
    assert_eq!(now["iosched/fifo_batch"], "4");
    assert!(
        r.out.contains("none -> mq-deadline, read back"),
        "{}",
        r.out
    );
    assert!(
        r.out.contains("set: fifo_batch 4, read_expire "),
        "{}",
        r.out
    );
    assert!(
        r.out.contains("also changed: nr_requests 128 -> 256"),
        "{}",
        r.out
    );
    // A switch to another scheduler reports which settings are lost. The printed command restores
    // them.
    let r = rig.run(&["switch", &rig.name, "bfq"]);
    assert_eq!(
        (r.code, rig.active().as_str()),
        (Some(0), "bfq"),
        "{}",
        r.err
    );
    assert!(
        r.out
            .contains("the kernel does not keep them: fifo_batch 4"),
        "{}",
        r.out
    );
    let back = r
        .out
        .lines()
        .find_map(|l| l.trim().strip_prefix("back: sudo "))
        .expect(&r.out);
    let args: Vec<&str> = back.split(' ').skip(1).collect();
    let r = rig.run(&args);
    assert_eq!(r.code, Some(0), "{back}: {}", r.err);
    assert_eq!(rig.settings(), now);
    let r = rig.run(&[
        "switch",
        rig.device
            .as_ref()
            .expect("one")
            .path()
            .to_str()
            .expect("text"),
        "none",
    ]);
    assert_eq!(r.code, Some(0), "{}", r.err);
    rig.is_as_before();
}

#[test]
fn invalid_switches_are_rejected_without_changes() {
    let Some(rig) = Rig::new("refusals") else {
        return;
    };
    let rows: &[(&[&str], &str)] = &[
        (&["cfq"], "nearest here is `bfq`"),
        (&["deadline"], "nearest here is `mq-deadline`"),
        (&["noop"], "nearest here is `none`"),
        (&["anticipatory"], "slice_idle"),
        (&["kiber"], "`kyber`"),
        (
            &["bfq", "-t", "low_latancy=0"],
            "did you mean `low_latency`?",
        ),
        (&["bfq", "-t", "fifo_batch=0"], "mq-deadline's"),
        (
            &["bfq", "-t", "slice_idle=banana"],
            "the kernel refuses \"banana\"",
        ),
        (
            &["mq-deadline", "-t", "nr_requests=100000"],
            "the kernel refuses \"100000\"",
        ),
        (&["none", "-t", "nr_requests=32"], "fewer tags"),
        (&["bfq", "-t", "low_latency"], "write NAME=VALUE"),
        (&["bfq", "--for"], "name the command"),
        (&["bfq", "--for", "/no/such/program"], "cannot be run"),
    ];
    for (args, says) in rows {
        let r = rig.run(&[&["switch", &rig.name], *args].concat());
        assert_eq!(r.code, Some(2), "{args:?}: {}{}", r.out, r.err);
        assert!(r.err.contains(says), "{args:?}: {}", r.err);
        rig.is_as_before();
    }
}

#[test]
fn command_runs_under_the_switched_scheduler_and_its_exit_code_is_returned() {
    let Some(rig) = Rig::new("a command under another scheduler") else {
        return;
    };
    let file = rig.queue().join("scheduler").display().to_string();
    let r = rig.run(&["switch", &rig.name, "bfq", "--for", "cat", &file]);
    assert_eq!(r.code, Some(0), "{}", r.err);
    assert!(
        r.out.contains("[bfq]"),
        "the command's output, and it alone: {}",
        r.out
    );
    assert_eq!(r.out.lines().count(), 1, "{}", r.out);
    rig.is_as_before();
    for (script, code) in [
        ("exit 7", 7),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
    ] {
        let r = rig.run(&[
            "-q",
            "switch",
            &rig.name,
            "bfq",
            "-t",
            "low_latency=0",
            "--for",
            "--",
            "sh",
            "-c",
            script,
        ]);
        assert_eq!((r.code, &*r.err), (Some(code), ""), "{script}");
        rig.is_as_before();
    }
    // Another process sets another scheduler meanwhile.
    let meddle = format!("echo kyber > {file}");
    let r = rig.run(&["switch", &rig.name, "bfq", "--for", "sh", "-c", &meddle]);
    assert!(r.err.contains("another program changed it"), "{}", r.err);
    assert_eq!(r.code, Some(0));
    rig.is_as_before();
}

#[test]
fn signals_reach_the_command_and_settings_are_restored() {
    let Some(rig) = Rig::new("signals") else {
        return;
    };
    let trap = "trap 'exit 33' INT TERM HUP; ";
    let waits = "while :; do sleep 0.05; done";
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        // One command is ended by the signal. The other command catches the signal and does some
        // work first.
        for (first, rest, code) in [
            ("", "exec sleep 600", 128 + signal.as_raw()),
            (trap, waits, 33),
        ] {
            let child = rig.start(&rig.script_after(first, rest));
            kill_process(pid(&child), signal).expect("it runs");
            let r = wait_for_end(child);
            assert_eq!(r.code, Some(code), "{signal:?} {rest}: {}", r.err);
            rig.is_as_before();
            fs::remove_file(rig.dir.join("started")).expect("there");
        }
    }
}

#[test]
fn guard_process_restores_settings_after_sigkill() {
    let Some(rig) = Rig::new("the guardian") else {
        return;
    };
    let child = rig.start(&rig.script("exec sleep 600"));
    // Signals that end programs do not end the guard process.
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        kill_process(guard_process(&child).expect("it has one"), signal).expect("it runs");
    }
    kill_process(pid(&child), Signal::KILL).expect("it runs");
    child.wait_after_kill();
    let end = Instant::now() + PATIENCE;
    while rig.records().exists() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    rig.is_as_before();
    kill_process(rig.script_pid(), Signal::KILL).expect("the command lives on");
}

#[test]
fn next_run_restores_settings_after_sigkill_of_program_and_guard() {
    let Some(rig) = Rig::new("kill -9") else {
        return;
    };
    for next in ["restore", "switch"] {
        let child = rig.start(&rig.script("exec sleep 600"));
        kill_process(guard_process(&child).expect("it has one"), Signal::KILL).expect("it runs");
        kill_process(pid(&child), Signal::KILL).expect("it runs");
        let r = ran(child.wait_after_kill());
        assert_eq!(r.code, None, "killed");
        assert!(
            r.err.contains("switch --restore"),
            "what to type was said: {}",
            r.err
        );
        // The command is still alive, and nothing has restored the settings.
        assert_eq!(rig.active(), "bfq");
        kill_process(rig.script_pid(), Signal::KILL).expect("it runs");
        let r = rig.run(&["host"]);
        assert!(
            r.err
                .contains(&format!("left changed settings on {}", rig.name)),
            "{}",
            r.err
        );
        match next {
            "restore" => {
                let r = rig.run(&["switch", "--restore"]);
                assert_eq!(r.code, Some(0), "{}", r.err);
                assert!(
                    r.out.contains("`none` and all settings are restored"),
                    "{}",
                    r.out
                );
            }
            _ => {
                // The next switch starts from the restored settings.
                let r = rig.run(&["switch", &rig.name, "kyber"]);
                assert_eq!(r.code, Some(0), "{}", r.err);
                assert!(
                    r.err.contains("`none` and all settings are restored"),
                    "{}",
                    r.err
                );
                assert!(r.out.contains("none -> kyber"), "{}", r.out);
                assert_eq!(rig.run(&["switch", &rig.name, "none"]).code, Some(0));
            }
        }
        rig.is_as_before();
        let r = rig.run(&["switch", "--restore"]);
        assert!(r.out.contains("No killed run"), "{}", r.out);
        fs::remove_file(rig.dir.join("started")).expect("there");
    }
}

#[test]
fn two_concurrent_switches_exclude_each_other() {
    let Some(rig) = Rig::new("two at once") else {
        return;
    };
    let child = rig.start(&rig.script("exec sleep 600"));
    let r = rig.run(&["switch", &rig.name, "kyber"]);
    assert_eq!(r.code, Some(2), "{}", r.err);
    assert!(r.err.contains("is being switched by process"), "{}", r.err);
    let r = rig.run(&["switch", "--restore"]);
    assert!(r.out.contains("No killed run"), "it lives: {}", r.out);
    assert_eq!(rig.active(), "bfq");
    kill_process(pid(&child), Signal::TERM).expect("it runs");
    wait_for_end(child);
    rig.is_as_before();
}

#[test]
fn settings_are_restored_after_a_panic() {
    let Some(rig) = Rig::new("a panic") else {
        return;
    };
    let tree = Tree::default();
    let m = Machine::read(&tree);
    let set = [
        ("low_latency".to_owned(), "0".to_owned()),
        ("read_ahead_kb".to_owned(), "64".to_owned()),
    ];
    let panicked = std::panic::catch_unwind(|| {
        let wish = Wish {
            device: m.device(&rig.name).expect("there"),
            scheduler: "bfq",
            tunables: &set,
        };
        let _switched = Switched::begin(&tree, &Records::at(rig.records()), &[wish], "a test");
        assert_eq!(rig.settings()["iosched/low_latency"], "0");
        assert_eq!(rig.settings()["read_ahead_kb"], "64");
        std::panic::panic_any(());
    });
    assert!(panicked.is_err_and(|e| e.is::<()>()));
    rig.is_as_before();
}

/// The command detaches its own device. This is reported and does no harm.
#[test]
fn vanished_device_is_reported_without_error() {
    let Some(mut rig) = Rig::new("a device that goes away") else {
        return;
    };
    let node = format!("/dev/{}", rig.name);
    let r = rig.run(&[
        "switch", &rig.name, "bfq", "--for", "losetup", "--detach", &node,
    ]);
    // The number of the device may be reused from here on.
    std::mem::forget(rig.device.take());
    assert_eq!(r.code, Some(0), "{}", r.err);
    assert!(
        r.err.contains("`none` and all settings are restored"),
        "its queue outlives the file: {}",
        r.err
    );
    assert!(!rig.records().exists());
}

#[test]
fn host_reports_the_scheduler_below_a_loop_device() {
    let Some(rig) = Rig::new("what schedules under a loop device") else {
        return;
    };
    let r = rig.run(&["host", &rig.name]);
    assert_eq!(r.code, Some(0), "{}", r.err);
    assert!(
        r.out
            .contains(&format!("A scheduler can act on {}", rig.name)),
        "{}",
        r.out
    );
    let r = rig.run(&["host", &rig.name, "--json"]);
    let doc: serde_json::Value = serde_json::from_str(&r.out).expect("JSON");
    assert_eq!(doc["under"]["deciding"][0], *rig.name);
    assert_eq!(doc["devices"][0]["kind"], "loop");
    rig.is_as_before();
}

/// Switching the device under / needs a confirmation. (A table of mounts declares the test's device
/// to be that device.)
#[test]
fn root_device_is_switched_only_after_confirmation() {
    let Some(rig) = Rig::new("the device under /") else {
        return;
    };
    if let Some(why) = crate::disk::missing_requirement(&["unshare"]) {
        println!("skipped: the device under /: {why}");
        return;
    }
    let numbers = fs::read_to_string(Path::new("/sys/block").join(&rig.name).join("dev"));
    let fake = rig.dir.join("mountinfo");
    let line = format!(
        "1 1 {} / / rw - ext4 /dev/{} rw\n",
        numbers.expect("read").trim(),
        rig.name
    );
    fs::write(&fake, line).expect("written");
    let run = |rest: &str| {
        let script = format!(
            "mount --bind {} /proc/$$/mountinfo && exec {} switch {} bfq {rest}",
            fake.display(),
            env!("CARGO_BIN_EXE_seekwell"),
            rig.name
        );
        let mut c = Command::new("unshare");
        c.args(["--mount", "--propagation", "private", "sh", "-c", &script])
            .env("SEEKWELL_RUN_DIR", rig.records())
            .stdin(Stdio::null());
        ran(c.output().expect("unshare runs"))
    };
    let r = run("");
    if r.err.contains("mount:") {
        println!("skipped: the device under /: {}", r.err);
        return;
    }
    assert_eq!(r.code, Some(2), "{}", r.err);
    assert!(
        r.err.contains("holds the root file system: add --yes"),
        "{}",
        r.err
    );
    rig.is_as_before();
    let r = run("--yes --for true");
    assert_eq!(r.code, Some(0), "{}", r.err);
    rig.is_as_before();
}

#[test]
fn without_root_the_required_command_is_printed() {
    let Some(rig) = Rig::new("without root") else {
        return;
    };
    let mut c = Command::new("setpriv");
    c.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    c.args([
        env!("CARGO_BIN_EXE_seekwell"),
        "switch",
        &rig.name,
        "bfq",
        "-t",
        "low_latency=0",
    ]);
    c.args(["--for", "sh", "-c", "sleep 1"]);
    let r = match c.env("SEEKWELL_RUN_DIR", rig.records()).output() {
        Ok(o) if !String::from_utf8_lossy(&o.stderr).contains("setpriv:") => ran(o),
        other => {
            println!("skipped: without root: {other:?}");
            return;
        }
    };
    assert_eq!(r.code, Some(2), "{}", r.err);
    let line = format!(
        "switch {} bfq -t low_latency=0 --for sh -c 'sleep 1'",
        rig.name
    );
    assert!(r.err.contains("only root may switch"), "{}", r.err);
    assert!(
        r.err.contains("sudo ") && r.err.contains(&line),
        "{}",
        r.err
    );
    rig.is_as_before();
}
