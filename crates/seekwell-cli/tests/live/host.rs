//! Runs `seekwell compare --host` on ext4 on the test's loop device. Schedulers are set and read
//! back, programs are measured, and results are stored. In all cases everything is restored.

use crate::rig::{PATIENCE, Ran, Rig, guard_process, pid, ran, wait_for_end};
use rustix::process::{Signal, kill_process};
use seekwell_host::watch::{Ext4, Mounted};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// A rig with a file system on its device.
pub struct Mount {
    mounted: Option<Mounted>,
    fs: Ext4,
    pub rig: Rig,
}

impl Mount {
    /// Returns `None` if the machine lacks something, and prints the reason.
    pub fn new(what: &str) -> Option<Mount> {
        Mount::with(what, 64)
    }
    /// Like `new`, on a device of this size.
    pub fn with(what: &str, mib: u64) -> Option<Mount> {
        if let Some(why) = crate::disk::missing_requirement(&["mkfs.ext4", "debugfs"]) {
            println!("skipped: {what}: {why}");
            return None;
        }
        let rig = Rig::with(what, mib)?;
        let at = rig.dir.join("mnt");
        fs::create_dir(&at).expect("made");
        let device = rig.device.as_ref().expect("attached");
        let fs = Ext4::make(device.path()).expect("mkfs");
        let mounted = fs.mount(&at).expect("mounted");
        // Use a subdirectory, because the file system's own entries would look like leftovers.
        fs::create_dir(at.join("work")).expect("made");
        Some(Mount {
            mounted: Some(mounted),
            fs,
            rig,
        })
    }
    pub fn at(&self) -> PathBuf {
        self.rig.dir.join("mnt/work")
    }
    pub fn results(&self) -> PathBuf {
        self.rig.dir.join("results")
    }
    /// Writes an experiment file with these workloads and minimal settings.
    pub fn file(&self, repeats: u32, schedulers: &str, workloads: &str) -> String {
        let path = self.rig.dir.join("e.toml");
        let text = format!(
            "[experiment]\nname = \"live\"\nrepeats = {repeats}\n\n[host]\npath = \"{}\"\n\
             device = \"{}\"\nsettle = \"0ms\"\n\n{workloads}\n",
            self.at().display(),
            self.rig.name
        );
        let list = schedulers
            .split(',')
            .map(|s| format!("[[scheduler]]\nuse = \"{s}\"\n"));
        fs::write(&path, text + &list.collect::<String>()).expect("written");
        path.display().to_string()
    }
    pub fn args(&self, file: &str) -> Vec<String> {
        let results = self.results().display().to_string();
        let all = ["compare", file, "--json", "--results", &results];
        all.map(str::to_owned).to_vec()
    }
    pub fn run(&self, file: &str) -> Ran {
        let args = self.args(file);
        self.rig
            .run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }
    pub fn start(&self, file: &str) -> Child {
        let args = self.args(file);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        self.rig.command(&args).spawn().expect("the binary runs")
    }
    /// Unmounts the file system.
    pub fn unmount(&mut self) {
        drop(self.mounted.take());
    }
    /// Mounts the file system again, as a boot would.
    pub fn mount(&mut self) {
        self.mounted = Some(self.fs.mount(&self.rig.dir.join("mnt")).expect("mounted"));
    }
    /// Checks that the settings, the records and the directory are as they were at the start.
    pub fn is_as_before(&self) {
        self.rig.is_as_before();
        let left: Vec<_> = fs::read_dir(self.at()).expect("there").flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(self.mounted.take());
    }
}

pub fn document(r: &Ran) -> Value {
    serde_json::from_str(&r.out).unwrap_or_else(|e| panic!("{e}: {}{}", r.out, r.err))
}

/// Waits until no process of an experiment works below a directory.
pub fn wait_until_directory_unused(dir: &Path) {
    until("its programs are gone", || {
        let all = fs::read_dir("/proc").expect("there").flatten();
        let mut at = all.map(|e| fs::read_link(e.path().join("cwd")).unwrap_or_default());
        !at.any(|cwd| cwd.starts_with(dir))
    });
}

