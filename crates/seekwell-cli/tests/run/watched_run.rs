//! A run that a test disturbs in the middle. The test follows its progress bar on a
//! pseudo-terminal, so nothing depends on the speed of the machine.

use crate::{Ran, command};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use std::fs::File;
use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// This limit only prevents that a test waits forever.
const PATIENCE: Duration = Duration::from_secs(600);
/// Interval between checks.
const LOOK: Duration = Duration::from_millis(5);
/// The text that clears the line of the bar.
pub const CLEAR: &str = "\r\u{1b}[2K";

/// Waits until a condition is true.
pub fn until(what: &str, mut true_now: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !true_now() {
        assert!(Instant::now() < end, "{what} never came");
        std::thread::sleep(LOOK);
    }
}

/// Returns the CPU time that a process has used, s.
fn used_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The fields are counted after the name, which may contain any characters. utime and stime are
    // the fields 14 and 15, in 1/100 s.
    let fields = stat.rsplit_once(')').map_or("", |s| s.1).split_whitespace();
    let ticks = fields
        .skip(11)
        .take(2)
        .filter_map(|t| t.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// A run in progress.
pub struct Watched {
    child: Option<Child>,
    drawn: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Watched {
    /// Starts a run.
    pub fn begin(args: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours).expect("a terminal");
        unlockpt(&ours).expect("a terminal");
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let theirs = ioctl_tiocgptpeer(&ours, flags).expect("its other end");
        let mut c = command(args);
        c.stdout(Stdio::piped()).stderr(theirs);
        c.env("TERM", "xterm").env("NO_COLOR", "1");
        let child = c.spawn().expect("the binary runs");
        // The command `c` holds the other end open. Until it is dropped, reading finds no end of
        // file.
        drop(c);
        let drawn = Arc::new(Mutex::new(String::new()));
        let (to, mut from) = (Arc::clone(&drawn), File::from(ours));
        let reader = std::thread::spawn(move || {
            let (mut bytes, mut some) = (Vec::new(), [0; 4096]);
            // When no other process has the terminal open, reading fails with EIO.
            while let Ok(n @ 1..) = from.read(&mut some) {
                bytes.extend_from_slice(&some[..n]);
                *to.lock().expect("nobody panicked") = String::from_utf8_lossy(&bytes).into_owned();
            }
        });
        Watched {
            child: Some(child),
            drawn,
            reader: Some(reader),
        }
    }
    fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }
    fn over(&mut self) -> bool {
        let child = self.child.as_mut().expect("it was begun");
        child.try_wait().expect("a child").is_some()
    }
    /// Waits until a frame of the progress bar matches. Returns false if the run ended before.
    pub fn shows(&mut self, what: &str, frame: impl Fn(&str) -> bool) -> bool {
        let mut over = false;
        until(what, || {
            over = self.over();
            let drawn = self.drawn.lock().expect("nobody panicked");
            over || drawn.split('\r').any(&frame)
        });
        !over
    }
    /// Waits until the run has used this many more seconds of CPU time.
    pub fn works(&mut self, more_s: f64) {
        let (pid, from) = (self.pid(), used_s(self.pid()));
        until("its work", || self.over() || used_s(pid) - from >= more_s);
    }
    /// Sends a signal to the run.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed()).expect("a process");
        kill_process(pid, signal).expect("it runs still");
    }
    /// Waits for the end of the run. Its stderr is the text after the last progress bar.
    pub fn end(mut self) -> Ran {
        let child = self.child.take().expect("it was begun");
        let o = child.wait_with_output().expect("it ends");
        if let Some(r) = self.reader.take() {
            r.join().expect("it only reads");
        }
        let drawn = self
            .drawn
            .lock()
            .expect("nobody panicked")
            .replace("\r\n", "\n");
        let err = drawn.rsplit_once(CLEAR).map_or(&*drawn, |e| e.1);
        Ran {
            code: o.status.code().expect("ended by itself"),
            out: String::from_utf8(o.stdout).expect("UTF-8"),
            err: err.to_owned(),
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
