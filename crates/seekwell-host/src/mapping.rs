//! Mapped ranges of files.
//!
//! `madvise` (MADV_POPULATE_*, Linux 5.14 and later) touches the pages. It causes the same faults
//! as a load or store, but returns an error on a full disk or a truncated file. A store would end
//! the program with SIGBUS and leave its files behind.

use crate::files::{OpenFile, raw};
use rustix::fs::OFlags;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags};
use seekwell_core::Errno;
use seekwell_workload::Access;
use std::ffi::c_void;

const PAGE: u64 = 4096;

/// A mapping; unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    start: *mut c_void,
    len: u64,
}

// SAFETY: the memory belongs to no thread; a file's range is accessed by system calls, which any
// thread may make at any time.
#[expect(unsafe_code, reason = "a raw address is not Send by itself")]
unsafe impl Send for Mapping {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "a raw address is not Sync by itself")]
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a range, shared; writable if the file was opened for writing.
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
    /// Address and length of the pages that hold a range.
    fn pages(&self, off: u64, len: u64) -> Result<(*mut c_void, usize), Errno> {
        let end = off.checked_add(len).ok_or(Errno::EINVAL)?;
        if end > self.len {
            return Err(Errno::EINVAL);
        }
        let first = off / PAGE * PAGE;
        let bytes = (end - first).next_multiple_of(PAGE) as usize;
        Ok((self.start.wrapping_byte_add(first as usize), bytes))
    }
    /// Faults in every page of a range, in order.
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
        // SAFETY: the range lies in this mapping; populating changes no contents.
        let r = unsafe { rustix::mm::madvise(start, bytes, advice) };
        r.map_err(raw)
    }
    /// msync with MS_SYNC.
    pub fn sync(&self, off: u64, len: u64) -> Result<(), Errno> {
        let (start, bytes) = self.pages(off, len)?;
        #[expect(unsafe_code, reason = "msync takes an address")]
        // SAFETY: the range lies in this mapping.
        let r = unsafe { rustix::mm::msync(start, bytes, MsyncFlags::SYNC) };
        r.map_err(raw)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "munmap changes the address space")]
        // SAFETY: this object owns the whole mapping, and nothing else holds its address.
        let r = unsafe { rustix::mm::munmap(self.start, self.len as usize) };
        debug_assert!(r.is_ok(), "a mapping of our own");
    }
}
