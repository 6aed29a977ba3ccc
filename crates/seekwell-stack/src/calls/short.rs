//! Short calls: system calls that need neither the disk nor a wait. Their effects happen
//! immediately, and the task only has to spend their CPU time. The task's own actor serves all
//! other calls.
//!
//! Most calls of most programs are short. A short call avoids the allocations and wake-ups of the
//! actor's future.

use crate::executor::Actor;
use crate::fs::Kind;
use crate::machine::{Call, NIL, Ret, Task, World};
use seekwell_core::{Errno, Instant, Nanos, OpenFlags, TaskId};

/// The part of reading a whole file that was done immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOnce {
    /// Only [`Call::Open`] was done. The file is open, or it does not exist.
    Opened,
    /// open(2), read(2), read(2) at the end of the file, and close(2) were done, as one piece of
    /// CPU time with these [`Parts`].
    Whole,
}

/// CPU times of the calls in this piece, on the cores of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Length of the file, bytes.
    pub bytes: u64,
    /// CPU time of open(2), including CPU time that the task owed before.
    pub open: Nanos,
    /// CPU time of the first read(2).
    pub read: Nanos,
    /// CPU time of the whole piece.
    pub all: Nanos,
}

impl World {
    /// Executes a call if it is short. Returns true if it was short; then the task only has to
    /// spend its CPU time.
    pub(crate) fn short(&mut self, a: Actor, call: &Call) -> bool {
        let call_ns = self.cfg.constants.call_ns;
        match *call {
            Call::Read { fd, off, len } => self.short_read(a, fd.0, off, len),
            Call::Write { fd, off, len } => {
                let n = self.write_fast(a, fd.0, off, len);
                n.is_some_and(|n| self.pay_short(a, Ok(n), call_ns, false))
            }
            Call::Compute(d) => self.pay_short(a, Ok(0), d.0, false),
            Call::Open { ref path, flags } => self.short_open(a, path, flags),
            Call::Close { fd } => self.short_close(a, fd.0),
            _ => false,
        }
    }
    /// Executes read(2) if it is short.
    #[inline]
    pub(crate) fn short_read(&mut self, a: Actor, fd: u32, off: u64, len: u64) -> bool {
        let n = self.read_fast(a, fd, off, len);
        n.is_some_and(|n| self.pay_short(a, Ok(n), self.cfg.constants.call_ns, false))
    }
    /// Executes close(2) if it is short.
    #[inline]
    pub(crate) fn short_close(&mut self, a: Actor, fd: u32) -> bool {
        let closed = self.close_fast(fd);
        closed.is_some_and(|ret| self.pay_short(a, ret, self.cfg.constants.call_ns, true))
    }
    /// Executes open(2) if it is short.
    pub(crate) fn short_open(&mut self, a: Actor, path: &str, flags: OpenFlags) -> bool {
        let Some(ret) = self.open_fast(a, path, flags) else {
            return false;
        };
        self.pay_short(a, ret, self.cfg.constants.call_ns, true)
    }
    /// Opens a file that the program will read to its end in calls of `chunk` bytes. If the file is
    /// in memory and one call reads all of it, also reads and closes the file. Returns `None` if
    /// the open is not a short call; then nothing has happened.
    pub(crate) fn short_whole(
        &mut self,
        a: Actor,
        path: &str,
        chunk: u64,
        parts: &mut Parts,
    ) -> Option<AtOnce> {
        let ret = self.open_fast(a, path, OpenFlags::RDONLY)?;
        let call_ns = self.cfg.constants.call_ns;
        let open_ns = self.rt.debt[a as usize] + call_ns;
        let bytes = ret.ok().and_then(|fd| self.whole_fast(a, fd as u32, chunk));
        let Some(bytes) = bytes else {
            self.pay_short(a, ret, call_ns, true);
            return Some(AtOnce::Opened);
        };
        let all_ns = self.rt.debt[a as usize] + 4 * call_ns;
        let part = |ns| Nanos(self.rt.lasts(ns));
        *parts = Parts {
            bytes,
            open: part(open_ns),
            read: part(all_ns - open_ns - 2 * call_ns),
            all: part(all_ns),
        };
        self.stats.calls += 3;
        self.pay_short(a, Ok(bytes), 4 * call_ns, true);
        Some(AtOnce::Whole)
    }
    /// Reads and closes a file that was just opened, if one call of `chunk` bytes reads all of it
    /// and neither the read nor the close needs more work. Returns the number of bytes.
    fn whole_fast(&mut self, a: Actor, fd: u32, chunk: u64) -> Option<u64> {
        let i = &self.fs.inodes[self.files[fd as usize].ino as usize];
        if i.len == 0 || i.len > chunk || i.flush_on_close {
            return None;
        }
        let bytes = self.read_fast(a, fd, 0, chunk)?;
        let closed = self.close_fast(fd);
        debug_assert!(closed.is_some(), "a file with a name and nothing to flush");
        Some(bytes)
    }
    /// Makes the next call of a task by calling `call`, which returns whether the call is short.
    #[inline]
    pub(crate) fn if_short(
        &mut self,
        now: Instant,
        tid: TaskId,
        call: impl FnOnce(&mut World) -> bool,
    ) -> bool {
        self.begins(now, tid);
        let short = call(self);
        if short {
            let t = &mut self.tasks[tid.0 as usize];
            (t.idle, t.held) = (t.short.is_none(), Nanos::ZERO);
        }
        short
    }
    /// Panics if a task cannot start its next call.
    pub(crate) fn begins(&mut self, now: Instant, tid: TaskId) -> &mut Task {
        self.rt.now = now.max(self.rt.now);
        let t = &mut self.tasks[tid.0 as usize];
        assert!(t.exists, "task {} does not exist", tid.0);
        assert!(t.idle, "task {} has a call under way", tid.0);
        t
    }
    /// Ends a short call after `ns` of CPU time. `late`: the call ends after other calls that end
    /// at the same instant. This applies to calls that an actor may also serve.
    fn pay_short(&mut self, a: Actor, ret: Ret, ns: u64, late: bool) -> bool {
        let ns = ns + std::mem::take(&mut self.rt.debt[a as usize]);
        let t = &mut self.tasks[a as usize];
        (t.short, t.late) = (Some(ret), late);
        if ns == 0 {
            self.short_ended(a);
        } else {
            self.rt.want_cpu(a, ns);
        }
        true
    }
    /// Handles the end of the CPU time that an actor requested.
    pub(crate) fn cpu_had(&mut self, a: Actor) {
        let t = &self.tasks[a as usize];
        match t.short {
            Some(_) if t.late => self.rt.ready.push_back(a),
            Some(_) => _ = self.short_ended(a),
            None => self.rt.wake(a, crate::executor::Sleep::Cpu),
        }
    }
    /// Ends the short call of a task. Returns false if the task has no short call.
    #[inline]
    pub(crate) fn short_ended(&mut self, a: Actor) -> bool {
        let Some(t) = self.tasks.get_mut(a as usize) else {
            return false;
        };
        // The fields are read separately, because `take` would copy them as one piece, which
        // stalls.
        let Some(ret) = t.short else {
            return false;
        };
        t.short = None;
        t.idle = true;
        self.stats.calls += 1;
        self.ended.push((TaskId(a), ret));
        true
    }

