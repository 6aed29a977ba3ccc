//! Ways to stop a run from outside: a signal, a time limit, a failed task.
//!
//! Nothing is torn down by force. A flag is raised; every call that waits or moves data checks it
//! and returns ECANCELED. Scripts then remove their files and return, and the run ends normally.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::ffi::c_int;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum time until a waiting task notices a stop.
pub const NOTICE: Duration = Duration::from_millis(20);

/// The flag and the reason.
#[derive(Debug)]
pub struct Stop {
    flag: AtomicBool,
    /// Whether to check [`signal`].
    signals: bool,
    deadline: Option<Instant>,
    /// Set by the caller of the run.
    outside: Option<Arc<AtomicBool>>,
    why: Mutex<Option<Why>>,
}

/// Reason for a run that reached its limit.
pub const AT_LIMIT: &str = "stopped at the time limit";

/// What stopped a run: in words, and the signal if it was one.
type Why = (String, Option<i32>);

impl Stop {
    /// Stops after `limit`, if there is one, and on a signal if `signals` are caught.
    pub fn new(limit: Option<Duration>, signals: bool) -> Self {
        Stop {
            flag: AtomicBool::new(false),
            signals,
            deadline: limit.and_then(|l| Instant::now().checked_add(l)),
            outside: None,
            why: Mutex::new(None),
        }
    }
    /// Also stops when `flag` is set.
    #[must_use]
    pub fn outside(mut self, flag: Option<Arc<AtomicBool>>) -> Self {
        self.outside = flag;
        self
    }
    /// Stops the run, unless it was stopped already.
    pub fn raise(&self, why: impl Into<String>) {
        self.raise_by(why.into(), None);
    }
    fn raise_by(&self, why: String, signal: Option<i32>) {
        self.slot().get_or_insert((why, signal));
        self.flag.store(true, Ordering::Release);
    }
    fn slot(&self) -> MutexGuard<'_, Option<Why>> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whether the run is stopped.
    pub fn is_raised(&self) -> bool {
        if self.flag.load(Ordering::Acquire) {
            return true;
        }
        if let Some(number) = signal().filter(|_| self.signals) {
            let name = match number {
                SIGINT => "SIGINT (interrupted)",
                SIGHUP => "SIGHUP (the terminal is gone)",
                _ => "SIGTERM (terminated)",
            };
            self.raise_by(format!("stopped by {name}"), Some(number));
            return true;
        }
        let set = |f: &Arc<AtomicBool>| f.load(Ordering::Acquire);
        if self.outside.as_ref().is_some_and(set) {
            self.raise("stopped by its caller");
            return true;
        }
        if self.deadline.is_some_and(|d| Instant::now() >= d) {
            self.raise(AT_LIMIT);
            return true;
        }
        false
    }
    /// The reason, if the run is stopped.
    pub fn why(&self) -> Option<String> {
        self.slot().as_ref().map(|w| w.0.clone())
    }
    /// The signal, if one stopped the run.
    pub fn signal(&self) -> Option<i32> {
        self.slot().as_ref().and_then(|w| w.1)
    }
}

/// The signals that stop a run.
pub const CAUGHT: [c_int; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Number of the last signal caught; 0 for none.
static SIGNAL: AtomicUsize = AtomicUsize::new(0);
/// Whether signals are not caught: then they have their default effect. The library's handlers stay
/// once set.
static UNCAUGHT: AtomicBool = AtomicBool::new(true);
/// Number of live [`Signals`], which may be nested: a command of several runs catches signals
/// around all of them.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Number of the last signal caught.
pub fn signal() -> Option<i32> {
    i32::try_from(SIGNAL.load(Ordering::SeqCst))
        .ok()
        .filter(|n| *n != 0)
}

/// While this lives, SIGINT, SIGTERM and SIGHUP stop the run instead of ending the program. When it
/// is dropped, they end the program again. Only one run at a time in a program.
///
/// A signal that was ignored at the start stays ignored: nohup(1) ignores SIGHUP, and a shell
/// ignores SIGINT for background jobs.
#[derive(Debug)]
pub struct Signals(());

impl Signals {
    /// Starts to catch them.
    pub fn catch() -> io::Result<Self> {
        static SET: Mutex<bool> = Mutex::new(false);
        let mut set = SET.lock().unwrap_or_else(PoisonError::into_inner);
        if LIVE.fetch_add(1, Ordering::SeqCst) == 0 {
            SIGNAL.store(0, Ordering::SeqCst);
        }
        if !*set {
            for number in caught() {
                flag::register_conditional_default(number, &UNCAUGHT)?;
                flag::register_usize(number, &SIGNAL, number as usize)?;
            }
            *set = true;
        }
        UNCAUGHT.store(false, Ordering::SeqCst);
        Ok(Signals(()))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        if LIVE.fetch_sub(1, Ordering::SeqCst) == 1 {
            UNCAUGHT.store(true, Ordering::SeqCst);
        }
    }
}

/// The signals of [`CAUGHT`] that were not ignored when this program started.
pub fn caught() -> impl Iterator<Item = c_int> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    CAUGHT
        .into_iter()
        .filter(move |n| ignored >> (n - 1) & 1 == 0)
}

/// The mask of ignored signals in the text of `/proc/PID/status`.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    line.and_then(|l| u64::from_str_radix(l.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_counts() {
        let s = Stop::new(None, false);
        assert!(!s.is_raised());
        s.raise("one");
        s.raise("two");
        assert!(s.is_raised());
        assert_eq!(s.why().as_deref(), Some("one"));
    }

    #[test]
    fn a_limit_and_a_signal_stop() {
        let s = Stop::new(Some(Duration::ZERO), false);
        assert!(s.is_raised());
        assert_eq!(s.why().as_deref(), Some("stopped at the time limit"));
        let deaf = Stop::new(None, false);
        let s = Stop::new(None, true);
        let caught = Signals::catch().expect("allowed");
        assert!(!s.is_raised());
        let me = rustix::process::getpid();
        let sent = rustix::process::kill_process(me, rustix::process::Signal::TERM);
        sent.expect("to ourselves");
        let end = Instant::now() + Duration::from_secs(600);
        while !s.is_raised() && Instant::now() < end {
            std::thread::yield_now();
        }
        drop(caught);
        assert_eq!(s.why().as_deref(), Some("stopped by SIGTERM (terminated)"));
        assert!(!deaf.is_raised());
        assert_eq!((s.signal(), deaf.signal()), (Some(SIGTERM), None));
    }

    #[test]
    fn what_was_ignored_is_found() {
        let status = "Name:\tx\nSigIgn:\t0000000000000003\nSigCgt:\t0000000000000000\n";
        assert_eq!(ignored(status), 3, "SIGHUP and SIGINT");
        assert_eq!(ignored(""), 0);
    }
}
