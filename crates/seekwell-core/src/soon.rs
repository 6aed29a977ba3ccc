//! Memory that is wanted soon: asked for now, it is there by then.
//!
//! A modelled machine has hundreds of thousands of inodes and millions of pages, each touched once in
//! a long while: a third of the time of such a run was waiting for a few lines of memory that were
//! known a step before.

/// Begins to load the line of memory on which something begins. Changes nothing but when it is there;
/// does nothing on processors for which the standard library has no such request.
#[inline]
#[allow(unsafe_code)]
pub fn soon<T>(what: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a request to load what a reference points to, and one that never faults. Measured:
        // without it a third of blogbench's time is three loads.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(what).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For Miri: any reference may be given, and what is behind it stays.
    #[test]
    fn what_is_asked_for_stays_as_it_is() {
        let many: Vec<u64> = (0..100).collect();
        many.iter().for_each(soon);
        soon(&());
        soon(&many[..0].as_ptr());
        assert!(many.iter().copied().eq(0..100));
    }
}
