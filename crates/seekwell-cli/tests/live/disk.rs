//! A served disk for tests, its programs, and its clean-up.

use seekwell_host::watch::LoopDevice;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Makes the tests run one at a time. On two cores, two served disks would delay each other.
pub fn serialize_tests() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the reason why the test cannot run here, or `None` if it can.
pub fn missing_requirement(programs: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root".to_owned());
    }
    for path in ["/dev/fuse", "/dev/loop-control"] {
        if !Path::new(path).exists() {
            return Some(format!("no {path}"));
        }
    }
    // Only check whether the program starts, because some programs have no --version.
    let missing = |p: &&&str| {
        let mut c = Command::new(p);
        c.arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        c.status().is_err()
    };
    programs.iter().find(missing).map(|p| format!("no {p}"))
}

/// Runs a program and returns its output. If the program fails, the test fails.
pub fn run(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).output().expect(program);
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{program}: {err}");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Checks rates only if the account shows that the machine was fast enough for them.
pub fn check_if_machine_had_time(account: &Value, check: impl Fn(f64)) {
    let mean = |what: &str| account[what]["mean_ns"].as_f64().unwrap_or_default();
    let error = mean("delivered") / mean("model") - 1.0;
    let late = account["late"]["p99_ns"].as_f64().unwrap_or_default() / 1e3;
    let verdict = account["verdict"].as_str().unwrap_or_default();
    println!(
        "verdict {verdict}: late p99 {late:.0} us, mean {:+.2} % off",
        error * 100.0
    );
    match verdict {
        "exact" | "good" | "usable" => check(error),
        _ => println!("skipped: rates: the machine was too busy to be on time"),
    }
}

/// Whether something is mounted at the path.
pub fn mounted(path: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    mounts.lines().any(|l| l.split(' ').nth(1) == path.to_str())
}

/// Returns whether a loop device is attached to a file below the path.
pub fn attached(path: &Path) -> bool {
    let text = run(
        "losetup",
        &["--list", "--noheadings", "--output", "BACK-FILE"],
    );
    text.lines()
        .any(|l| l.starts_with(&path.display().to_string()))
}

/// A running `seekwell serve`.
pub struct Served {
    child: Option<Child>,
    dir: PathBuf,
    mount: PathBuf,
}

