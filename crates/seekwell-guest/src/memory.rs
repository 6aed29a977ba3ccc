//! Memory that is shared with the guest: its main memory and the page of the clock.

use crate::error::GuestError;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::os::fd::AsFd;
use std::ptr;
use std::sync::atomic::{AtomicU16, Ordering, fence};

/// A shared mapping of a file. Every access checks its bounds, because the guest chooses addresses.
pub struct Mapping {
    base: *mut u8,
    len: usize,
}

// The mapping belongs to this value, and the guest is another process.
#[expect(unsafe_code, reason = "the pointer is owned, like that of a Vec")]
// SAFETY: the mapping is not tied to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of a file for reading and writing.
    pub fn new(file: impl AsFd, len: usize) -> Result<Self, GuestError> {
        if len == 0 {
            return Err(GuestError::disk("a memory region of 0 bytes"));
        }
        #[expect(unsafe_code, reason = "no crate in use wraps a shared mapping")]
        // SAFETY: the kernel chooses the address, so no other object is affected.
        let base = unsafe {
            mmap(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                0,
            )
        }
        .map_err(GuestError::host("map the guest's memory"))?;
        Ok(Mapping {
            base: base.cast(),
            len,
        })
    }

    /// Returns the address of `n` bytes at `offset`, if they are inside.
    fn at(&self, offset: u64, n: usize) -> Result<*mut u8, GuestError> {
        let end = usize::try_from(offset).ok().and_then(|o| o.checked_add(n));
        if end.is_none_or(|e| e > self.len) {
            return Err(GuestError::disk(format!(
                "address {offset:#x} with {n} bytes is outside its {} bytes of memory",
                self.len
            )));
        }
        #[expect(unsafe_code, reason = "pointer arithmetic inside the mapping")]
        // SAFETY: the sum is at most the length of the mapping.
        Ok(unsafe { self.base.add(offset as usize) })
    }

    /// Checks that `n` bytes at `offset` are inside.
    pub fn check(&self, offset: u64, n: u32) -> Result<(), GuestError> {
        self.at(offset, n as usize).map(|_| ())
    }

    /// Copies bytes out of the memory.
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<(), GuestError> {
        let from = self.at(offset, to.len())?;
        #[expect(unsafe_code, reason = "another process may write the source meanwhile")]
        // SAFETY: both ranges are valid and do not overlap. A concurrent write changes only bytes.
        unsafe {
            ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len())
        };
        Ok(())
    }

    /// Copies bytes into the memory.
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), GuestError> {
        let to = self.at(offset, from.len())?;
        #[expect(unsafe_code, reason = "another process may read the target meanwhile")]
        // SAFETY: both ranges are valid and do not overlap.
        unsafe {
            ptr::copy_nonoverlapping(from.as_ptr(), to, from.len())
        };
        Ok(())
    }

    /// Returns a 16-bit number.
    pub fn u16(&self, offset: u64) -> Result<u16, GuestError> {
        let mut b = [0; 2];
        self.read(offset, &mut b)?;
        Ok(u16::from_ne_bytes(b))
    }
    /// Returns a 32-bit number.
    pub fn u32(&self, offset: u64) -> Result<u32, GuestError> {
        let mut b = [0; 4];
        self.read(offset, &mut b)?;
        Ok(u32::from_ne_bytes(b))
    }
    /// Returns a 64-bit number.
    pub fn u64(&self, offset: u64) -> Result<u64, GuestError> {
        let mut b = [0; 8];
        self.read(offset, &mut b)?;
        Ok(u64::from_ne_bytes(b))
    }

    /// Stores the index of a ring after everything that was written before.
    pub fn publish_u16(&self, offset: u64, value: u16) -> Result<(), GuestError> {
        let at = self.at(offset, 2)?;
        if !at.addr().is_multiple_of(2) {
            return Err(GuestError::disk(format!(
                "ring index at odd address {offset:#x}"
            )));
        }
        #[expect(unsafe_code, reason = "an atomic store into shared memory")]
        // SAFETY: the address is inside, aligned, and used only as a 16-bit number.
        unsafe { AtomicU16::from_ptr(at.cast()) }.store(value, Ordering::Release);
        Ok(())
    }

    /// Orders the following reads after the preceding ones.
    pub fn acquire() {
        fence(Ordering::SeqCst);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the counterpart of the mapping")]
        // SAFETY: no reference into the mapping exists outside a call.
        let _ = unsafe { munmap(self.base.cast::<c_void>(), self.len) };
    }
}
