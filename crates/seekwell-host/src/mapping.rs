//! Mapped ranges of files.
//!
//! The pages are accessed by madvise(2) with MADV_POPULATE_* (Linux 5.14 and later). This causes
//! the same page faults as a load or store, but returns an error if the disk is full or the file
//! was truncated. A store would end the program by SIGBUS, and the program could not remove its
//! files.

use crate::files::{OpenFile, raw};
use rustix::fs::OFlags;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags};
use seekwell_core::Errno;
use seekwell_workload::Access;
use std::ffi::c_void;

const PAGE: u64 = 4096;

/// A mapping of a file. Dropping it unmaps the range.
#[derive(Debug)]
pub struct Mapping {
    start: *mut c_void,
    len: u64,
}

// SAFETY: the memory does not belong to a thread. The range of the file is accessed only by system
// calls, which any thread may make at any time.
#[expect(unsafe_code, reason = "a raw address is not Send by itself")]
unsafe impl Send for Mapping {}
// SAFETY: the same as for `Send`.
#[expect(unsafe_code, reason = "a raw address is not Sync by itself")]
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a range of a file as shared. It is writable if the file was opened for writing.
    pub fn new(file: &OpenFile, off: u64, len: u64) -> Result<Self, Errno> {
        let how = rustix::fs::fcntl_getfl(file).map_err(raw)?;
        let prot = match how & OFlags::RWMODE {
            OFlags::RDONLY => ProtFlags::READ,
            _ => ProtFlags::READ | ProtFlags::WRITE,
        };
        let bytes = usize::try_from(len).map_err(|_| Errno::ENOMEM)?;
        #[expect(unsafe_code, reason = "mmap changes the address space")]
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                prot,
                MapFlags::SHARED,
                file,
                off,
            )
        };
        Ok(Mapping {
            start: start.map_err(raw)?,
            len,
        })
    }
    /// Returns the address and the length of the pages that contain a range.
    fn pages(&self, off: u64, len: u64) -> Result<(*mut c_void, usize), Errno> {
        let end = off.checked_add(len).ok_or(Errno::EINVAL)?;
        if end > self.len {
            return Err(Errno::EINVAL);
        }
        let first = off / PAGE * PAGE;
        let bytes = (end - first).next_multiple_of(PAGE) as usize;
        Ok((self.start.wrapping_byte_add(first as usize), bytes))
    }
    /// Causes a page fault on every page of a range, in order.
    pub fn touch(&self, off: u64, len: u64, how: Access) -> Result<(), Errno> {
        if len == 0 {
            return Ok(());
        }
        let (start, bytes) = self.pages(off, len)?;
        let advice = match how {
            Access::Read => Advice::LinuxPopulateRead,
            Access::Write => Advice::LinuxPopulateWrite,
        };
        #[expect(unsafe_code, reason = "madvise takes an address")]
        // SAFETY: the range is inside this mapping. Populating pages does not change their
        // contents.
        let r = unsafe { rustix::mm::madvise(start, bytes, advice) };
        r.map_err(raw)
    }
    /// Writes a range to the medium by msync(2) with MS_SYNC.
    pub fn sync(&self, off: u64, len: u64) -> Result<(), Errno> {
        let (start, bytes) = self.pages(off, len)?;
        #[expect(unsafe_code, reason = "msync takes an address")]
        // SAFETY: the range is inside this mapping.
        let r = unsafe { rustix::mm::msync(start, bytes, MsyncFlags::SYNC) };
        r.map_err(raw)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "munmap changes the address space")]
        // SAFETY: this object owns the whole mapping, and no other object has its address.
        let r = unsafe { rustix::mm::munmap(self.start, self.len as usize) };
        debug_assert!(r.is_ok(), "a mapping of our own");
    }
}
