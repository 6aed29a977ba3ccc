//! The reader of a BPF ring buffer: two counters and the data, shared with the kernel.
//!
//! The kernel appends at its counter. Each record follows a length word, whose top bit is set while
//! the record is being written. The reader advances its own counter. The data are mapped twice in a
//! row, so that a record that wraps around is contiguous.

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER: u64 = 8;

/// Part of a map's memory; unmapped when dropped.
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
        // SAFETY: this object owns the whole mapping, and nothing else holds its address.
        let r = unsafe { munmap(self.start, self.bytes) };
        debug_assert!(r.is_ok(), "a mapping of our own");
    }
}

/// Page size of this machine, bytes.
fn page_bytes() -> usize {
    #[expect(unsafe_code, reason = "no safe wrapper is in the tree")]
    // SAFETY: takes and gives a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// A mapped ring buffer.
pub struct Ring {
    ours: Pages,
    theirs: Pages,
    page: usize,
    bytes: u64,
}

// SAFETY: the mappings belong to no thread, and only the owner reads them.
#[expect(unsafe_code, reason = "a raw address is not Send by itself")]
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring buffer of this many bytes, a power of two.
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

    /// Passes every complete record to `each`, in order.
    pub fn take(&mut self, mut each: impl FnMut(&[u8])) {
        #[expect(unsafe_code, reason = "counters and data are the kernel's, too")]
        // SAFETY: each mapping begins with a page that holds one aligned 64-bit counter, which the
        // kernel reads and writes as atomics; both live as long as `self`.
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
            // SAFETY: between the two counters there are records. Each begins with a length word,
            // aligned to eight bytes, which the kernel writes atomically.
            let length = unsafe { AtomicU32::from_ptr(record.cast()) }.load(Ordering::Acquire);
            if length & BUSY != 0 {
                break;
            }
            let bytes = u64::from(length & !(BUSY | DISCARDED));
            if bytes + HEADER > self.bytes {
                // Cannot happen; stops rather than reading beyond the data.
                break;
            }
            if length & DISCARDED == 0 {
                let from = record.wrapping_byte_add(HEADER as usize).cast::<u8>();
                #[expect(unsafe_code, reason = "counters and data are the kernel's, too")]
                // SAFETY: a record that is not busy is not written any more, and its place is not
                // reused before the reader's counter has passed it. It is contiguous in the second
                // mapping, because it is no longer than the data, which are mapped twice.
                let slice = unsafe { std::slice::from_raw_parts(from, bytes as usize) };
                each(slice);
            }
            at += (bytes + HEADER).next_multiple_of(8);
            ours.store(at, Ordering::Release);
        }
    }
}
