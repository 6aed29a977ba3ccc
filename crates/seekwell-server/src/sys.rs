//! System calls for the threads of a served disk. They set the scheduling class, the timer slack
//! and the I/O flusher flag. Others read context switches, suspension and steal time for the
//! account.

use rustix::process::{Resource, Rlimit};
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;
use std::time::Duration;

/// Sets real-time scheduling (SCHED_FIFO) for the calling thread; new threads inherit it. Returns
/// false if the thread has neither CAP_SYS_NICE nor an rtprio limit.
pub fn realtime(priority: i32) -> bool {
    // The system call is used directly, because the function in musl always fails. Also, musl's
    // struct is longer than the kernel's.
    let param: libc::c_int = priority;
    #[expect(unsafe_code, reason = "no crate in use wraps the call")]
    // SAFETY: the pointer refers to a live value. The system call reads one number, which is the
    // layout of this value. The argument 0 means the calling thread.
    let r = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            libc::SCHED_FIFO,
            &raw const param,
        )
    };
    r == 0
}

/// Makes the sleeps of the calling thread as precise as the machine allows. By default they may end
/// 50 us late.
pub fn precise_sleep() {
    // The call never fails. If it did, the measured margin would be larger.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Prevents memory allocations of the calling thread from writing to the disk that it serves.
/// Returns whether the kernel allowed it.
pub fn io_flusher() -> bool {
    rustix::process::configure_io_flusher_behavior(true).is_ok()
}

/// Makes the kernel stop a real-time thread that runs for `longest` without a sleep. This limit
/// protects the machine from an endless loop. The caller sleeps far more often.
pub fn limit_realtime(longest: Duration) {
    let us = u64::try_from(longest.as_micros()).ok();
    let limit = Rlimit {
        current: us,
        maximum: us,
    };
    let _ = rustix::process::setrlimit(Resource::Rttime, limit);
}

/// Returns the number of involuntary context switches of the calling thread, or 0 if the kernel
/// does not report it.
pub fn involuntary_switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let count = status
        .lines()
        .find_map(|l| l.strip_prefix("nonvoluntary_ctxt_switches:"));
    count.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

/// Returns the time that the machine has been suspended since boot, ns.
pub fn suspended_ns() -> u64 {
    let read = |clock| {
        let t = clock_gettime(clock);
        t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
    };
    // This order makes sure that a delay between the two reads does not look like a suspension.
    let boot = read(ClockId::Boottime);
    boot.saturating_sub(read(ClockId::Monotonic))
}

/// Returns the time that the hypervisor gave to other machines while this machine wanted to run.
/// The unit is ticks of 10 ms, summed over all CPUs. `None` if the kernel does not report it.
pub fn steal_ticks() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    stat.lines()
        .next()?
        .split_ascii_whitespace()
        .nth(8)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn spinning_thread_is_preempted() {
        let own = std::thread::spawn(|| {
            let before = involuntary_switches();
            let begun = std::time::Instant::now();
            // This limit only prevents an endless loop.
            let patient = move || begun.elapsed() < Duration::from_secs(60);
            let over = AtomicBool::new(false);
            // There are more threads than CPUs, so some threads must wait.
            let cpus = std::thread::available_parallelism().map_or(1, usize::from);
            std::thread::scope(|s| {
                for _ in 0..cpus * 2 {
                    s.spawn(|| {
                        while !over.load(Ordering::Relaxed) && patient() {
                            std::hint::spin_loop()
                        }
                    });
                }
                while involuntary_switches() == before && patient() {
                    std::hint::spin_loop()
                }
                over.store(true, Ordering::Relaxed);
            });
            involuntary_switches() - before
        });
        assert!(own.join().expect("no panic") > 0);
    }

    #[test]
    fn rejected_privileges_are_no_error() {
        let t = std::thread::spawn(|| {
            precise_sleep();
            // Real-time scheduling may be refused on this machine. The thread continues in both
            // cases.
            let (realtime, flusher) = (realtime(1), io_flusher());
            println!("real-time {realtime}, flusher {flusher}");
            std::thread::sleep(Duration::from_millis(1));
            suspended_ns()
        });
        let suspended = t.join().expect("no panic");
        let uptime = clock_gettime(ClockId::Boottime).tv_sec as u64 * 1_000_000_000;
        assert!(suspended <= uptime);
    }
}