    /// Opens a file (open(2)) that exists and needs no change, or fails if the file does not exist.
    // Inlined: otherwise the result passes through memory, and the wait for it takes a third of the
    // time of `short_whole`.
    #[inline(always)]
    fn open_fast(&mut self, a: Actor, path: &str, flags: OpenFlags) -> Option<Ret> {
        if self.fs.epoch != 0 {
            return None;
        }
        let walk = self.fs.walk_on(a, path).ok()?;
        let ret = match walk.ino {
            None if flags.contains(OpenFlags::CREATE) => return None,
            None => Err(Errno::ENOENT),
            Some(ino) => {
                let i = &self.fs.inodes[ino as usize];
                if i.kind != Kind::File || flags.intersects(OpenFlags::TRUNC | OpenFlags::EXCL) {
                    return None;
                }
                Ok(u64::from(self.file_new(ino, flags)))
            }
        };
        let cost = self.cfg.constants.lookup_ns * u64::from(walk.steps.max(1));
        self.spend(a, cost);
        Some(ret)
    }
    /// Closes a file (close(2)) that still has a name and needs no writes.
    fn close_fast(&mut self, fd: u32) -> Option<Ret> {
        let f = *self.files.get(fd as usize).filter(|f| f.ino != NIL)?;
        let i = &mut self.fs.inodes[f.ino as usize];
        let gone = i.opens == 1 && i.links == 0;
        if i.kind == Kind::Device || i.flush_on_close || gone {
            return None;
        }
        self.fd_free(fd);
        self.file_closed(&f);
        Some(Ok(0))
    }
}
