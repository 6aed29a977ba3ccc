//! Many I/Os at a time through io_uring.

use super::{Aligned, Failed, bytes, now};
use crate::stop::Stop as Asked;
use crate::uring::Uring;
use rustix::io_uring::{IoringFsyncFlags, IoringOp, io_uring_ptr, io_uring_sqe};
use seekwell_calibrate::{Io, Timed, What};
use seekwell_core::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Entries: as many as any depth that is probed.
const ENTRIES: u32 = 256;

/// A ring and memory for its reads.
pub(super) struct Ring {
    ring: Uring,
    /// One for each I/O outstanding.
    buffers: Vec<Aligned>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ring of {} buffers", self.buffers.len())
    }
}

impl Ring {
    /// What the kernel says if it has no io_uring or does not allow it.
    pub fn new() -> Result<Ring, Errno> {
        Ok(Ring {
            ring: Uring::new(ENTRIES)?,
            buffers: (0..ENTRIES).map(|_| Aligned::default()).collect(),
        })
    }

    /// Keeps `depth` outstanding until all are done. However it ends, nothing is left outstanding:
    /// the kernel writes into the buffers until then, so they and `contents` stay as they are.
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
        // Slots of buffers that are free, and the slot of each I/O.
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
                let mut entry = entry(file, &ios[next], own, &mut self.buffers[s]);
                entry.user_data.u64_ = next as u64;
                out[next].sent = now();
                if !self.ring.push(entry) {
                    free.push(s);
                    break;
                }
                slot[next] = s;
                next += 1;
                outstanding += 1;
            }
            if let Err(e) = self.ring.enter(u32::from(outstanding > 0)) {
                let e = io::Error::from_raw_os_error(e.0);
                // Interrupted, or the kernel is short of something just now.
                if !matches!(e.raw_os_error(), Some(4 | 11 | 12 | 16)) {
                    failed = failed.or(Some(Failed::Io(next.saturating_sub(1), e)));
                    refused += 1;
                }
                if refused > 100 {
                    // The ring takes no calls any more. What the kernel may still write to must
                    // not be used again: it is given up.
                    std::mem::forget(std::mem::take(&mut self.buffers));
                    contents.iter_mut().for_each(|b| std::mem::forget(b.take()));
                    break;
                }
            }
            while let Some((data, result)) = self.ring.pop() {
                let i = data as usize;
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

/// The buffer named in it is the slot's or the I/O's own; neither is used again before its
/// completion was seen, and a Vec's memory stays where it is.
fn entry(
    file: &File,
    io: &Io,
    contents: Option<&mut Aligned>,
    buffer: &mut Aligned,
) -> io_uring_sqe {
    let mut e = io_uring_sqe {
        fd: file.as_raw_fd(),
        ..io_uring_sqe::default()
    };
    let room = match (io.what, contents) {
        (What::Write, Some(b)) => {
            e.opcode = IoringOp::Write;
            b.room(bytes(io))
        }
        (What::Read, _) => {
            e.opcode = IoringOp::Read;
            buffer.room(bytes(io))
        }
        // A write without contents is never sent: `contents` reads one for each.
        (What::Flush | What::Write, _) => {
            e.opcode = IoringOp::Fsync;
            e.op_flags.fsync_flags = IoringFsyncFlags::DATASYNC;
            return e;
        }
    };
    e.addr_or_splice_off_in.addr = io_uring_ptr::new(room.as_mut_ptr().cast());
    e.len.len = bytes(io) as u32;
    e.off_or_addr2.off = io.lba * 512;
    e
}
