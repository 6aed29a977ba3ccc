//! How a run is stopped from outside: a signal, a time limit, a task that failed.
//!
//! Nothing is torn down by force. A flag is raised; every call that waits or moves data looks at
//! it and answers ECANCELED, scripts remove their files and return, and the run ends as runs end.

use libc::{SIGHUP, SIGINT, SIGTERM, c_int};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest a waiting task takes to notice.
pub const NOTICE: Duration = Duration::from_millis(20);

/// The flag and the reason.
#[derive(Debug)]
pub struct Stop {
    flag: AtomicBool,
    /// Looks at [`SIGNAL`].
    signals: bool,
    deadline: Option<Instant>,
    why: Mutex<Option<String>>,
}

impl Stop {
    /// Stops by itself after `limit`, if there is one; by a signal, if `signals` are caught.
    pub fn new(limit: Option<Duration>, signals: bool) -> Self {
        Stop {
            flag: AtomicBool::new(false),
            signals,
            deadline: limit.and_then(|l| Instant::now().checked_add(l)),
            why: Mutex::new(None),
        }
    }
    /// Stops, unless it was stopped before.
    pub fn raise(&self, why: impl Into<String>) {
        let mut slot = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert_with(|| why.into());
        self.flag.store(true, Ordering::Release);
    }
    /// Stopped?
    pub fn is_raised(&self) -> bool {
        if self.flag.load(Ordering::Acquire) {
            return true;
        }
        let number = if self.signals {
            SIGNAL.load(Ordering::Relaxed)
        } else {
            0
        };
        let signal = match number {
            0 => None,
            SIGINT => Some("SIGINT (interrupted)"),
            SIGHUP => Some("SIGHUP (the terminal is gone)"),
            _ => Some("SIGTERM (terminated)"),
        };
        if let Some(name) = signal {
            self.raise(format!("stopped by {name}"));
            return true;
        }
        if self.deadline.is_some_and(|d| Instant::now() >= d) {
            self.raise("stopped at the time limit");
            return true;
        }
        false
    }
    /// Why, if it was.
    pub fn why(&self) -> Option<String> {
        let slot = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        slot.clone()
    }
}

/// The number of the signal that came last while signals were caught; 0 for none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(number: c_int) {
    SIGNAL.store(number, Ordering::Relaxed);
}

/// While this lives, SIGINT, SIGTERM and SIGHUP stop the run instead of ending the program; what
/// was done with them before comes back when it is dropped. One run of a program at a time.
pub struct Signals(Vec<(c_int, libc::sigaction)>);

impl Signals {
    /// Catches them.
    pub fn catch() -> io::Result<Self> {
        SIGNAL.store(0, Ordering::Relaxed);
        let mut before = Signals(Vec::new());
        for number in [SIGINT, SIGTERM, SIGHUP] {
            #[expect(unsafe_code, reason = "no safe wrapper exists")]
            // SAFETY: both structs are plain data, valid when zeroed; the handler does nothing
            // but store to an atomic, which a signal handler may.
            let (r, old) = unsafe {
                let mut new: libc::sigaction = std::mem::zeroed();
                let mut old: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = note as extern "C" fn(c_int) as libc::sighandler_t;
                (libc::sigaction(number, &new, &mut old), old)
            };
            if r != 0 {
                return Err(io::Error::last_os_error());
            }
            before.0.push((number, old));
        }
        Ok(before)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (number, old) in &self.0 {
            #[expect(unsafe_code, reason = "no safe wrapper exists")]
            // SAFETY: puts back what the kernel gave us.
            let r = unsafe { libc::sigaction(*number, old, std::ptr::null_mut()) };
            debug_assert_eq!(r, 0, "a signal that was caught before");
        }
    }
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
        let end = Instant::now() + Duration::from_secs(5);
        while !s.is_raised() && Instant::now() < end {
            std::thread::yield_now();
        }
        drop(caught);
        assert_eq!(s.why().as_deref(), Some("stopped by SIGTERM (terminated)"));
        assert!(!deaf.is_raised());
    }
}
