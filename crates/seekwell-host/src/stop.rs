//! Stops a run early, because of a signal, a time limit, or a failed task.
//!
//! Tasks are not ended by force. Stopping a run sets a flag. Every call that waits or moves data
//! checks the flag and returns ECANCELED. Then the scripts remove their files and return, and the
//! run ends normally.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::ffi::c_int;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum time until a waiting task notices that the run is stopped.
pub const NOTICE: Duration = Duration::from_millis(20);

/// The stop flag of a run, and the reason.
#[derive(Debug)]
pub struct Stop {
    flag: AtomicBool,
    /// Whether caught signals stop the run (see [`signal`]).
    signals: bool,
    deadline: Option<Instant>,
    /// A flag that the caller of the run can set.
    outside: Option<Arc<AtomicBool>>,
    why: Mutex<Option<Why>>,
}

/// Reason if a run has reached its time limit.
pub const AT_LIMIT: &str = "stopped at the time limit";

/// Reason why a run was stopped, and the signal if there was one.
type Why = (String, Option<i32>);

impl Stop {
    /// Returns a flag that is set after `limit`, if there is one. It is also set by a signal if
    /// `signals` is true.
    pub fn new(limit: Option<Duration>, signals: bool) -> Self {
        Stop {
            flag: AtomicBool::new(false),
            signals,
            deadline: limit.and_then(|l| Instant::now().checked_add(l)),
            outside: None,
            why: Mutex::new(None),
        }
    }
    /// Also stops the run when `flag` is set.
    #[must_use]
    pub fn outside(mut self, flag: Option<Arc<AtomicBool>>) -> Self {
        self.outside = flag;
        self
    }
    /// Stops the run, unless it is already stopped.
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
    /// Returns whether the run is stopped.
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
    /// Returns the reason if the run is stopped.
    pub fn why(&self) -> Option<String> {
        self.slot().as_ref().map(|w| w.0.clone())
    }
    /// Returns the signal if a signal stopped the run.
    pub fn signal(&self) -> Option<i32> {
        self.slot().as_ref().and_then(|w| w.1)
    }
}

/// Signals that stop a run.
pub const CAUGHT: [c_int; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Number of the last signal that was caught, or 0.
static SIGNAL: AtomicUsize = AtomicUsize::new(0);
/// Whether signals have their default effect instead of stopping the run. The signal handlers
/// cannot be removed once they are set.
static UNCAUGHT: AtomicBool = AtomicBool::new(true);
/// Number of [`Signals`] that exist. They may be nested: a command with several runs catches
/// signals during all of them.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of the last signal that was caught.
pub fn signal() -> Option<i32> {
    i32::try_from(SIGNAL.load(Ordering::SeqCst))
        .ok()
        .filter(|n| *n != 0)
}

/// While this value exists, SIGINT, SIGTERM and SIGHUP stop the run instead of ending the program.
/// After it is dropped, they end the program again. Only one run at a time is possible in a
/// program.
///
/// A signal that was ignored when the program started stays ignored. For example, nohup(1) ignores
/// SIGHUP, and a shell ignores SIGINT for background jobs.
#[derive(Debug)]
pub struct Signals(());

impl Signals {
    /// Starts to catch the signals.
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

/// Returns the signals of [`CAUGHT`] that were not ignored when this program started.
pub fn caught() -> impl Iterator<Item = c_int> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    CAUGHT
        .into_iter()
        .filter(move |n| ignored >> (n - 1) & 1 == 0)
}

/// Returns the mask of ignored signals from the text of `/proc/PID/status`.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    line.and_then(|l| u64::from_str_radix(l.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_stop_reason_is_kept() {
        let s = Stop::new(None, false);
        assert!(!s.is_raised());
        s.raise("one");
        s.raise("two");
        assert!(s.is_raised());
        assert_eq!(s.why().as_deref(), Some("one"));
    }

    #[test]
    fn time_limit_and_signal_stop_a_run() {
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
    fn ignored_signals_are_parsed_from_proc_status() {
        let status = "Name:\tx\nSigIgn:\t0000000000000003\nSigCgt:\t0000000000000000\n";
        assert_eq!(ignored(status), 3, "SIGHUP and SIGINT");
        assert_eq!(ignored(""), 0);
    }
}
