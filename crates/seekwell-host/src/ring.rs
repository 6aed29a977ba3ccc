//! Many operations at a time: an io_uring per [`seekwell_workload::Aio`].
//!
//! Buffers and files of what is under way belong to the ring's slots, and a ring that is dropped
//! waits first: the kernel never writes into memory that was given back.

use crate::buffer::{Aligned, Noise};
use crate::files::OpenFile;
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, opcode};
use seekwell_core::Errno;
use seekwell_workload::{AioDone, AioOp, AioRequest, Moved};
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Greatest depth, as the interface says.
pub const DEEPEST: u32 = 4096;

#[derive(Debug, Default)]
struct Slot {
    buffer: Aligned,
    /// Kept open until the kernel is done with it.
    file: Option<Arc<OpenFile>>,
    tag: u64,
    op: Option<AioOp>,
    len: u32,
}

/// One ring.
pub struct Ring {
    ring: IoUring,
    slots: Vec<Slot>,
    free: Vec<u32>,
    noise: Noise,
    outstanding: usize,
    moved: Moved,
}

impl Ring {
    /// For at most `depth` operations. EINVAL outside 1..=4096; what the kernel says if it has no
    /// io_uring or does not allow it (EPERM, ENOSYS).
    pub fn new(depth: u32) -> Result<Self, Errno> {
        if !(1..=DEEPEST).contains(&depth) {
            return Err(Errno::EINVAL);
        }
        Ok(Ring {
            ring: IoUring::new(depth).map_err(crate::errno)?,
            slots: (0..depth).map(|_| Slot::default()).collect(),
            free: (0..depth).rev().collect(),
            noise: Noise::default(),
            outstanding: 0,
            moved: Moved::default(),
        })
    }

    /// Submits all of them in one call. EAGAIN, and none submitted, if they do not fit.
    pub fn submit(&mut self, what: &[(AioRequest, Arc<OpenFile>)]) -> Result<(), Errno> {
        if what.len() > self.free.len() {
            return Err(Errno::EAGAIN);
        }
        for (r, file) in what {
            // Checked above: there is a slot for each.
            let Some(slot) = self.free.pop() else { break };
            let s = &mut self.slots[slot as usize];
            let len = r.len as usize;
            let fd = Fd(file.as_raw_fd());
            let entry = match r.op {
                AioOp::Read => opcode::Read::new(fd, s.buffer.room(len).as_mut_ptr(), r.len)
                    .offset(r.off)
                    .build(),
                AioOp::Write => {
                    let room = s.buffer.room(len);
                    room.copy_from_slice(self.noise.take(len));
                    opcode::Write::new(fd, room.as_ptr(), r.len)
                        .offset(r.off)
                        .build()
                }
                AioOp::Fsync => opcode::Fsync::new(fd).build(),
                AioOp::Fdatasync => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build(),
            };
            s.file = Some(Arc::clone(file));
            s.tag = r.tag;
            (s.op, s.len) = (Some(r.op), r.len);
            #[expect(unsafe_code, reason = "the kernel will use the entry's buffer")]
            // SAFETY: the buffer and the file are the slot's, which is neither used again nor
            // dropped before its completion was seen; a Vec's memory stays when the Ring moves.
            let pushed = unsafe {
                self.ring
                    .submission()
                    .push(&entry.user_data(u64::from(slot)))
            };
            // The ring has at least as many entries as there are slots.
            if pushed.is_err() {
                return Err(Errno::EAGAIN);
            }
            self.outstanding += 1;
        }
        while !self.ring.submission().is_empty() {
            self.enter(0)?;
        }
        Ok(())
    }
    /// Our own signals only set a flag: again after EINTR.
    fn enter(&mut self, min: usize) -> Result<(), Errno> {
        crate::files::retry(|| {
            let entered = self.ring.submit_and_wait(min);
            entered.map(|_| ()).map_err(crate::errno)
        })
    }

    /// Waits for at least `min` completions, or all that are outstanding; appends all there are.
    pub fn reap(&mut self, min: usize, out: &mut Vec<AioDone>) -> Result<(), Errno> {
        let want = min.min(self.outstanding);
        let mut got = self.take(out);
        while got < want {
            self.enter(want - got)?;
            got += self.take(out);
        }
        Ok(())
    }

    /// What completed since the last time this was asked.
    pub fn moved(&mut self) -> Moved {
        std::mem::take(&mut self.moved)
    }

    fn take(&mut self, out: &mut Vec<AioDone>) -> usize {
        let mut n = 0;
        for done in self.ring.completion() {
            let (slot, code) = (done.user_data() as u32, done.result());
            let s = &mut self.slots[slot as usize];
            s.file = None;
            let result = match u32::try_from(code) {
                Err(_) => Err(Errno(-i64::from(code))),
                // A write is all or nothing; the usual reason for less is a full disk.
                Ok(n) if s.op == Some(AioOp::Write) && n < s.len => Err(Errno::ENOSPC),
                Ok(n) => Ok(n),
            };
            match (s.op, result) {
                (Some(AioOp::Read), Ok(n)) => {
                    self.moved.reads += 1;
                    self.moved.read_bytes += u64::from(n);
                }
                (Some(AioOp::Write), Ok(n)) => {
                    self.moved.writes += 1;
                    self.moved.written_bytes += u64::from(n);
                }
                _ => {}
            }
            out.push(AioDone { tag: s.tag, result });
            self.free.push(slot);
            self.outstanding -= 1;
            n += 1;
        }
        n
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut rest = Vec::new();
        while self.outstanding > 0 {
            if self.reap(self.outstanding, &mut rest).is_err() {
                // The kernel still owns the buffers: better lost than given away.
                std::mem::forget(std::mem::take(&mut self.slots));
                return;
            }
        }
    }
}
