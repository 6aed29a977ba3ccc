//! Large blocks of memory on large pages.
//!
//! A modelled machine's inodes, names and cached pages are a hundred megabytes of which each step
//! touches a few lines: with pages of 4 KiB the processor looks up nearly every one of them in a table
//! first, which itself is not in its cache, and under a hypervisor in two. On kernels that give large
//! pages to who asks (`/sys/kernel/mm/transparent_hugepage/enabled` says `madvise`) nobody asks
//! otherwise; where it says `always` or `never`, this changes nothing.

use rustix::mm::{
    Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap_fixed, munmap,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr::null_mut;

/// A large page, bytes: of x86-64 and of aarch64 with pages of 4 KiB. Where another is used, blocks
/// that it does not divide have small pages at their ends.
const PAGE: usize = 2 << 20;

/// The system's allocator, which asks for large pages for blocks of 2 MiB and more. For a program's
/// `#[global_allocator]`.
pub struct LargePages;

/// Whether a block of this layout is this allocator's own affair.
const fn large(layout: Layout) -> bool {
    layout.size() >= PAGE && layout.align() <= PAGE
}

/// What a large block takes, bytes: whole large pages. None if that is no size of memory.
fn taken(layout: Layout) -> Option<usize> {
    layout
        .size()
        .checked_next_multiple_of(PAGE)
        .filter(|&s| isize::try_from(s).is_ok())
}

/// A place of `size` bytes in the address space that begins where a large page does, as new memory
/// that may be read and written, all zero.
#[cold]
#[allow(unsafe_code)]
fn map(size: usize) -> Option<*mut c_void> {
    let with_room = size.checked_add(PAGE)?;
    let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: new memory, where the kernel likes. What is before its first large page and behind its
    // last nobody has seen, and is given back; that fails without harm.
    unsafe {
        let at = mmap_anonymous(null_mut(), with_room, access, kind).ok()?;
        let before = at.cast::<u8>().align_offset(PAGE);
        let block = at.wrapping_byte_add(before);
        if before > 0 {
            let _ = munmap(at, before);
        }
        if before < PAGE {
            let _ = munmap(block.wrapping_byte_add(size), PAGE - before);
        }
        Some(block)
    }
}

/// Asks for large pages. That there are none is no error.
#[allow(unsafe_code)]
fn advise(block: *mut c_void, size: usize) {
    // SAFETY: what is there stays as it is; nothing but the size of the pages behind it may change.
    let _ = unsafe { madvise(block, size, Advice::LinuxHugepage) };
}

// SAFETY: the system's allocator for what is small. A large block is a mapping of its own; which of
// the two a block is follows from its layout, so that it is given back to whom it came from.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for LargePages {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !large(layout) {
            return unsafe { System.alloc(layout) };
        }
        let block = unsafe { self.alloc_zeroed(layout) };
        if let Some(size) = taken(layout).filter(|_| !block.is_null()) {
            advise(block.cast(), size);
        }
        block
    }

    /// On pages of the usual size: who asks for zeroes may well leave most of them as they are.
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !large(layout) {
            return unsafe { System.alloc_zeroed(layout) };
        }
        taken(layout)
            .and_then(map)
            .map_or(null_mut(), |block| block.cast())
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !large(layout) {
            unsafe { System.dealloc(block, layout) };
        } else if let Some(size) = taken(layout) {
            let _ = unsafe { munmap(block.cast(), size) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Ok(new) = Layout::from_size_align(size, layout.align()) else {
            return null_mut();
        };
        match (large(layout), large(new)) {
            (false, false) => unsafe { System.realloc(block, layout, size) },
            (true, true) => unsafe { moved(block, taken(layout), taken(new)) },
            _ => unsafe {
                let moved = self.alloc(new);
                if !moved.is_null() {
                    moved.copy_from_nonoverlapping(block, layout.size().min(size));
                    self.dealloc(block, layout);
                }
                moved
            },
        }
    }
}

