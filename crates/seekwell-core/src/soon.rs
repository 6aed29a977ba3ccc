//! Prefetch: asks the processor for memory that will be needed soon.
//!
//! A modelled machine has hundreds of thousands of inodes and millions of pages, and accesses each
//! of them rarely. A run spent a third of its time waiting for a few cache lines whose addresses
//! were known one step earlier.

/// Prefetches the cache line that contains the start of a value. Only the timing changes. On
/// processors for which the standard library has no prefetch, the function does nothing.
#[inline]
#[allow(unsafe_code)]
pub fn soon<T>(what: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: this prefetches the target of a reference, and a prefetch never faults. Without
        // the prefetch, three loads were measured to take a third of blogbench's time.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(what).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The function accepts any reference and leaves its target unchanged. Miri runs this test.
    #[test]
    fn prefetch_leaves_its_target_unchanged() {
        let many: Vec<u64> = (0..100).collect();
        many.iter().for_each(soon);
        soon(&());
        soon(&many[..0].as_ptr());
        assert!(many.iter().copied().eq(0..100));
    }
}
