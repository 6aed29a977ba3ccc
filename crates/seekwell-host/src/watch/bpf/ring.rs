//! Reads a BPF ring buffer. It consists of two counters and the data, in memory that is shared with
//! the kernel.
//!
//! The kernel appends records and increases its counter. A length word precedes each record. The
//! top bit of this word is set while the record is being written. The reader increases its own
//! counter. The data are mapped twice, one copy directly after the other. So a record that wraps
//! around is contiguous in memory.

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER: u64 = 8;

/// A mapped part of the buffer. Dropping it unmaps the memory.
struct Pages {
    start: *mut c_void,
    bytes: usize,
}

impl Pages {
    fn map(fd: &OwnedFd, bytes: usize, from: u64, how: ProtFlags) -> io::Result<Pages> {
        #[expect(unsafe_code, reason = "mmap changes the address space")]
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, how, MapFlags::SHARED, fd, from) }?;
        Ok(Pages { start, bytes })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "munmap changes the address space")]
        // SAFETY: this object owns the whole mapping, and no other object has its address.
        let r = unsafe { munmap(self.start, self.bytes) };
        debug_assert!(r.is_ok(), "a mapping of our own");
    }
}

/// Returns the page size of this machine, bytes.
fn page_bytes() -> usize {
    #[expect(unsafe_code, reason = "no safe wrapper is in the tree")]
    // SAFETY: the call gets and returns a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// A ring buffer that is mapped into memory.
pub struct Ring {
    ours: Pages,
    theirs: Pages,
    page: usize,
    bytes: u64,
}

// SAFETY: the mappings do not belong to a thread, and only their owner reads them.
#[expect(unsafe_code, reason = "a raw address is not Send by itself")]
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring buffer. Its size in bytes must be a power of two.
    pub fn map(fd: &OwnedFd, bytes: u32) -> io::Result<Ring> {
        let page = page_bytes();
        let data = 2 * bytes as usize;
        let both = ProtFlags::READ | ProtFlags::WRITE;
        Ok(Ring {
            ours: Pages::map(fd, page, 0, both)?,
            theirs: Pages::map(fd, page + data, page as u64, ProtFlags::READ)?,
            page,
            bytes: u64::from(bytes),
        })
    }

    /// Calls `each` for every complete record, in order.
    pub fn take(&mut self, mut each: impl FnMut(&[u8])) {
        #[expect(unsafe_code, reason = "counters and data are the kernel's, too")]
        // SAFETY: each mapping begins with a page that contains one aligned 64-bit counter. The
        // kernel reads and writes the counter atomically. Both mappings live as long as `self`.
        let (ours, theirs) = unsafe {
            (
                AtomicU64::from_ptr(self.ours.start.cast()),
                AtomicU64::from_ptr(self.theirs.start.cast()),
            )
        };
        let data = self.theirs.start.wrapping_byte_add(self.page);
        let end = theirs.load(Ordering::Acquire);
        let mut at = ours.load(Ordering::Relaxed);
        while at < end {
            let record = data.wrapping_byte_add((at % self.bytes) as usize);
            #[expect(unsafe_code, reason = "counters and data are the kernel's, too")]
            // SAFETY: there are records between the two counters. Each record begins with a length
            // word, aligned to eight bytes, which the kernel writes atomically.
            let length = unsafe { AtomicU32::from_ptr(record.cast()) }.load(Ordering::Acquire);
            if length & BUSY != 0 {
                break;
            }
            let bytes = u64::from(length & !(BUSY | DISCARDED));
            if bytes + HEADER > self.bytes {
                // This cannot happen. The check prevents a read beyond the data.
                break;
            }
            if length & DISCARDED == 0 {
                let from = record.wrapping_byte_add(HEADER as usize).cast::<u8>();
                #[expect(unsafe_code, reason = "counters and data are the kernel's, too")]
                // SAFETY: a record that is not busy is not written any more. Its memory is not
                // reused until the reader's counter has passed it. The record is contiguous in
                // memory, because it is not longer than the data, and the data are mapped twice.
                let slice = unsafe { std::slice::from_raw_parts(from, bytes as usize) };
                each(slice);
            }
            at += (bytes + HEADER).next_multiple_of(8);
            ours.store(at, Ordering::Release);
        }
    }
}
