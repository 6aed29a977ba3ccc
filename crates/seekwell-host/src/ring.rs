//! Runs many operations at a time. Each [`seekwell_workload::Aio`] is an io_uring.
//!
//! Every task of a run may use a ring by its handle. One task can submit while another task reaps
//! completions, because no lock that both need is held during a system call.
//!
//! The slots of the ring own the buffers and files of outstanding operations. When a ring is
//! dropped, it first waits for these operations, so that the kernel never writes to freed memory.

use crate::buffer::{Aligned, Noise};
use crate::files::OpenFile;
use crate::stop::NOTICE;
use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use seekwell_core::Errno;
use seekwell_workload::{AioDone, AioOp, AioRequest, Moved};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum queue depth. The interface of scripts has the same limit.
pub const DEEPEST: u32 = 4096;

#[derive(Debug, Default)]
struct Slot {
    buffer: Aligned,
    /// The file stays open until the kernel has finished the operation.
    file: Option<Arc<OpenFile>>,
    tag: u64,
    op: Option<AioOp>,
    len: u32,
}

impl Slot {
    /// Stores a request in the slot and returns its queue entry.
    fn fill(&mut self, r: &AioRequest, file: &Arc<OpenFile>, noise: &mut Noise) -> squeue::Entry {
        let len = r.len as usize;
        let fd = Fd(file.as_raw_fd());
        self.file = Some(Arc::clone(file));
        (self.tag, self.op, self.len) = (r.tag, Some(r.op), r.len);
        match r.op {
            AioOp::Read => opcode::Read::new(fd, self.buffer.room(len).as_mut_ptr(), r.len)
                .offset(r.off)
                .build(),
            AioOp::Write => {
                let room = self.buffer.room(len);
                room.copy_from_slice(noise.take(len));
                opcode::Write::new(fd, room.as_ptr(), r.len)
                    .offset(r.off)
                    .build()
            }
            AioOp::Fsync => {
                file.syncing();
                opcode::Fsync::new(fd).build()
            }
            AioOp::Fdatasync => {
                file.syncing();
                opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build()
            }
        }
    }
}

/// The slots, shared by submitting and reaping tasks. Their lock is held only for memory accesses.
struct Slots {
    all: Vec<Slot>,
    free: Vec<u32>,
    outstanding: usize,
    moved: Moved,
}

/// An io_uring that tasks share.
pub struct Ring {
    ring: IoUring,
    /// Lock of the submitting task, because the kernel accepts only one submission at a time.
    submitting: Mutex<Noise>,
    slots: Mutex<Slots>,
}

