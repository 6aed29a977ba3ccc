//! The system calls of tasks: the requests of a task to the kernel model, and the events that the
//! task waits for.

use super::super::paths::{absolute, check};
use super::super::sync::Task;
use super::super::whole::Whole;
use super::{State, Wait, World};
use seekwell_core::{Errno, OpenFlags, TaskId};
use seekwell_stack::{Call, Fd, Kernel, Ret};

impl World {
    /// Makes a call to the kernel.
    #[inline]
    pub(in crate::world) fn call(&mut self, t: Task, call: Call) {
        let s = &mut self.tasks[t as usize];
        s.wait = Wait::Kernel;
        self.in_kernel += 1;
        let (tid, program) = (s.tid, s.program);
        if self.holding && self.is_held(program) {
            return self.hold(program, t, call);
        }
        self.kernel.call(self.now, tid, call);
    }
    /// Opens a file (open(2)). The file usually exists and the open is short. Then no [`Call`] is
    /// built.
    pub(in crate::world) fn open(
        &mut self,
        t: Task,
        name: &str,
        flags: OpenFlags,
    ) -> Result<(), Errno> {
        check(name)?;
        self.going()?;
        let short = |w: &mut World, tid| w.kernel.open_short(w.now, tid, name, flags);
        if !self.if_short(t, short) {
            let path = absolute(name);
            self.call(t, Call::Open { path, flags });
        }
        Ok(())
    }
    /// Reads from a file (read(2)).
    #[inline]
    pub(in crate::world) fn read(&mut self, t: Task, fd: Fd, off: u64, len: u64) {
        let short = |w: &mut World, tid| w.kernel.read_short(w.now, tid, fd, off, len);
        if !self.if_short(t, short) {
            self.call(t, Call::Read { fd, off, len });
        }
    }
    /// Closes a file (close(2)).
    #[inline]
    pub(in crate::world) fn close(&mut self, t: Task, fd: Fd) {
        if !self.if_short(t, |w, tid| w.kernel.close_short(w.now, tid, fd)) {
            self.call(t, Call::Close { fd });
        }
    }
    /// Makes a call if it is a short one.
    #[inline]
    pub(in crate::world) fn if_short(
        &mut self,
        t: Task,
        call: impl FnOnce(&mut World, TaskId) -> bool,
    ) -> bool {
        let tid = self.tasks[t as usize].tid;
        let short = !self.holding && call(self, tid);
        if short {
            self.tasks[t as usize].wait = Wait::Kernel;
            self.in_kernel += 1;
        }
        short
    }
    pub(in crate::world) fn kernel_and_whole(
        &mut self,
        t: Task,
    ) -> (&mut Kernel, Option<&mut Whole>) {
        (&mut self.kernel, self.tasks[t as usize].whole.as_mut())
    }
    pub(in crate::world) fn whole(&mut self, t: Task) -> &mut Option<Whole> {
        &mut self.tasks[t as usize].whole
    }
    #[inline]
    pub(in crate::world) fn ret(&mut self, t: Task) -> Option<Ret> {
        self.tasks[t as usize].ret.take()
    }

    /// Returns the event that each task waits for, for an error message.
    pub(super) fn waits(&self) -> String {
        let name = |t: Task| self.tasks.get(t as usize).map_or("?", |s| &s.path);
        let say = |s: &State| {
            let what = match s.wait {
                Wait::Nothing => "is about to run".to_owned(),
                Wait::Kernel => "waits for the kernel".to_owned(),
                Wait::Lock(l) => match self.syncs.holder(l) {
                    Some(h) => format!("waits for lock {l}, held by {}", name(h)),
                    None => format!("waits for lock {l}"),
                },
                Wait::Barrier(b) => {
                    let missing = self.syncs.missing(b);
                    format!("waits at barrier {b} for {missing} more")
                }
                Wait::Send(c) => format!("waits for room in channel {c}"),
                Wait::Recv(c) => format!("waits for a number from channel {c}"),
                Wait::Join(t) => format!("waits for the end of {}", name(t)),
            };
            format!("{} {what}", s.path)
        };
        let all: Vec<String> = self.tasks.iter().filter(|s| s.alive).map(say).collect();
        all.join("; ")
    }
}
