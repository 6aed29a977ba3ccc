//! Events that end serving: a signal, the end of a pipe, or a lost mount.

use crate::disk::Disk;
use crate::error::ServeError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::low_level::pipe;
use std::ffi::c_int;
use std::io;
use std::os::unix::net::UnixStream;

/// Interval between checks whether the mount still exists.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// Why serving ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// SIGINT, SIGTERM or SIGHUP.
    Signal,
    /// Standard input was closed.
    Eof,
    /// Somebody unmounted the file system, or its thread failed.
    Unmounted,
}

/// Catches the signals that end serving, from its creation until the program ends. A signal writes
/// a byte to a socket. Create it before [`Disk::start`].
pub struct Ends(UnixStream);

impl Ends {
    /// Starts to catch the given signals.
    pub fn catch(signals: impl IntoIterator<Item = c_int>) -> Result<Self, ServeError> {
        let caught = || -> io::Result<UnixStream> {
            let (seen, sent) = UnixStream::pair()?;
            for number in signals {
                pipe::register(number, sent.try_clone()?)?;
            }
            Ok(seen)
        };
        caught().map(Ends).map_err(|source| ServeError::System {
            what: "cannot wait for signals",
            source,
        })
    }

    /// Waits for the first event that ends serving, and returns it. The end of standard input
    /// counts only if `until_eof` is set.
    pub fn wait(&self, disk: &Disk, until_eof: bool) -> End {
        let stdin = io::stdin();
        loop {
            let mut fds = vec![PollFd::new(&self.0, PollFlags::IN)];
            if until_eof {
                // A closed pipe is reported as HUP, for which poll(2) needs no flag.
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
