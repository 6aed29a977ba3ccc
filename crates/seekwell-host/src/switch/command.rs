//! Runs a command while signals to this process are blocked. These signals are forwarded to the
//! command. No signal ends this process before the command ends.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

/// The signals that are blocked: signals that would end a program, and SIGCHLD.
const HELD: [libc::c_int; 7] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCHLD,
];

/// While this value exists, the signals of [`HELD`] are blocked. Pending signals take effect when
/// it is dropped. The signals are blocked for the thread that creates the value and for threads
/// that it starts later. Create the value before any other thread.
pub struct Held {
    held: libc::sigset_t,
    before: libc::sigset_t,
}

/// A signal that has arrived.
struct Came {
    number: libc::c_int,
    /// Whether the signal came from the terminal. The terminal signals the whole process group,
    /// including the command.
    group: bool,
}

#[expect(
    unsafe_code,
    reason = "no crate in use holds signals back and tells who sent them"
)]
fn set_mask(how: libc::c_int, new: &libc::sigset_t, old: *mut libc::sigset_t) -> io::Result<()> {
    // SAFETY: `new` is initialised. `old` is null or points to a signal set of the caller.
    match unsafe { libc::pthread_sigmask(how, new, old) } {
        0 => Ok(()),
        e => Err(io::Error::from_raw_os_error(e)),
    }
}

#[expect(unsafe_code, reason = "sets of signals are C structures")]
fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set. sigaddset changes an initialised set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        let mut set = set.assume_init();
        for s in signals {
            libc::sigaddset(&mut set, *s);
        }
        set
    }
}

impl Held {
    /// Blocks the signals.
    pub fn new() -> io::Result<Held> {
        let held = set_of(&HELD);
        let mut before = set_of(&[]);
        set_mask(libc::SIG_BLOCK, &held, &mut before)?;
        Ok(Held { held, before })
    }

    /// Returns the next signal that is pending or arrives within a second.
    fn next(&self) -> Option<Came> {
        let second = libc::timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        #[expect(unsafe_code, reason = "no crate in use tells who sent a signal")]
        // SAFETY: the set and the time are initialised, and `info` has room for the result. A
        // siginfo_t whose bits are all zero is valid.
        let (number, info) = unsafe {
            let n = libc::sigtimedwait(&self.held, info.as_mut_ptr(), &second);
            (n, info.assume_init())
        };
        (number > 0).then_some(Came {
            number,
            // The value 0x80 is SI_KERNEL of sigaction(2).
            group: info.si_code == 0x80,
        })
    }

    /// Runs a command until it ends, and returns its exit status.
    pub fn run(&self, command: &[OsString]) -> io::Result<ExitStatus> {
        let Some((program, args)) = command.split_first() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let before = self.before;
        let mut c = Command::new(program);
        c.args(args);
        #[expect(
            unsafe_code,
            reason = "the child must not inherit that signals are held"
        )]
        // SAFETY: between fork and exec only pthread_sigmask is called, which is async-signal-safe.
        unsafe {
            c.pre_exec(move || set_mask(libc::SIG_SETMASK, &before, std::ptr::null_mut()));
        }
        let mut child = c.spawn()?;
        let pid = rustix::process::Pid::from_child(&child);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            let Some(came) = self.next().filter(|c| c.number != libc::SIGCHLD) else {
                continue;
            };
            let keyboard = [libc::SIGINT, libc::SIGQUIT].contains(&came.number);
            if came.group && keyboard {
                continue;
            }
            if let Some(signal) = rustix::process::Signal::from_named_raw(came.number) {
                // The command may have just ended. The loop notices this.
                let _ = rustix::process::kill_process(pid, signal);
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = set_mask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
    }
}

/// Returns the exit code of the command, or 128 plus the number of the signal that ended the
/// command.
pub fn code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|s| 128 + s);
    let code = status.code().or(signal);
    code.and_then(|c| u8::try_from(c & 0xff).ok()).unwrap_or(1)
}
