//! A file that a program reads from front to back: its calls follow from each other, so the world
//! makes them one after the other, each where the script would have made it, and wakes the script
//! when all is done.

use super::exec::World;
use super::sync::Task;
use seekwell_core::{Errno, Instant, OpenFlags};
use seekwell_stack::{Call, Fd, Ret};
use seekwell_workload::{Clock, Note, Tally};

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
    /// A call returned: what is to be noted, and the next call if there is one.
    fn next(
        &mut self,
        ret: Ret,
        now: Instant,
        clock: Clock,
        going: Result<(), Errno>,
    ) -> (Option<Note>, Option<Call>) {
        let (note, next) = match (self.step, ret) {
            (Step::Open, Ok(fd)) => {
                self.fd = Fd(fd as u32);
                (None, Step::Read(0))
            }
            (Step::Read(off), Ok(n)) => {
                self.tally.read(clock, n);
                let note = Note::Op {
                    kind: "read",
                    start: self.since,
                    end: now,
                    bytes: n,
                };
                match n {
                    0 => (None, Step::Close),
                    n => (Some(note), Step::Read(off + n)),
                }
            }
            (Step::Close, Ok(_)) => {
                self.done = Some(Ok(()));
                return (None, None);
            }
            (_, Err(e)) => {
                self.done = Some(Err(e));
                return (None, None);
            }
        };
        self.step = next;
        let call = match next {
            Step::Read(off) => {
                self.since = now;
                if let Err(stopped) = going {
                    self.done = Some(Err(stopped));
                    return (note, None);
                }
                Call::Read {
                    fd: self.fd,
                    off,
                    len: u64::from(self.chunk),
                }
            }
            // A file is closed even when the run is stopped.
            _ => Call::Close { fd: self.fd },
        };
        (note, Some(call))
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
        let (program, part) = (self.program(t), self.part(t));
        let (now, clock, going) = (self.time_of(program), self.measures.clock(), self.going());
        let Some(whole) = self.whole(t) else {
            return false;
        };
        let (note, call) = whole.next(ret, now, clock, going);
        if let Some(note) = note {
            match program {
                0 => self.note(part, &note),
                p => self.note_beside(p, part, note),
            }
        }
        match call {
            Some(call) => {
                self.call(t, call);
                true
            }
            None => false,
        }
    }
    /// A file that was read, once.
    pub(super) fn whole_done(&mut self, t: Task) -> Option<Whole> {
        let whole = self.whole(t);
        whole.take_if(|w| w.done.is_some())
    }
}
