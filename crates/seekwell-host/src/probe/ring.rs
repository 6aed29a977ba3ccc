//! Sends many I/Os at a time by io_uring.

use super::{Aligned, Failed, bytes, now};
use crate::stop::Stop as Asked;
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, opcode, squeue};
use seekwell_calibrate::{Io, Timed, What};
use seekwell_core::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Number of entries of the ring, which is the maximum queue depth of a probe.
const ENTRIES: u32 = 256;

/// An io_uring with memory for its reads.
pub(super) struct Ring {
    ring: IoUring,
    /// One buffer for each outstanding I/O.
    buffers: Vec<Aligned>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ring of {} buffers", self.buffers.len())
    }
}

impl Ring {
    /// Creates a ring. Returns an error if the kernel does not support or does not allow io_uring.
    pub fn new() -> Result<Ring, Errno> {
        Ok(Ring {
            ring: IoUring::new(ENTRIES).map_err(crate::errno)?,
            buffers: (0..ENTRIES).map(|_| Aligned::default()).collect(),
        })
    }

    /// Keeps `depth` I/Os outstanding until all have completed. When it returns, no I/O is
    /// outstanding, even after an error. Until then the kernel may write to the buffers, so the
    /// buffers and `contents` must not be moved.
    pub fn run(
        &mut self,
        file: &File,
        ios: &[Io],
        contents: &mut [Option<Aligned>],
        depth: usize,
        stop: &Asked,
        out: &mut Vec<Timed>,
    ) -> Result<(), Failed> {
        out.resize(ios.len(), Timed::default());
        // Indexes of free buffers, and the index of the buffer of each I/O.
        let mut free: Vec<usize> = (0..depth.min(ENTRIES as usize)).rev().collect();
        let mut slot = vec![0usize; ios.len()];
        let (mut next, mut outstanding) = (0, 0);
        let (mut failed, mut refused) = (None, 0);
        while outstanding > 0 || (next < ios.len() && failed.is_none()) {
            if failed.is_none() && stop.is_raised() {
                failed = Some(Failed::Stopped);
            }
            while failed.is_none() && next < ios.len() {
                let Some(s) = free.pop() else { break };
                let own = contents.get_mut(next).and_then(Option::as_mut);
                let entry = entry(file, &ios[next], own, &mut self.buffers[s]);
                out[next].sent = now();
                #[expect(unsafe_code, reason = "the kernel will use the entry's buffer")]
                // SAFETY: the buffer belongs to `self.buffers` or to `contents`. It is not reused,
                // moved or freed until the completion of the I/O has been seen. If there is no
                // completion, the buffer is leaked.
                let pushed = unsafe { self.ring.submission().push(&entry.user_data(next as u64)) };
                if pushed.is_err() {
                    free.push(s);
                    break;
                }
                slot[next] = s;
                next += 1;
                outstanding += 1;
            }
            if let Err(e) = self.ring.submit_and_wait(usize::from(outstanding > 0)) {
                // The call was interrupted, or the kernel temporarily lacks a resource.
                if !matches!(e.raw_os_error(), Some(4 | 11 | 12 | 16)) {
                    failed = failed.or(Some(Failed::Io(next.saturating_sub(1), e)));
                    refused += 1;
                }
                if refused > 100 {
                    // The ring accepts no more calls. The kernel may still write to the buffers, so
                    // they must not be reused. Therefore they are leaked.
                    std::mem::forget(std::mem::take(&mut self.buffers));
                    contents.iter_mut().for_each(|b| std::mem::forget(b.take()));
                    break;
                }
            }
            for completed in self.ring.completion() {
                let (i, result) = (completed.user_data() as usize, completed.result());
                out[i].done = now();
                outstanding -= 1;
                free.push(slot[i]);
                let want = match ios[i].what {
                    What::Flush => 0,
                    _ => bytes(&ios[i]) as i32,
                };
                if result < 0 {
                    let e = io::Error::from_raw_os_error(-result);
                    failed = failed.or(Some(Failed::Io(i, e)));
                } else if result != want {
                    let e = io::Error::other(format!("{result} of {want} bytes moved"));
                    failed = failed.or(Some(Failed::Io(i, e)));
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Returns the ring entry of an I/O. A read uses the given buffer, and a write has its own.
fn entry(
    file: &File,
    io: &Io,
    contents: Option<&mut Aligned>,
    buffer: &mut Aligned,
) -> squeue::Entry {
    let fd = Fd(file.as_raw_fd());
    let (len, off) = (bytes(io), io.lba * 512);
    match (io.what, contents) {
        (What::Write, Some(b)) => opcode::Write::new(fd, b.room(len).as_ptr(), len as u32)
            .offset(off)
            .build(),
        (What::Read, _) => opcode::Read::new(fd, buffer.room(len).as_mut_ptr(), len as u32)
            .offset(off)
            .build(),
        // A write without contents is never sent, because `contents` has data for each write.
        (What::Flush | What::Write, _) => {
            opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build()
        }
    }
}
