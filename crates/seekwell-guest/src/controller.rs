//! The main loop: it decides whether the guest or a disk is next, in order of virtual time.

use crate::clock::{Asked, Clock, NEVER};
use crate::error::GuestError;
use crate::vhost::{Connection, Served};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long the loop waits for a message before it looks at the console.
const LOOK: Duration = Duration::from_millis(300);

/// Limits of a run.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The run ends soon after this flag is set.
    pub stop: Option<Arc<AtomicBool>>,
    /// Most real time.
    pub wall: Duration,
    /// Most virtual time after the pause that follows the mount.
    pub virtual_time: Duration,
    /// The pause.
    pub settle: Duration,
}

/// A number that a program in the guest wrote to `/sys/kernel/um-ext-time/bc-message`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Virtual time, ns.
    pub at_ns: u64,
    /// The number. Numbers from 2^32 on are Seekwell's own.
    pub value: u64,
}

/// How the loop ended without an error.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The guest closed its connections: it has powered off or crashed.
    Closed,
}

/// The state of the loop.
pub struct Controller {
    clock: Clock,
    disks: Vec<Connection>,
    limits: Limits,
    began: Instant,
    /// File with the output of the kernel.
    console: PathBuf,
    /// True while the guest runs; false while it waits for its turn.
    guest_runs: bool,
    marks: Vec<Mark>,
}

impl Controller {
    /// Returns the loop for a guest that has connected to its clock and its disks.
    pub fn new(
        clock: Clock,
        disks: Vec<Connection>,
        limits: Limits,
        began: Instant,
        console: &Path,
    ) -> Self {
        Controller {
            console: console.to_owned(),
            clock,
            disks,
            limits,
            began,
            guest_runs: true,
            marks: Vec::new(),
        }
    }
    /// Returns the current virtual time, ns.
    pub fn now(&self) -> u64 {
        self.clock.now().unwrap_or(0)
    }
    /// Returns the marks and the disks.
    pub fn into_parts(self) -> (Vec<Mark>, Vec<Connection>) {
        (self.marks, self.disks)
    }

    /// Runs until the guest ends.
    pub fn run(&mut self) -> Result<End, GuestError> {
        loop {
            if !self.guest_runs {
                self.next()?;
            }
            if let Some(end) = self.listen()? {
                return Ok(end);
            }
        }
    }

    /// Lets the guest or a disk proceed, in order of virtual time. A disk precedes a timer.
    fn next(&mut self) -> Result<(), GuestError> {
        loop {
            let now = self.clock.now()?;
            let event = self.disk_event().map(|t| t.max(now));
            let timer = self.clock.requested()?.map(|t| t.max(now));
            match (event, timer) {
                (None, None) => return Err(GuestError::Asleep { at_ns: now }),
                (Some(e), t) if t.is_none_or(|t| e <= t) => {
                    self.clock.set_now(e)?;
                    for i in 0..self.disks.len() {
                        if self.disks[i].complete(e)? {
                            self.wait_for_answer(i)?;
                        }
                    }
                }
                (e, Some(t)) => {
                    if Duration::from_nanos(t).saturating_sub(self.limits.settle)
                        > self.limits.virtual_time
                    {
                        return Err(GuestError::TimeLimit(self.limits.virtual_time));
                    }
                    self.clock.set_free_until(e.unwrap_or(NEVER))?;
                    self.clock.run(t)?;
                    self.guest_runs = true;
                    return Ok(());
                }
                // The guard above holds if there is no timer.
                (Some(_), None) => {}
            }
        }
    }

    fn disk_event(&self) -> Option<u64> {
        self.disks.iter().filter_map(Connection::next_event).min()
    }

    /// Serves the guest's clock until the guest has answered a call of disk `i`.
    fn wait_for_answer(&mut self, i: usize) -> Result<(), GuestError> {
        loop {
            let Some(back) = self.disks[i].back() else {
                return Ok(());
            };
            let ready = self.ready(&[back.as_fd(), self.clock.socket().as_fd()])?;
            if ready & 2 != 0 {
                // Messages of the clock while the guest handles the interrupt.
                match self.clock.receive()? {
                    Asked::Closed => return Ok(()),
                    Asked::Mark(value) => self.mark(value)?,
                    _ => {}
                }
            } else if ready & 1 != 0 {
                self.disks[i].answered();
                return Ok(());
            }
        }
    }

