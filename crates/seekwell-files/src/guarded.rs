//! Other people's readers on bytes that were made to harm.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// How many of [`guarded`] this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}
static QUIET: Once = Once::new();

/// Runs code of a library that may panic on a file that contradicts itself: `None` if it did.
///
/// Nothing is printed of it, as whoever calls tells what is wrong with the file. For that a panic
/// hook is put before the one there is, once in a process; all other panics go on to that one.
pub fn guarded<T>(read: impl FnOnce() -> T) -> Option<T> {
    // A hook cannot be set by a thread that is panicking, and needs not be.
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

    /// One test, as a hook is of the whole process.
    #[test]
    fn panics_inside_are_none_and_silent_and_all_others_are_told_as_before() {
        set_hook(Box::new(|_| {
            TOLD.fetch_add(1, Ordering::SeqCst);
        }));
        assert_eq!(guarded(|| 7), Some(7));
        assert_eq!(guarded(|| -> u32 { panic!("in the library") }), None);
        // In one another, and behind one that panicked.
        let outer = guarded(|| {
            let inner = guarded(|| -> u32 { panic!("deeper") });
            (inner, [1][inner.map_or(0, |n| n as usize)])
        });
        assert_eq!(outer, Some((None, 1)));
        assert_eq!(TOLD.load(Ordering::SeqCst), 0);
        assert!(catch_unwind(|| panic!("our own")).is_err());
        assert_eq!(TOLD.load(Ordering::SeqCst), 1);
        // Another thread is not in it.
        let other = || std::thread::spawn(|| panic!("another thread")).join();
        assert!(guarded(other).is_some_and(|joined| joined.is_err()));
        assert_eq!(TOLD.load(Ordering::SeqCst), 2);
    }
}