/// Waits until a condition is true.
pub fn until(what: &str, so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The measured command itself reads the active scheduler. This must be the scheduler to which its
/// run is assigned.
#[test]
fn every_run_executes_under_its_recorded_scheduler() {
    let Some(m) = Mount::new("an experiment on a host") else {
        return;
    };
    let seen = m.rig.dir.join("seen");
    let queue = m.rig.queue();
    let command = format!(
        "[[workload]]\nname = \"look\"\ncommand = 'cat {0}/scheduler {0}/wbt_lat_usec >> {1}; dd \
         if=/dev/zero of=x bs=64k count=4 oflag=direct'\n\n[[workload]]\nuse = \
         \"fs-mark:files=5,workers=1\"\nbeside = [\"loop:streams:kind=write,size=1m,seconds=1s,ionice=idle\"]\n",
        queue.display(),
        seen.display()
    );
    let file = m.file(2, "none,mq-deadline,bfq:low_latency=0", &command);
    let r = m.run(&file);
    assert_eq!(r.code, Some(0), "{}", r.err);
    m.is_as_before();
    let text = fs::read_to_string(&seen).expect("seen");
    let of = |name: &str| text.matches(&format!("[{name}]")).count();
    // Each scheduler has two runs. The reference, which was active before, has a third run: the
    // trial.
    assert_eq!(
        (of("none"), of("mq-deadline"), of("bfq")),
        (3, 2, 2),
        "{text}"
    );
    let doc = document(&r);
    assert_eq!(
        (&doc["finished"], &doc["failed"]),
        (&Value::Bool(true), &0.into()),
        "{}",
        r.err
    );
    assert!(
        doc["notes"]
            .to_string()
            .contains("set for all runs: iostats 1")
    );
    let names = doc["analysis"]["treatments"].to_string();
    assert!(names.contains("bfq:low_latency=0"), "{names}");
    // Other commands can read the stored results.
    let results = m.results().display().to_string();
    let r = m.rig.run(&["export", &results, "-f", "csv"]);
    assert_eq!(r.code, Some(0), "{}", r.err);
    assert_eq!(
        r.out.lines().filter(|l| l.contains("mq-deadline")).count() % 2,
        0
    );
    assert!(r.out.contains("files/s"), "{}", r.out);
}

#[test]
fn host_experiment_requires_confirmation_and_reports_missing_requirements() {
    let Some(m) = Mount::new("confirmations") else {
        return;
    };
    let dir = m.at().display().to_string();
    for (args, says) in [
        (vec!["--workload", "cmd:true"], "Add --confirm"),
        (
            vec!["--workload", "cmd:true", "--confirm", "sdz"],
            "\"sdz\" does not match",
        ),
        (
            vec!["--workload", "sqlite", "--schedulers", "cfq"],
            "nearest here is `bfq`",
        ),
        (vec!["--workload", "script:hdparm"], "raw device"),
        (
            vec!["--workload", "cmd:exit 3", "--confirm", &m.rig.name],
            "exit status: 3",
        ),
    ] {
        let r = m
            .rig
            .run(&[&["compare", "--host", &dir], &args[..]].concat());
        assert_eq!(r.code, Some(2), "{args:?}: {}", r.err);
        assert!(r.err.contains(says), "{args:?}: {}", r.err);
        m.is_as_before();
    }
    // Before root runs commands, they are shown to the user.
    let recipe = m.rig.dir.join("shown.toml");
    let text =
        "name = \"shown\"\nprepare = \"echo a\\necho b\"\nrun = \"./x $n\"\n[params]\nn = 3\n";
    fs::write(&recipe, text).expect("written");
    let recipe = recipe.display().to_string();
    let r = m.rig.run(&[
        "compare",
        "--host",
        &dir,
        "--dry-run",
        "--workload",
        "cmd:make -j4",
        "--workload",
        &recipe,
        "--beside",
        "cmd:dd if=/dev/zero of=x",
    ]);
    assert_eq!(r.code, Some(0), "{}", r.err);
    let shown = "cmd would run as root:\n  run       make -j4\n\
                 cmd would run as root:\n  run       dd if=/dev/zero of=x\n\
                 shown would run as root, with n=3:\n  prepare   echo a\n            echo b\n\
                 \x20 run       ./x $n\n";
    assert!(r.out.ends_with(shown), "{}", r.out);
    m.is_as_before();
    // They are also shown in the question on a terminal.
    if let Some(why) = crate::disk::missing_requirement(&["script"]) {
        println!("skipped: the question on a terminal: {why}");
    } else {
        let exe = env!("CARGO_BIN_EXE_seekwell");
        let line = format!("{exe} compare --host {dir} --workload 'cmd:make -j4' </dev/tty");
        let mut c = std::process::Command::new("script");
        c.args(["-qec", &line, "/dev/null"])
            .env("SEEKWELL_RUN_DIR", m.rig.records())
            .env("SEEKWELL_STATE_DIR", m.rig.dir.join("state"));
        let mut child = c
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("script runs");
        let mut to = child.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut to, b"no\n").expect("typed");
        let o = child.wait_with_output().expect("it ends");
        drop(to);
        let said = String::from_utf8_lossy(&o.stdout).replace('\r', "");
        let asked = said.find(&format!("Type {}", m.rig.name)).expect(&said);
        let shown = said
            .find("cmd would run as root:\n  run       make -j4\n")
            .expect(&said);
        assert!(
            shown < asked && said.contains("nothing was changed"),
            "{said}"
        );
        m.is_as_before();
    }
    // If a program of a user's recipe is missing, the message names the package.
    let recipe = m.rig.dir.join("mine.toml");
    let text = "name = \"mine\"\nrun = \"true\"\n[needs]\nno-such-program = \"some-package\"\n";
    fs::write(&recipe, text).expect("written");
    let recipe = recipe.display().to_string();
    let r = m
        .rig
        .run(&["compare", "--host", &dir, "--workload", &recipe]);
    assert!(
        r.err
            .contains("no program no-such-program here: install the package some-package"),
        "{}",
        r.err
    );
}