/// A large block that is to have another size: its pages go to another place, and nothing is copied.
#[cold]
#[allow(unsafe_code)]
unsafe fn moved(block: *mut u8, old: Option<usize>, new: Option<usize>) -> *mut u8 {
    let (Some(old), Some(new)) = (old, new) else {
        return null_mut();
    };
    if old == new {
        return block;
    }
    let Some(place) = map(new) else {
        return null_mut();
    };
    // SAFETY: both are mappings of this allocator of these sizes, and nobody else has the new one.
    match unsafe { mremap_fixed(block.cast(), old, new, MremapFlags::MAYMOVE, place) } {
        Ok(at) => {
            advise(at, new);
            at.cast()
        }
        Err(_) => {
            let _ = unsafe { munmap(place, new) };
            null_mut()
        }
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;

    fn filled(block: *mut u8, size: usize, with: u8) {
        // SAFETY: a test's own block of that size.
        unsafe { block.write_bytes(with, size) };
    }
    fn holds(block: *mut u8, size: usize, what: u8) -> bool {
        // SAFETY: a test's own block of that size, written before.
        unsafe { std::slice::from_raw_parts(block, size) }
            .iter()
            .all(|b| *b == what)
    }

    /// From every kind of size to every other: what is in a block stays, up to the smaller size.
    #[test]
    fn a_block_keeps_what_is_in_it_at_any_size() {
        let sizes = [1, 4096, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, 7 * PAGE / 2];
        for (from, to) in sizes
            .iter()
            .flat_map(|f| sizes.iter().map(move |t| (*f, *t)))
        {
            for align in [1, 64] {
                let [old, new] = [from, to].map(|s| Layout::from_size_align(s, align));
                let (old, new) = (old.expect("a layout"), new.expect("a layout"));
                // SAFETY: given back with the layout it has then, and not used behind that.
                unsafe {
                    let block = LargePages.alloc(old);
                    assert!(!block.is_null() && block.addr().is_multiple_of(align));
                    filled(block, from, 0xa5);
                    let block = LargePages.realloc(block, old, to);
                    assert!(!block.is_null() && block.addr().is_multiple_of(align));
                    assert!(holds(block, from.min(to), 0xa5), "{from} to {to}");
                    filled(block, to, 0x5a);
                    LargePages.dealloc(block, new);
                }
            }
        }
    }

    #[test]
    fn large_blocks_begin_with_a_page_and_zeroes_are_zero() {
        for size in [64, PAGE, 5 * PAGE + 4096] {
            let layout = Layout::from_size_align(size, 8).expect("a layout");
            for _ in 0..3 {
                // SAFETY: given back with its layout, and not used behind that.
                unsafe {
                    let block = LargePages.alloc_zeroed(layout);
                    assert!(holds(block, size, 0));
                    assert!(size < PAGE || block.addr().is_multiple_of(PAGE));
                    filled(block, size, 1);
                    LargePages.dealloc(block, layout);
                }
            }
        }
    }

    /// What no machine has is refused, as everything that is larger than the address space.
    #[test]
    fn what_cannot_be_had_is_refused() {
        let most = isize::MAX as usize / PAGE * PAGE;
        let layout = Layout::from_size_align(most, 8).expect("a layout");
        let small = Layout::from_size_align(PAGE, 8).expect("a layout");
        // SAFETY: nothing is given; the small block stays and is given back.
        unsafe {
            assert!(LargePages.alloc(layout).is_null());
            assert!(LargePages.alloc_zeroed(layout).is_null());
            let block = LargePages.alloc(small);
            filled(block, PAGE, 7);
            assert!(LargePages.realloc(block, small, most).is_null());
            assert!(holds(block, PAGE, 7));
            LargePages.dealloc(block, small);
        }
    }

    /// Pages of address space this process has.
    fn mapped() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").expect("a Linux system");
        let pages = text.split(' ').next().and_then(|n| n.parse().ok());
        pages.expect("a number of pages")
    }

    /// Neither blocks nor what was cut off at their ends stays mapped.
    #[test]
    fn what_is_given_back_is_gone() {
        let small = Layout::from_size_align(PAGE, 8).expect("a layout");
        let grown = Layout::from_size_align(2 * PAGE, 8).expect("a layout");
        let before = mapped();
        for _ in 0..10_000 {
            // SAFETY: given back with the layout it has then.
            unsafe {
                let block = LargePages.alloc(small);
                assert!(!block.is_null());
                let block = LargePages.realloc(block, small, 2 * PAGE);
                assert!(!block.is_null());
                LargePages.dealloc(block, grown);
            }
        }
        // A page of 2 MiB left of each would be 20 GB; other tests of this process have some, too.
        let more = mapped().saturating_sub(before) * 4096;
        assert!(more < 4 << 30, "{more} bytes");
    }
}
