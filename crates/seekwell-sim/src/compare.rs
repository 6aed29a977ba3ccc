//! Makes many runs in parallel. The order of the results does not depend on the number of threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `job(i)` for every `i` below `n` on up to `threads` threads. Returns the results in the
/// order of `i`.
pub fn run_all<T: Send>(n: usize, threads: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let slots: Vec<Mutex<Option<T>>> = (0..n).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|s| {
        for _ in 0..threads.clamp(1, n.max(1)) {
            s.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slot) = slots.get(i) else { return };
                    let value = job(i);
                    *slot.lock().unwrap_or_else(|e| e.into_inner()) = Some(value);
                }
            });
        }
    });
    let take = |m: Mutex<Option<T>>| m.into_inner().unwrap_or_else(|e| e.into_inner());
    slots.into_iter().filter_map(take).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_for_any_number_of_threads() {
        for threads in [1, 2, 7, 100] {
            assert_eq!(
                run_all(20, threads, |i| i * i),
                (0..20).map(|i| i * i).collect::<Vec<_>>()
            );
        }
    }
}