/// Three things can spoil a run: a daemon that sets another scheduler, a full file system, and a
/// limit. Such a run is marked with the reason, and the other runs are kept.
#[test]
fn invalid_runs_are_marked_with_the_reason() {
    let Some(m) = Mount::new("runs that do not count") else {
        return;
    };
    let once = m.rig.dir.join("once");
    // The limit is generous, except for the run that must reach it.
    for (n, (limit, command, says)) in [
        (
            "120s",
            format!("echo kyber > {}/scheduler", m.rig.queue().display()),
            "another program set kyber",
        ),
        ("120s", "dd if=/dev/zero of=big bs=1M".to_owned(), "is full"),
        ("2s", "exec sleep 600".to_owned(), "stopped at the limit of"),
    ]
    .iter()
    .enumerate()
    {
        let _ = fs::remove_file(&once);
        // The trial run must succeed, so the command does nothing the first time.
        let line = format!(
            "test -e {0} || {{ touch {0}; exit 0; }}; {command}",
            once.display()
        );
        let file = m.file(
            1,
            "mq-deadline",
            &format!("[[workload]]\nname = \"w\"\nlimit = \"{limit}\"\ncommand = '{line}'\n"),
        );
        let r = m.run(&file);
        assert_eq!(r.code, Some(4), "{command}: {}", r.err);
        assert!(r.err.contains(says), "{command}: {}", r.err);
        assert_eq!(document(&r)["failed"], 1, "{n}");
        m.is_as_before();
        fs::remove_dir_all(m.results()).expect("made");
    }
}

#[test]
fn vanished_directory_or_device_ends_the_experiment_with_a_clear_message() {
    let Some(mut m) = Mount::new("what goes away") else {
        return;
    };
    let once = m.rig.dir.join("once");
    let line = |command: &str| {
        let _ = fs::remove_file(&once);
        format!(
            "[[workload]]\nname = \"w\"\ncommand = 'test -e {0} || {{ touch {0}; exit 0; }}; {command}'\n",
            once.display()
        )
    };
    let file = m.file(
        3,
        "mq-deadline,bfq",
        &line(&format!("rm -rf {}", m.at().display())),
    );
    let r = m.run(&file);
    assert_eq!(r.code, Some(4), "{}", r.err);
    assert!(r.err.contains("the directory is gone"), "{}", r.err);
    m.rig.is_as_before();
    fs::remove_dir_all(m.results()).expect("made");

    fs::create_dir(m.at()).expect("made");
    let node = format!("/dev/{}", m.rig.name);
    let away = format!(
        "umount --lazy {}; losetup --detach {node}",
        m.rig.dir.join("mnt").display()
    );
    let file = m.file(3, "mq-deadline,bfq", &line(&away));
    let r = m.run(&file);
    std::mem::forget(m.mounted.take());
    // The number of the device may be reused from here on.
    std::mem::forget(m.rig.device.take());
    assert_eq!(r.code, Some(4), "{}", r.err);
    assert!(
        ["gone", "lost its medium", "another device"]
            .iter()
            .any(|w| r.err.contains(w)),
        "{}",
        r.err
    );
    assert!(!m.rig.records().exists(), "no record is left");
}