impl Ring {
    /// Creates a ring for at most `depth` operations. Returns EINVAL if `depth` is not in 1..=4096.
    /// Returns the kernel's error (ENOSYS, EPERM) if it does not support or does not allow
    /// io_uring.
    pub fn new(depth: u32) -> Result<Self, Errno> {
        if !(1..=DEEPEST).contains(&depth) {
            return Err(Errno::EINVAL);
        }
        Ok(Ring {
            ring: IoUring::new(depth).map_err(crate::errno)?,
            submitting: Mutex::default(),
            slots: Mutex::new(Slots {
                all: (0..depth).map(|_| Slot::default()).collect(),
                free: (0..depth).rev().collect(),
                outstanding: 0,
                moved: Moved::default(),
            }),
        })
    }
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits all requests in one call. If they do not fit, returns EAGAIN and submits none.
    pub fn submit(&self, what: &[(AioRequest, Arc<OpenFile>)]) -> Result<(), Errno> {
        let writes = what.iter().filter(|(r, _)| r.op == AioOp::Write);
        writes.for_each(|(_, file)| file.wrote());
        let mut noise = self.submitting.lock();
        let noise = noise.as_mut().unwrap_or_else(|e| e.get_mut());
        #[expect(
            unsafe_code,
            reason = "tasks share the ring, and each half has its lock"
        )]
        // SAFETY: only the holder of `submitting` uses the submission queue.
        let mut queue = unsafe { self.ring.submission_shared() };
        let mut slots = self.slots();
        if what.len() > slots.free.len() {
            return Err(Errno::EAGAIN);
        }
        for (r, file) in what {
            // The check above guarantees a slot for every request.
            let Some(slot) = slots.free.pop() else { break };
            let entry = slots.all[slot as usize].fill(r, file, noise);
            #[expect(unsafe_code, reason = "the kernel will use the entry's buffer")]
            // SAFETY: the slot owns the buffer and the file. It is neither reused nor dropped until
            // the completion of the operation has been seen. The memory of a Vec does not move when
            // the Ring moves.
            let pushed = unsafe { queue.push(&entry.user_data(u64::from(slot))) };
            // The ring has at least as many entries as there are slots.
            if pushed.is_err() {
                return Err(Errno::EAGAIN);
            }
            slots.outstanding += 1;
        }
        drop(slots);
        loop {
            queue.sync();
            if queue.is_empty() {
                return Ok(());
            }
            self.enter(0)?;
        }
    }
    /// Submits the queued entries to the kernel and waits for `min` completions. The wait is short,
    /// because another task may reap the completions that this task waits for.
    fn enter(&self, min: usize) -> Result<(), Errno> {
        let submitter = self.ring.submitter();
        let moment = Timespec::new().nsec(NOTICE.as_nanos() as u32);
        let entered = match self.ring.params().is_feature_ext_arg() && min > 0 {
            true => submitter.submit_with_args(min, &SubmitArgs::new().timespec(&moment)),
            // Before Linux 5.11, only a completion ends the wait.
            false => submitter.submit_and_wait(min),
        };
        match entered {
            // The wait is over, or a signal has arrived. The signal handlers of Seekwell only set a
            // flag.
            Err(e) if matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
            r => r.map(|_| ()).map_err(crate::errno),
        }
    }

    /// Waits for at least `min` completions, or for all outstanding operations if there are fewer.
    /// Appends all available completions to `out`.
    pub fn reap(&self, min: usize, out: &mut Vec<AioDone>) -> Result<(), Errno> {
        let mut got = 0;
        loop {
            let mut slots = self.slots();
            let (closing, n) = self.take(&mut slots, out);
            let outstanding = slots.outstanding;
            drop(slots);
            // Files that the script has already closed are closed here.
            drop(closing);
            got += n;
            let want = min.saturating_sub(got).min(outstanding);
            if want == 0 {
                return Ok(());
            }
            self.enter(want)?;
        }
    }

    /// Returns and resets the counts of data moved since the last call.
    pub fn moved(&self) -> Moved {
        std::mem::take(&mut self.slots().moved)
    }

    /// Takes the available completions. Returns the files that they used, and their number.
    fn take(&self, slots: &mut Slots, out: &mut Vec<AioDone>) -> (Vec<Arc<OpenFile>>, usize) {
        #[expect(
            unsafe_code,
            reason = "tasks share the ring, and each half has its lock"
        )]
        // SAFETY: only the holder of `slots` uses the completion queue.
        let completed = unsafe { self.ring.completion_shared() };
        let (mut files, mut n) = (Vec::new(), 0);
        for done in completed {
            let (slot, code) = (done.user_data() as u32, done.result());
            let s = &mut slots.all[slot as usize];
            let result = match u32::try_from(code) {
                Err(_) => Err(Errno(-i64::from(code))),
                // A short write counts as an error. Its usual reason is a full disk.
                Ok(n) if s.op == Some(AioOp::Write) && n < s.len => Err(Errno::ENOSPC),
                Ok(n) => Ok(n),
            };
            let moved = &mut slots.moved;
            match (s.op, result) {
                (Some(AioOp::Read), Ok(n)) => {
                    moved.reads += 1;
                    moved.read_bytes += u64::from(n);
                }
                (Some(AioOp::Write), Ok(n)) => {
                    moved.writes += 1;
                    moved.written_bytes += u64::from(n);
                }
                _ => {}
            }
            if let Some(file) = s.file.take() {
                files.push(file);
            }
            out.push(AioDone { tag: s.tag, result });
            slots.free.push(slot);
            slots.outstanding -= 1;
            n += 1;
        }
        (files, n)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut rest = Vec::new();
        let outstanding = self.slots().outstanding;
        if self.reap(outstanding, &mut rest).is_err() {
            // The kernel may still write to the buffers. Leaking the buffers is safer than freeing
            // them.
            std::mem::forget(std::mem::take(&mut self.slots().all));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Scratch;
    use rustix::fs::{CWD, FileType, Mode, OFlags};
    use seekwell_core::OpenFlags;
    use seekwell_workload::Fd as Number;
    use std::os::fd::AsFd;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn task_submits_while_another_task_waits_for_completions() {
        let ring = match Ring::new(8) {
            Err(Errno::EPERM | Errno(38)) => {
                println!("skipped: no io_uring here");
                return;
            }
            r => Arc::new(r.expect("a ring")),
        };
        let t = Scratch::new(&std::env::temp_dir(), "ring").expect("a directory");
        let fifo = t.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::from(0o600), 0).expect("made");
        let how = OFlags::DIRECTORY | OFlags::RDONLY;
        let dir = rustix::fs::open(t.path(), how, Mode::empty()).expect("opened");
        let open = |name, how| {
            let file = crate::files::open(dir.as_fd(), name, how).expect("opened");
            Arc::new(file)
        };
        let (never, plain) = (
            open("fifo", OpenFlags::empty()),
            open("x", OpenFlags::CREATE),
        );
        let read = |tag| AioRequest {
            fd: Number(0),
            op: AioOp::Read,
            off: 0,
            len: 1,
            tag,
        };
        // This read completes when data are written to the other end of the pipe.
        ring.submit(&[(read(0), Arc::clone(&never))])
            .expect("taken");
        let (told, heard) = mpsc::channel();
        let reaper = std::thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                let mut out = Vec::new();
                told.send(()).expect("heard");
                ring.reap(usize::MAX, &mut out).map(|()| out.len())
            }
        });
        heard.recv().expect("it begins");
        let free = (0..100).filter(|_| {
            std::thread::sleep(Duration::from_millis(1));
            ring.slots.try_lock().is_ok() && ring.submitting.try_lock().is_ok()
        });
        let free = free.count();
        ring.submit(&[(read(1), Arc::clone(&plain))])
            .expect("taken");
        rustix::io::write(&never, b"x").expect("written");
        let reaped = reaper.join().expect("no panic").expect("reaped");
        assert!((1..=2).contains(&reaped), "{reaped}");
        // The reaping task holds the locks briefly after each wait.
        assert!(free > 50, "free at {free} of 100 looks");
    }
}
