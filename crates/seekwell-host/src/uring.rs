//! The rings of an io_uring: mapped memory shared with the kernel, and the two counters at each
//! end. What is submitted, and that its memory lives long enough, is [`crate::ring`]'s affair.

use crate::files::raw;
use crate::mapping::Mapping;
use rustix::io_uring::{
    IORING_OFF_CQ_RING, IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringEnterFlags, io_uring_enter,
    io_uring_params, io_uring_setup, io_uring_sqe,
};
use seekwell_core::Errno;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a completion entry: user data, result, flags.
const CQE: usize = 16;

/// Where the counters lie, as the kernel said.
struct Layout {
    sq_head: u32,
    sq_tail: u32,
    sq_array: u32,
    sq_entries: u32,
    cq_head: u32,
    cq_tail: u32,
    cq_cqes: u32,
    cq_entries: u32,
}

/// An io_uring.
pub struct Uring {
    fd: OwnedFd,
    sq: Mapping,
    cq: Mapping,
    entries: Mapping,
    p: Layout,
    /// Pushed and not yet told to the kernel.
    pending: u32,
}

impl Uring {
    /// With room for `depth` submissions, and twice as many completions.
    pub fn new(depth: u32) -> Result<Self, Errno> {
        let mut p = io_uring_params::default();
        #[expect(unsafe_code, reason = "a raw system call")]
        // SAFETY: no flags are set, so nothing in `p` refers to other memory or descriptors.
        let fd = unsafe { io_uring_setup(depth, &mut p) }.map_err(raw)?;
        let n = |entries: u32| u64::from(entries);
        let sq = n(p.sq_off.array) + n(p.sq_entries) * 4;
        let cq = n(p.cq_off.cqes) + n(p.cq_entries) * CQE as u64;
        let entries = n(p.sq_entries) * size_of::<io_uring_sqe>() as u64;
        Ok(Uring {
            sq: Mapping::of(&fd, IORING_OFF_SQ_RING, sq)?,
            cq: Mapping::of(&fd, IORING_OFF_CQ_RING, cq)?,
            entries: Mapping::of(&fd, IORING_OFF_SQES, entries)?,
            fd,
            p: Layout {
                sq_head: p.sq_off.head,
                sq_tail: p.sq_off.tail,
                sq_array: p.sq_off.array,
                sq_entries: p.sq_entries,
                cq_head: p.cq_off.head,
                cq_tail: p.cq_off.tail,
                cq_cqes: p.cq_off.cqes,
                cq_entries: p.cq_entries,
            },
            pending: 0,
        })
    }

    /// Puts an entry into the submission ring; false if it is full.
    ///
    /// The memory and the descriptor it names must stay until its completion was popped.
    pub fn push(&mut self, entry: io_uring_sqe) -> bool {
        let head = word(&self.sq, self.p.sq_head).load(Ordering::Acquire);
        let tail = word(&self.sq, self.p.sq_tail);
        let at = tail.load(Ordering::Relaxed);
        if at.wrapping_sub(head) >= self.p.sq_entries {
            return false;
        }
        let slot = at & (self.p.sq_entries - 1);
        let place = self.entries.at(slot as usize * size_of::<io_uring_sqe>());
        #[expect(unsafe_code, reason = "the ring is memory shared with the kernel")]
        // SAFETY: `slot` is below sq_entries, so the place lies in the mapping, aligned as the
        // kernel laid it out; the kernel reads it only after the tail below has moved past it.
        unsafe {
            place.cast::<io_uring_sqe>().write(entry);
        }
        word(&self.sq, self.p.sq_array + slot * 4).store(slot, Ordering::Relaxed);
        tail.store(at.wrapping_add(1), Ordering::Release);
        self.pending += 1;
        true
    }

    /// Submits what was pushed and waits for at least `min` completions; EINTR as it comes.
    pub fn enter(&mut self, min: u32) -> Result<(), Errno> {
        let flags = if min > 0 {
            IoringEnterFlags::GETEVENTS
        } else {
            IoringEnterFlags::empty()
        };
        #[expect(unsafe_code, reason = "a raw system call")]
        // SAFETY: what the pushed entries refer to lives on, by the rule of `push`.
        let r = unsafe { io_uring_enter(&self.fd, self.pending, min, flags) };
        self.pending -= r.map_err(raw)?.min(self.pending);
        Ok(())
    }
    /// Pushed entries that the kernel has not taken.
    pub fn pending(&self) -> u32 {
        self.pending
    }

    /// Takes a completion: user data and result.
    pub fn pop(&mut self) -> Option<(u64, i32)> {
        let head = word(&self.cq, self.p.cq_head);
        let at = head.load(Ordering::Relaxed);
        if at == word(&self.cq, self.p.cq_tail).load(Ordering::Acquire) {
            return None;
        }
        let slot = (at & (self.p.cq_entries - 1)) as usize;
        let place = self.cq.at(self.p.cq_cqes as usize + slot * CQE);
        #[expect(unsafe_code, reason = "the ring is memory shared with the kernel")]
        // SAFETY: the place lies in the mapping, and the kernel has finished writing it: the tail
        // is past it. Both fields are plain numbers at offsets 0 and 8.
        let done = unsafe {
            (
                place.cast::<u64>().read(),
                place.wrapping_byte_add(8).cast::<i32>().read(),
            )
        };
        head.store(at.wrapping_add(1), Ordering::Release);
        Some(done)
    }
}

/// A counter or array element of a ring.
fn word(ring: &Mapping, offset: u32) -> &AtomicU32 {
    let p = ring.at(offset as usize).cast::<u32>();
    #[expect(unsafe_code, reason = "the ring is memory shared with the kernel")]
    // SAFETY: the offset is the kernel's own, inside the mapping and aligned to 4; both sides use
    // the word only by atomic loads and stores; the reference does not outlive the mapping.
    unsafe {
        AtomicU32::from_ptr(p)
    }
}
