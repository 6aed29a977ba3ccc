//! A file that a program reads from start to end. Each call follows from the result of the previous
//! call. The world therefore makes all calls itself, at the times at which the script would have
//! made them, and wakes the script at the end. If all calls are short, they become one piece of CPU
//! time for the kernel. The read is still recorded at its exact time.

use super::exec::World;
use super::paths::{absolute, check};
use super::programs::Program;
use super::sync::Task;
use seekwell_core::{Errno, Instant, Nanos, OpenFlags};
use seekwell_stack::{AtOnce, Call, Fd, Parts};
use seekwell_workload::{Note, Tally};

/// The step of a file read that is active or has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The open call.
    Open,
    /// A read from this offset.
    Read(u64),
    /// The close call.
    Close,
}

/// A file that a task reads or has read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    /// The active step, or the step that failed.
    pub(super) step: Step,
    pub(super) done: Option<Result<(), Errno>>,
    /// Counts of the reading task.
    pub(super) tally: Tally,
    chunk: u32,
    fd: Fd,
    /// Start of the active call.
    since: Instant,
    /// Whether all calls were one piece of CPU time with these parts.
    at_once: bool,
    parts: Parts,
}

impl Whole {
    /// Creates the state for a file read in calls of `chunk` bytes.
    pub(super) fn new(chunk: u32, tally: Tally) -> Self {
        Whole {
            step: Step::Open,
            done: None,
            tally,
            chunk,
            fd: Fd(0),
            since: Instant::START,
            at_once: false,
            parts: Parts::default(),
        }
    }
}

/// Returns start and end of a read inside a piece of CPU time. The piece started at `since` and
/// ends at `now`. The task had to wait for its core when `left` of the piece remained.
fn read_within(p: &Parts, since: Instant, now: Instant, left: Nanos) -> (Instant, Instant) {
    let less = |a: Nanos, b: Nanos| Nanos(a.0.saturating_sub(b.0));
    let waited = less(now.since(since), p.all);
    let had = less(p.all, left);
    let at = |cpu: Nanos| {
        let before = if had < cpu { waited } else { Nanos::ZERO };
        since + cpu + before
    };
    (at(p.open), at(p.open + p.read))
}

impl World {
    /// Starts to read a file for a task.
    pub(super) fn read_whole(
        &mut self,
        t: Task,
        name: &str,
        chunk: u32,
        tally: Tally,
    ) -> Result<(), Errno> {
        check(name)?;
        self.going()?;
        // The value is created in place, because moving it for each file would take too long.
        *self.whole(t) = Some(Whole::new(chunk, tally));
        let mut done = None;
        self.if_short(t, |w, tid| {
            let now = w.now;
            let (kernel, whole) = w.kernel_and_whole(t);
            if let Some(whole) = whole {
                done = kernel.whole_short(now, tid, name, chunk.into(), &mut whole.parts);
            }
            done.is_some()
        });
        match done {
            None => {
                let (path, flags) = (absolute(name), OpenFlags::RDONLY);
                self.call(t, Call::Open { path, flags });
            }
            Some(AtOnce::Opened) => {}
            Some(AtOnce::Whole) => {
                let now = self.time_of(self.program(t));
                if let Some(whole) = self.whole(t) {
                    (whole.at_once, whole.since) = (true, now);
                }
            }
        }
        Ok(())
    }
    /// Handles the end of a piece of CPU time that contained all calls for a file.
    fn read_at_once(&mut self, t: Task, p: Parts, now: Instant) {
        let (program, clock) = (self.program(t), self.measures.clock());
        let left = self.kernel.left_at_cut(self.tid(t));
        let Some(whole) = self.whole(t) else { return };
        whole.tally.read(clock, p.bytes);
        whole.tally.read(clock, 0);
        whole.done = Some(Ok(()));
        let (start, end) = read_within(&p, whole.since, now, left);
        self.was_read(t, program, start, end, p.bytes);
    }
    /// Handles the return of a call. Returns true if the call belongs to a file read and the next
    /// call of this read is active.
    #[inline]
    pub(super) fn reads_on(&mut self, t: Task) -> bool {
        if self.whole(t).is_none() {
            return false;
        }
        let Some(ret) = self.ret(t) else { return false };
        let program = self.program(t);
        let (now, clock) = (self.time_of(program), self.measures.clock());
        let Some(whole) = self.whole(t) else {
            return false;
        };
        if whole.at_once {
            let parts = whole.parts;
            self.read_at_once(t, parts, now);
            return false;
        }
        let n = match ret {
            Ok(n) => n,
            Err(e) => {
                whole.done = Some(Err(e));
                return false;
            }
        };
        let off = match whole.step {
            Step::Open => {
                whole.fd = Fd(n as u32);
                0
            }
            Step::Read(off) => {
                whole.tally.read(clock, n);
                if n == 0 {
                    // The file is closed even if the run is stopped.
                    whole.step = Step::Close;
                    let fd = whole.fd;
                    self.close(t, fd);
                    return true;
                }
                let start = whole.since;
                self.was_read(t, program, start, now, n);
                off + n
            }
            Step::Close => {
                whole.done = Some(Ok(()));
                return false;
            }
        };
        let going = self.going();
        let Some(whole) = self.whole(t) else {
            return false;
        };
        (whole.step, whole.since) = (Step::Read(off), now);
        if let Err(stopped) = going {
            whole.done = Some(Err(stopped));
            return false;
        }
        let (fd, len) = (whole.fd, whole.chunk.into());
        self.read(t, fd, off, len);
        true
    }
    /// Counts a read that returned data as an operation.
    #[inline]
    fn was_read(&mut self, t: Task, program: Program, start: Instant, end: Instant, bytes: u64) {
        let note = Note::Op {
            kind: "read",
            start,
            end,
            bytes,
        };
        let part = self.part(t);
        match program {
            0 => self.measures.note(part, &note),
            p => self.note_beside(p, part, note),
        }
    }
    /// Takes the outcome of a finished file read, with the task's counts.
    pub(super) fn whole_done(
        &mut self,
        t: Task,
        tally: &mut Tally,
    ) -> Option<Result<(), (Step, Errno)>> {
        let slot = self.whole(t);
        let whole = slot.as_ref()?;
        let ended = whole.done?.map_err(|e| (whole.step, e));
        *tally = whole.tally;
        *slot = None;
        Some(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_and_end_of_a_read_within_a_whole_file_read_are_exact() {
        let us = Nanos::from_us;
        let p = Parts {
            bytes: 1,
            open: us(10),
            read: us(20),
            all: us(40),
        };
        let t0 = Instant::START + us(5);
        let within = |waited, had: u64| {
            let now = t0 + p.all + us(waited);
            let (start, end) = read_within(&p, t0, now, us(40 - had));
            (start.since(t0), end.since(t0))
        };
        assert_eq!(within(0, 0), (us(10), us(30)), "it never waited");
        assert_eq!(within(7, 0), (us(17), us(37)), "for its beginning");
        assert_eq!(within(7, 9), (us(17), us(37)), "in open()");
        assert_eq!(within(7, 10), (us(10), us(37)), "in read()");
        assert_eq!(within(7, 30), (us(10), us(30)), "behind it");
    }
}
