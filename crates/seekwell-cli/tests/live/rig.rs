//! A loop device of the test for switching, and the program on it.

use rustix::process::Pid;
use seekwell_host::watch::LoopDevice;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A loop device over a sparse file, and a directory for records. Dropping the value removes both.
pub struct Rig {
    pub device: Option<LoopDevice>,
    pub name: String,
    pub dir: PathBuf,
    pub before: BTreeMap<String, String>,
}

/// Maximum time of a step on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

impl Rig {
    /// Returns `None` if the machine lacks something, and prints the reason.
    pub fn new(what: &str) -> Option<Rig> {
        Rig::with(what, 64)
    }
    /// Like `new`, with a sparse file of this size.
    pub fn with(what: &str, mib: u64) -> Option<Rig> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if let Some(why) = crate::disk::missing_requirement(&["losetup"]) {
            println!("skipped: {what}: {why}");
            return None;
        }
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("seekwell-switch-{}-{n}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let image = dir.join("image");
        let file = fs::File::create(&image).expect("a file");
        file.set_len(mib << 20).expect("sparse");
        let device = LoopDevice::attach(&image).expect("a loop device");
        let name = device
            .path()
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let mut rig = Rig {
            device: Some(device),
            name,
            dir,
            before: BTreeMap::new(),
        };
        rig.before = rig.settings();
        let offered = &rig.before["scheduler"];
        if !["[none]", "mq-deadline", "bfq"]
            .iter()
            .all(|s| offered.contains(s))
        {
            println!("skipped: {what}: {} has {offered}", rig.name);
            return None;
        }
        Some(rig)
    }
    pub fn queue(&self) -> PathBuf {
        Path::new("/sys/block").join(&self.name).join("queue")
    }
    /// Returns every readable file of the queue, with its text.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for dir in ["", "iosched/"] {
            for e in fs::read_dir(self.queue().join(dir))
                .into_iter()
                .flatten()
                .flatten()
            {
                if let Ok(text) = fs::read_to_string(e.path()) {
                    all.insert(
                        format!("{dir}{}", e.file_name().to_string_lossy()),
                        text.trim().to_owned(),
                    );
                }
            }
        }
        all
    }
    pub fn active(&self) -> String {
        self.device
            .as_ref()
            .expect("attached")
            .scheduler()
            .expect("read")
    }
    /// Checks that settings and records are as they were at the start.
    pub fn is_as_before(&self) {
        assert_eq!(self.settings(), self.before);
        assert!(!self.records().exists(), "no record is left");
    }
    pub fn records(&self) -> PathBuf {
        self.dir.join("records")
    }
    pub fn command(&self, args: &[&str]) -> Command {
        // A background job ignores SIGINT, and so do its child processes. The command resets this.
        let mut c = Command::new("env");
        c.args([
            "--default-signal=INT,TERM,HUP",
            env!("CARGO_BIN_EXE_seekwell"),
        ])
        .args(args)
        .env("SEEKWELL_RUN_DIR", self.records())
        .env("SEEKWELL_STATE_DIR", self.dir.join("state"))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
        c
    }
    pub fn run(&self, args: &[&str]) -> Ran {
        ran(self.command(args).output().expect("the binary runs"))
    }
    /// Runs `switch DEVICE bfq --for ...`, and waits until bfq is active.
    pub fn start(&self, script: &str) -> Child {
        let args = [
            "switch", &self.name, "bfq", "--for", "--", "sh", "-c", script,
        ];
        let mut child = self.command(&args).spawn().expect("the binary runs");
        let end = Instant::now() + PATIENCE;
        while !self.dir.join("started").exists() {
            if let Ok(Some(status)) = child.try_wait() {
                panic!("ended before its command: {status}");
            }
            assert!(Instant::now() < end, "the command never began");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(self.active(), "bfq");
        child
    }
    /// Returns a script that announces its start with its process ID, and then runs `rest`.
    pub fn script(&self, rest: &str) -> String {
        self.script_after("", rest)
    }
    /// Returns the same script with the command `first` before the announcement.
    pub fn script_after(&self, first: &str, rest: &str) -> String {
        let started = self.dir.join("started").display().to_string();
        format!("{first}echo $$ > {started}.new; mv {started}.new {started}; {rest}")
    }
    pub fn script_pid(&self) -> Pid {
        let text = fs::read_to_string(self.dir.join("started")).expect("written");
        Pid::from_raw(text.trim().parse().expect("a number")).expect("a process")
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(device) = self.device.take() {
            // If the test failed, the scheduler must be reset here.
            let _ = fs::write(self.queue().join("scheduler"), "none");
            drop(device);
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

pub fn ran(o: Output) -> Ran {
    Ran {
        code: o.status.code(),
        out: String::from_utf8_lossy(&o.stdout).into_owned(),
        err: String::from_utf8_lossy(&o.stderr).into_owned(),
    }
}

/// Waits for the end of a process that was told to end. After the time limit, kills the process and
/// fails the test.
pub fn wait_for_end(mut child: Child) -> Ran {
    let end = Instant::now() + PATIENCE;
    while child.try_wait().expect("ours").is_none() {
        if Instant::now() > end {
            let _ = child.kill();
            panic!("a signal did not end it");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // If the command is still alive by mistake, it holds the pipes open.
    ran(child.wait_after_kill())
}

pub fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).expect("a process")
}

/// Returns the guard process of a run. It is the child process that is not the command.
pub fn guard_process(child: &Child) -> Option<Pid> {
    let file = format!("/proc/{0}/task/{0}/children", child.id());
    let text = fs::read_to_string(file).ok()?;
    let mut all = text
        .split_whitespace()
        .filter_map(|p| p.parse::<i32>().ok());
    let is = |p: &i32| {
        let words = fs::read(format!("/proc/{p}/cmdline")).unwrap_or_default();
        words.split(|b| *b == 0).any(|w| w == b"--guard")
    };
    all.find(is).and_then(Pid::from_raw)
}

/// Returns the output of a killed process whose command is still alive and holds the pipes open.
pub trait Killed {
    fn wait_after_kill(self) -> Output;
}

impl Killed for Child {
    fn wait_after_kill(mut self) -> Output {
        use std::io::Read;
        let status = self.wait().expect("it ends");
        let mut stderr = Vec::new();
        if let Some(mut pipe) = self.stderr.take() {
            rustix::io::ioctl_fionbio(&pipe, true).expect("set");
            // Reads until no more data are available. The pipe is still open, so the read ends with
            // an error.
            let _ = pipe.read_to_end(&mut stderr);
        }
        Output {
            status,
            stdout: Vec::new(),
            stderr,
        }
    }
}
