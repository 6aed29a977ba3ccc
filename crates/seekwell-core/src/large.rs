//! An allocator that puts large blocks of memory on large pages.
//!
//! The inodes, names and cached pages of a modelled machine take a hundred megabytes, and each step
//! accesses a few cache lines of them. With pages of 4 KiB, nearly every access needs an entry of a
//! page table that is not in the processor's cache. Under a hypervisor it needs two such entries.
//! If `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise`, the kernel gives large pages only
//! on request, and this module makes the request. If the file is `always` or `never`, this module
//! has no effect.

use rustix::mm::{
    Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap_fixed, munmap,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr::null_mut;

/// Size of a large page in bytes, on x86-64, and on aarch64 with pages of 4 KiB. If the real size
/// is different, the ends of a block can be on small pages.
const PAGE: usize = 2 << 20;

/// The system's allocator, with large pages for blocks of 2 MiB and more. Use it as the
/// `#[global_allocator]` of a program.
pub struct LargePages;

/// Returns true if this allocator maps a block of this layout itself.
const fn large(layout: Layout) -> bool {
    layout.size() >= PAGE && layout.align() <= PAGE
}

/// Returns the size of a large block in bytes, rounded up to whole large pages. `None` if the size
/// is impossible.
fn taken(layout: Layout) -> Option<usize> {
    layout
        .size()
        .checked_next_multiple_of(PAGE)
        .filter(|&s| isize::try_from(s).is_ok())
}

/// Maps `size` bytes of new memory, aligned to a large page. The memory is readable, writable and
/// zeroed.
#[cold]
#[allow(unsafe_code)]
fn map(size: usize) -> Option<*mut c_void> {
    let with_room = size.checked_add(PAGE)?;
    let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: the memory is new, and the kernel chooses its address. The parts before the first
    // large page and after the last large page are unused and are unmapped. If that fails, it does
    // no harm.
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

/// Asks the kernel for large pages. It is not an error if the kernel refuses.
#[allow(unsafe_code)]
fn advise(block: *mut c_void, size: usize) {
    // SAFETY: the contents are unchanged; only the size of the pages below them may change.
    let _ = unsafe { madvise(block, size, Advice::LinuxHugepage) };
}

// SAFETY: small blocks are allocated by the system's allocator. A large block is a mapping of its
// own. The layout alone decides which of the two a block is, so a block is freed by the allocator
// that it came from.
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

    /// Uses pages of the usual size, because a caller that asks for zeroed memory may leave most of
    /// it untouched.
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

/// Resizes a large block. The kernel moves its pages to another address, without copying.
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
    // SAFETY: both mappings belong to this allocator and have these sizes. Nothing else uses the
    // new mapping.
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
        // SAFETY: the test owns a block of this size.
        unsafe { block.write_bytes(with, size) };
    }
    fn holds(block: *mut u8, size: usize, what: u8) -> bool {
        // SAFETY: the test owns a block of this size and has written it.
        unsafe { std::slice::from_raw_parts(block, size) }
            .iter()
            .all(|b| *b == what)
    }

    /// A block keeps its contents, up to the smaller size, when it is resized from any kind of size
    /// to any other.
    #[test]
    fn resized_block_keeps_its_contents() {
        let sizes = [1, 4096, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, 7 * PAGE / 2];
        for (from, to) in sizes
            .iter()
            .flat_map(|f| sizes.iter().map(move |t| (*f, *t)))
        {
            for align in [1, 64] {
                let [old, new] = [from, to].map(|s| Layout::from_size_align(s, align));
                let (old, new) = (old.expect("a layout"), new.expect("a layout"));
                // SAFETY: the block is freed with its current layout and is not used afterwards.
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
    fn large_blocks_are_page_aligned_and_zeroed_blocks_contain_zeroes() {
        for size in [64, PAGE, 5 * PAGE + 4096] {
            let layout = Layout::from_size_align(size, 8).expect("a layout");
            for _ in 0..3 {
                // SAFETY: the block is freed with its layout and is not used afterwards.
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

    /// An allocation with an impossible size (larger than the address space) fails.
    #[test]
    fn impossible_allocation_size_fails() {
        let most = isize::MAX as usize / PAGE * PAGE;
        let layout = Layout::from_size_align(most, 8).expect("a layout");
        let small = Layout::from_size_align(PAGE, 8).expect("a layout");
        // SAFETY: the large allocation fails. The small block stays valid and is freed.
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

    /// Returns the number of pages in the address space of this process.
    fn mapped() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").expect("a Linux system");
        let pages = text.split(' ').next().and_then(|n| n.parse().ok());
        pages.expect("a number of pages")
    }

    /// A freed block and its unused ends are unmapped.
    #[test]
    fn freed_memory_is_unmapped() {
        let small = Layout::from_size_align(PAGE, 8).expect("a layout");
        let grown = Layout::from_size_align(2 * PAGE, 8).expect("a layout");
        let before = mapped();
        for _ in 0..10_000 {
            // SAFETY: the block is freed with its current layout.
            unsafe {
                let block = LargePages.alloc(small);
                assert!(!block.is_null());
                let block = LargePages.realloc(block, small, 2 * PAGE);
                assert!(!block.is_null());
                LargePages.dealloc(block, grown);
            }
        }
        // If each block left a page of 2 MiB behind, the rest would be 20 GB. Other tests of this
        // process also have mappings.
        let more = mapped().saturating_sub(before) * 4096;
        assert!(more < 4 << 30, "{more} bytes");
    }
}
