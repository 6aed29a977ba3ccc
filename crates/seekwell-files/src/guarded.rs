//! Runs parsers of other projects on files that may be malformed.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Nesting depth of [`guarded`] on this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}
static QUIET: Once = Once::new();

/// Runs library code that may panic on an inconsistent file. Returns `None` if the code panicked.
///
/// The panic message is not printed, because the caller reports the error. To suppress the message,
/// a panic hook is installed once per process. It passes all other panics to the hook that was
/// there before.
pub fn guarded<T>(read: impl FnOnce() -> T) -> Option<T> {
    // A panicking thread cannot install a hook. It does not need one.
    if !std::thread::panicking() {
        QUIET.call_once(|| {
            let before = take_hook();
            set_hook(Box::new(move |panic| {
                if DEPTH.with(Cell::get) == 0 {
                    before(panic);
                }
            }));
        });
    }
    DEPTH.with(|d| d.set(d.get() + 1));
    let read = catch_unwind(AssertUnwindSafe(read));
    DEPTH.with(|d| d.set(d.get() - 1));
    read.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    static TOLD: AtomicU32 = AtomicU32::new(0);

    /// All checks are in one test, because a hook applies to the whole process.
    #[test]
    fn guarded_panics_return_none_silently_and_other_panics_are_reported() {
        set_hook(Box::new(|_| {
            TOLD.fetch_add(1, Ordering::SeqCst);
        }));
        assert_eq!(guarded(|| 7), Some(7));
        assert_eq!(guarded(|| -> u32 { panic!("in the library") }), None);
        // Nested calls, and a call after one that panicked.
        let outer = guarded(|| {
            let inner = guarded(|| -> u32 { panic!("deeper") });
            (inner, [1][inner.map_or(0, |n| n as usize)])
        });
        assert_eq!(outer, Some((None, 1)));
        assert_eq!(TOLD.load(Ordering::SeqCst), 0);
        assert!(catch_unwind(|| panic!("our own")).is_err());
        assert_eq!(TOLD.load(Ordering::SeqCst), 1);
        // Another thread is not affected.
        let other = || std::thread::spawn(|| panic!("another thread")).join();
        assert!(guarded(other).is_some_and(|joined| joined.is_err()));
        assert_eq!(TOLD.load(Ordering::SeqCst), 2);
    }
}
