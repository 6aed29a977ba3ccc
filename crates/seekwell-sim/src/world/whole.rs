//! A file that a program reads from front to back: its calls follow from each other, so the world
//! makes them one after the other, each where the script would have made it, and wakes the script
//! when all is done.

use super::exec::World;
use super::programs::Program;
use super::sync::Task;
use seekwell_core::{Errno, Instant, OpenFlags};
use seekwell_stack::Fd;
use seekwell_workload::{Note, Tally};

/// What a failure was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The first call.
    Open,
    /// One from here.
    Read(u64),
    /// The last.
    Close,
}

/// A file that is being read, or was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    /// The call under way, or the one that failed.
    pub(super) step: Step,
    pub(super) done: Option<Result<(), Errno>>,
    /// Of the task that reads.
    pub(super) tally: Tally,
    chunk: u32,
    fd: Fd,
    since: Instant,
}

impl Whole {
    /// Reads in calls of `chunk`.
    pub(super) fn new(chunk: u32, tally: Tally) -> Self {
        Whole {
            step: Step::Open,
            done: None,
            tally,
            chunk,
            fd: Fd(0),
            since: Instant::START,
        }
    }
}

impl World {
    /// A task begins to read a file.
    pub(super) fn read_whole(
        &mut self,
        t: Task,
        name: &str,
        chunk: u32,
        tally: Tally,
    ) -> Result<(), Errno> {
        self.open(t, name, OpenFlags::RDONLY)?;
        *self.whole(t) = Some(Whole::new(chunk, tally));
        Ok(())
    }
    /// A call of a task has returned: true if it belongs to a file that is being read and the next
    /// is under way.
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
                    // A file is closed even when the run is stopped.
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
    /// A call gave something: an operation of its own.
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
    /// A file that was read, once.
    pub(super) fn whole_done(&mut self, t: Task) -> Option<Whole> {
        let whole = self.whole(t);
        whole.take_if(|w| w.done.is_some())
    }
}
