//! When to stop: a signal, the end of a pipe, or a mount that is gone.

use crate::disk::Disk;
use crate::error::ServeError;
use crate::sys;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::OwnedFd;

/// How often the mount itself is looked at.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// Why serving ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// SIGINT, SIGTERM or SIGHUP.
    Signal,
    /// The other end of standard input is gone.
    Eof,
    /// Somebody unmounted it, or its thread failed.
    Unmounted,
}

/// The signals that end serving, held back from now on in this thread and those it makes: to be
/// made before [`Disk::start`].
pub struct Ends(OwnedFd);

impl Ends {
    /// Holds them back.
    pub fn catch() -> Result<Self, ServeError> {
        let caught = sys::signals_as_file(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]);
        caught.map(Ends).map_err(|source| ServeError::System {
            what: "cannot wait for signals",
            source,
        })
    }

    /// Waits for whichever comes first; the end of standard input counts only if asked for.
    pub fn wait(&self, disk: &Disk, until_eof: bool) -> End {
        let stdin = io::stdin();
        loop {
            let mut fds = vec![PollFd::new(&self.0, PollFlags::IN)];
            if until_eof {
                // A closed pipe shows as HUP, which needs no asking.
                fds.push(PollFd::new(&stdin, PollFlags::empty()));
            }
            let found = poll(&mut fds, Some(&LOOK));
            let seen = |i: usize| {
                let events = fds.get(i).map(PollFd::revents);
                found.is_ok() && events.is_some_and(|e| !e.is_empty())
            };
            if seen(0) {
                return End::Signal;
            }
            if seen(1) {
                return End::Eof;
            }
            if disk.ended() {
                return End::Unmounted;
            }
        }
    }
}