impl Served {
    /// Starts a server in a new directory. If `options` contain `--log` or `--backing`, their files
    /// are in that directory.
    pub fn start(device: &str, size: &str, options: &[&str]) -> Self {
        Self::traced(device, size, options, None)
    }
    /// Starts a server under strace with this expression. The output of strace is in `strace.txt`.
    pub fn traced(device: &str, size: &str, options: &[&str], strace: Option<&str>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("seekwell-live-{}-{n}", std::process::id()));
        let mount = dir.join("fuse");
        std::fs::create_dir_all(&mount).expect("a directory");
        Self::spawn(dir, mount, device, size, options, strace)
    }
    /// Starts a server at the mount point of a server that has ended.
    pub fn start_at(mount: &Path, device: &str, size: &str) -> Self {
        let dir = mount.parent().expect("a parent").to_owned();
        Self::spawn(dir, mount.to_owned(), device, size, &[], None)
    }
    fn spawn(
        dir: PathBuf,
        mount: PathBuf,
        device: &str,
        size: &str,
        options: &[&str],
        strace: Option<&str>,
    ) -> Self {
        let binary = env!("CARGO_BIN_EXE_seekwell");
        let mut command = Command::new(if strace.is_some() { "strace" } else { binary });
        if let Some(what) = strace {
            command.args(["-f", "-qq", "-e", what, "-o"]);
            command.arg(dir.join("strace.txt")).arg(binary);
        }
        command
            .args([
                "serve",
                "--until-eof",
                "--json",
                "--device",
                device,
                "--size",
                size,
            ])
            .arg("--fuse")
            .arg(&mount)
            .arg("--output")
            .arg(dir.join("account.json"));
        if options.contains(&"--log") {
            command.arg("--log").arg(dir.join("log.csv"));
        }
        if let Some(i) = options.iter().position(|o| *o == "--scheduler") {
            command.args(&options[i..i + 2]);
        }
        if options.contains(&"--backing") {
            command.arg("--backing").arg(dir.join("backing.img"));
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        ready(&mut child);
        Served {
            child: Some(child),
            dir,
            mount,
        }
    }
    /// Returns the directory that contains all files of this disk.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    /// Returns the mount point.
    pub fn mount(&self) -> PathBuf {
        self.mount.clone()
    }
    /// Returns the path of the served file.
    pub fn file(&self) -> PathBuf {
        self.mount.join("disk")
    }
    /// Attaches a loop device to the served file.
    pub fn attach(&self) -> LoopDevice {
        LoopDevice::attach(&self.file()).expect("a loop device")
    }
    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            let status = child.wait().expect("it ends");
            assert!(status.success(), "{status}");
        }
    }
    fn account(&self) -> Value {
        let text = std::fs::read_to_string(self.dir.join("account.json")).expect("an account");
        serde_json::from_str(&text).expect("JSON")
    }
    /// Ends the server by closing its input.
    pub fn stop(mut self) -> Value {
        self.end();
        self.account()
    }
    /// Does the same as `stop`. Also returns the path of the log, which exists until the process of
    /// the test ends.
    pub fn stop_with_log(mut self) -> (PathBuf, Value) {
        self.end();
        let kept = std::env::temp_dir().join(format!("seekwell-live-{}.csv", std::process::id()));
        std::fs::copy(self.dir.join("log.csv"), &kept).expect("a log");
        (kept, self.account())
    }
    /// Does the same as `stop`. Also returns the directory, which is removed when the value is
    /// dropped.
    pub fn stop_with_dir(mut self) -> (Left, Value) {
        self.end();
        let account = self.account();
        let left = Left(self.dir.clone());
        std::mem::forget(self);
        (left, account)
    }
    /// Ends the server by a signal. The directory is removed when the last returned value is
    /// dropped.
    pub fn signal_and_keep(mut self, name: &str) -> (PathBuf, ExitStatus, Left) {
        let mut child = self.child.take().expect("running");
        run("kill", &["-s", name, &child.id().to_string()]);
        let status = child.wait().expect("it ends");
        let (mount, left) = (self.mount.clone(), Left(self.dir.clone()));
        std::mem::forget(self);
        (mount, status, left)
    }
    /// Ends the server by a signal, and keeps its directory.
    pub fn signal(mut self, name: &str) -> (PathBuf, ExitStatus) {
        let mut child = self.child.take().expect("running");
        run("kill", &["-s", name, &child.id().to_string()]);
        let status = child.wait().expect("it ends");
        let mount = self.mount.clone();
        if name == "KILL" {
            std::mem::forget(self);
        }
        (mount, status)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
        drop(Left(self.dir.clone()));
    }
}

/// The directory of a server that has ended.
pub struct Left(pub PathBuf);

impl Drop for Left {
    fn drop(&mut self) {
        // Removes partial files of a killed server too. Changes nothing below a mount.
        for e in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            if e.file_type().is_ok_and(|t| t.is_file()) {
                let _ = std::fs::remove_file(e.path());
            }
        }
        for dir in ["results", "state", "records"] {
            let _ = std::fs::remove_dir_all(self.0.join(dir));
        }
        for dir in ["mnt", "fuse", ""] {
            let _ = std::fs::remove_dir(self.0.join(dir));
        }
    }
}

/// Waits for the line that announces that the disk is served. Returns the rest of the output.
pub fn ready(child: &mut Child) -> BufReader<ChildStdout> {
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut line).expect("a line");
    assert!(line.starts_with("serving"), "{line}");
    out
}

/// Waits until a condition is true. The time limit only prevents that the test waits forever.
pub fn until(what: &str, mut true_now: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(600);
    while !true_now() {
        assert!(Instant::now() < end, "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the number of bytes in the files below a directory, which shows the progress of a
/// workload.
pub fn written(dir: &Path) -> u64 {
    let (mut dirs, mut bytes) = (vec![dir.to_owned()], 0);
    while let Some(d) = dirs.pop() {
        // Files that disappear meanwhile do not count.
        for e in std::fs::read_dir(d).into_iter().flatten().flatten() {
            match e.metadata() {
                Ok(m) if m.is_dir() => dirs.push(e.path()),
                Ok(m) => bytes += m.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}
