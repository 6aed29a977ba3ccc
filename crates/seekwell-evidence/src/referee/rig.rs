//! The device for the rounds: a loop device with queue depth 4 on a slow served disk.

use super::Options;
use seekwell_core::Errno;
use seekwell_host::place::Scratch;
use seekwell_host::watch::{BlockTrace, LoopDevice, Queue, WatchError};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use thiserror::Error;

/// Service time of a request in us. The batch must be submitted before the first request completes.
pub const SERVICE_US: u64 = 12_000;
/// Number of driver tags, that is, the queue depth.
pub const DEPTH: u32 = 4;

/// The reason why the comparison failed.
#[derive(Debug, Error)]
pub enum RefereeError {
    /// A requirement is missing; the text says what to do.
    #[error("{0}")]
    Input(String),
    /// A signal stopped the comparison.
    #[error("stopped by signal {0}; everything was cleaned up")]
    Interrupted(i32),
}

impl From<WatchError> for RefereeError {
    fn from(e: WatchError) -> Self {
        RefereeError::Input(e.to_string())
    }
}

impl From<Errno> for RefereeError {
    fn from(e: Errno) -> Self {
        let e = std::io::Error::from_raw_os_error(e.host());
        RefereeError::Input(format!("the device of the rounds: {e}"))
    }
}

/// The process that serves the disk. It ends when its standard input is closed.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The device and the trace of a comparison. The fields are dropped in declaration order.
pub struct Rig {
    pub trace: BlockTrace,
    pub device: LoopDevice,
    _server: Server,
    _dir: Scratch,
}

impl Rig {
    pub fn new(o: &Options) -> Result<Rig, RefereeError> {
        let bad = |what: String| RefereeError::Input(what);
        if !rustix::process::geteuid().is_root() {
            return Err(bad(
                "only root may make loop devices and read the kernel's tracepoints: run it with sudo"
                    .to_owned(),
            ));
        }
        let dir = Scratch::new(&std::env::temp_dir(), "referee").map_err(|e| bad(e.to_string()))?;
        let mount = dir.path().join("fuse");
        fs::create_dir(&mount).map_err(|e| bad(format!("{}: {e}", mount.display())))?;
        let device = format!("constant:service_us={SERVICE_US},depth=32");
        let mut child = Command::new(&o.program)
            .args(["--quiet", "serve", "--until-eof", "--fuse"])
            .arg(&mount)
            .args(["--device", &device, "--size", "2G", "--output"])
            .arg(dir.path().join("account.txt"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // The disk must be removed last, so Ctrl-C on the terminal must not stop its server.
            .process_group(0)
            .spawn()
            .map_err(|e| bad(format!("the served disk cannot be started: {e}")))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            // The server prints a line when the disk is ready. If the server ends, there is no
            // line.
            let _ = BufReader::new(out).read_line(&mut line);
        }
        if !line.starts_with("serving") {
            let words = child.wait_with_output().map(|o| o.stderr);
            let words = words.unwrap_or_default();
            return Err(bad(String::from_utf8_lossy(&words).trim().to_owned()));
        }
        let server = Server(child);
        let mut device = LoopDevice::attach(&mount.join(seekwell_server::FILE_NAME))?;
        let queue = Queue {
            depth: Some(DEPTH),
            rotational: false,
            ..Queue::default()
        };
        device.settle(&queue)?;
        let trace = BlockTrace::open(device.number())?;
        Ok(Rig {
            trace,
            device,
            _server: server,
            _dir: dir,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        let device = self.device.path().file_name().unwrap_or_default();
        Path::new("/sys/block")
            .join(device)
            .join("queue")
            .join(name)
    }
    fn put(&self, name: &str, value: &str) -> Result<(), RefereeError> {
        let path = self.file(name);
        fs::write(&path, value).map_err(|e| RefereeError::Input(format!("{}: {e}", path.display())))
    }
    /// Returns whether the kernel offers this scheduler for the device.
    pub fn offers(&self, scheduler: &str) -> Result<bool, RefereeError> {
        let text = self.device.queue("scheduler")?;
        Ok(text
            .replace(['[', ']'], "")
            .split(' ')
            .any(|s| s == scheduler))
    }

    /// Sets `none` and then the scheduler, so that the scheduler starts without state. Sets those
    /// `tunables` that the kernel has. Returns all tunables with their values, and the time at
    /// which the scheduler was set, in ns on the trace's clock.
    pub fn enter(
        &self,
        scheduler: &str,
        tunables: &[(&str, &str)],
    ) -> Result<(Vec<(String, String)>, u64), RefereeError> {
        self.put("scheduler", "none")?;
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let at_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        self.put("scheduler", scheduler)?;
        self.put("nomerges", "2")?;
        for (name, value) in tunables {
            let name = format!("iosched/{name}");
            if self.file(&name).exists() {
                self.put(&name, value)?;
            }
        }
        let mut all = Vec::new();
        for e in fs::read_dir(self.file("iosched"))
            .into_iter()
            .flatten()
            .flatten()
        {
            if let Ok(text) = fs::read_to_string(e.path()) {
                let name = e.file_name().to_string_lossy().into_owned();
                all.push((name, text.trim().to_owned()));
            }
        }
        all.sort();
        Ok((all, at_ns))
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // The queue exists longer than its file, so the settings are reset for the next user.
        for (name, value) in [("scheduler", "none"), ("nomerges", "0")] {
            let _ = self.put(name, value);
        }
    }
}