    /// Waits for one message of the guest and acts on it.
    fn listen(&mut self) -> Result<Option<End>, GuestError> {
        if let Some(asked) = self.clock.postponed() {
            return self.act(asked);
        }
        let mut fds: Vec<_> = self.disks.iter().map(Connection::socket).collect();
        fds.push(self.clock.socket().as_fd());
        let ready = self.ready(&fds)?;
        for i in 0..self.disks.len() {
            if ready & 1 << i == 0 {
                continue;
            }
            let now = self.clock.now()?;
            match self.disks[i].receive(now)? {
                Served::Answered => {}
                Served::Kicked => {
                    // The bound must be in place before the guest goes on.
                    let bound = self.disk_event().map_or(NEVER, |t| t.max(now));
                    self.clock.set_free_until(bound)?;
                    self.disks[i].confirm()?;
                }
                Served::Closed => return Ok(Some(End::Closed)),
            }
            return Ok(None);
        }
        if ready == 0 {
            return Ok(None);
        }
        let asked = self.clock.receive()?;
        self.act(asked)
    }

    fn act(&mut self, asked: Asked) -> Result<Option<End>, GuestError> {
        match asked {
            Asked::Closed => return Ok(Some(End::Closed)),
            Asked::Waits => {
                self.clock.set_running(false)?;
                self.guest_runs = false;
            }
            Asked::Mark(value) => self.mark(value)?,
            Asked::Started | Asked::Answered | Asked::Confirmed => {}
        }
        Ok(None)
    }

    fn mark(&mut self, value: u64) -> Result<(), GuestError> {
        let at_ns = self.clock.now()?;
        self.marks.push(Mark { at_ns, value });
        Ok(())
    }

    /// Waits for a message, for at most [`LOOK`]. A guest that sends nothing for that time may have
    /// panicked: a kernel that panics goes on in a loop and does not end.
    fn ready(&self, fds: &[BorrowedFd<'_>]) -> Result<u64, GuestError> {
        if self
            .limits
            .stop
            .as_ref()
            .is_some_and(|s| s.load(Ordering::Relaxed))
        {
            return Err(GuestError::Stopped);
        }
        let ready = wait(fds, self.left()?.min(LOOK))?;
        if ready == 0
            && let Ok(text) = std::fs::read(&self.console)
            && let Some(line) = panic_line(&String::from_utf8_lossy(&text))
        {
            let at_ns = self.now();
            return Err(GuestError::Panic { at_ns, line });
        }
        Ok(ready)
    }

    /// Returns the real time that is left.
    fn left(&self) -> Result<Duration, GuestError> {
        self.limits
            .wall
            .checked_sub(self.began.elapsed())
            .filter(|d| !d.is_zero())
            .ok_or(GuestError::WallLimit(self.limits.wall))
    }
}

/// Returns the line of a console that reports a panic of the kernel.
pub fn panic_line(console: &str) -> Option<String> {
    let line = console.lines().find(|l| l.contains("Kernel panic"));
    line.map(|l| l.trim().to_owned())
}

/// Waits until a descriptor can be read. Returns one bit per descriptor; 0 after the time.
pub fn wait(fds: &[std::os::fd::BorrowedFd<'_>], most: Duration) -> Result<u64, GuestError> {
    let mut polled: Vec<_> = fds
        .iter()
        .map(|f| PollFd::from_borrowed_fd(*f, PollFlags::IN))
        .collect();
    let timeout = Timespec {
        tv_sec: most.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: i64::from(most.subsec_nanos()),
    };
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(e) => return Err(GuestError::host("wait for the guest")(e)),
    }
    let bits = polled.iter().enumerate();
    Ok(bits.fold(0, |m, (i, p)| m | u64::from(!p.revents().is_empty()) << i))
}