/// Number of runs in the journal.
fn runs_in_journal(m: &Mount) -> usize {
    let journal = fs::read_to_string(m.results().join("journal"));
    journal.map_or(0, |t| t.lines().count())
}

/// Kills the program, its guard process, or both, at random moments. Each time the settings are
/// restored, no process remains, and the measurements are kept.
#[test]
fn fifty_sigkills_leave_no_scheduler_switched() {
    let Some(m) = Mount::new("kill -9 at fifty moments") else {
        return;
    };
    let file = m.file(
        1000,
        "mq-deadline,bfq",
        "[[workload]]\nname = \"w\"\ncommand = 'sleep 0.02'\n",
    );
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let (mut by_guardian, mut runs) = (0, 0);
    for i in 0..50 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let mut child = m.start(&file);
        // The moments range from before the first change to the middle of the experiment.
        std::thread::sleep(Duration::from_millis(random >> 56));
        if i == 40 {
            // Wait until a run is stored, even on a busy machine.
            until("a run is kept", || runs_in_journal(&m) > 0);
        }
        let both = i % 3 == 2;
        if i % 3 != 0
            && let Some(guardian) = guard_process(&child)
        {
            let _ = kill_process(guardian, Signal::KILL);
        }
        if i % 3 == 1 {
            // Here only the guard process is killed, so the program restores the settings at its
            // normal end.
            let _ = kill_process(pid(&child), Signal::TERM);
            wait_for_end(child);
        } else {
            let _ = kill_process(pid(&child), Signal::KILL);
            child.wait().expect("ours");
        }
        if both {
            // A guard process may have started after the search for it. It then holds the device
            // for a moment.
            until(&format!("{i}: it is put back"), || {
                let r = m.rig.run(&["switch", "--restore"]);
                assert_eq!(r.code, Some(0), "{i}: {}", r.err);
                m.rig.settings() == m.rig.before && !m.rig.records().exists()
            });
        } else {
            until(&format!("{i}: nothing is left"), || {
                !m.rig.records().exists()
            });
            by_guardian += 1;
        }
        assert_eq!(m.rig.settings(), m.rig.before, "{i}");
        let kept = runs_in_journal(&m);
        assert!(kept >= runs, "{i}: {kept} runs are kept of {runs}");
        runs = kept;
        // Otherwise the next command would report the directories of killed runs.
        let r = m
            .rig
            .run(&["run", "--clean-up", "--dir", m.at().to_str().expect("text")]);
        assert_eq!(r.code, Some(0), "{}", r.err);
    }
    assert!(
        by_guardian > 30 && runs > 0,
        "{by_guardian} times, {runs} runs"
    );
    m.is_as_before();
}

/// Without root, the command measures under the active scheduler, and says so.
#[test]
fn without_root_the_experiment_measures_under_the_active_scheduler() {
    let Some(m) = Mount::new("an experiment without root") else {
        return;
    };
    let at = m.at();
    std::os::unix::fs::chown(&at, Some(65534), Some(65534)).expect("ours");
    let home = m.rig.dir.join("home");
    fs::create_dir(&home).expect("made");
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).expect("ours");
    let mut c = std::process::Command::new("setpriv");
    c.args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(env!("CARGO_BIN_EXE_seekwell"))
        .args([
            "compare",
            "--workload",
            "cmd:true",
            "--seeds",
            "1",
            "--confirm",
            &m.rig.name,
            "--host",
        ])
        .arg(&at)
        .current_dir(&home);
    let r = match c.output() {
        Ok(o) if !String::from_utf8_lossy(&o.stderr).contains("setpriv:") => ran(o),
        other => {
            println!("skipped: without root: {other:?}");
            return;
        }
    };
    assert_eq!(r.code, Some(0), "{}", r.err);
    assert!(r.err.contains("not root: no scheduler is set"), "{}", r.err);
    assert!(Path::new(&home.join("results")).is_dir());
    m.rig.is_as_before();
}
