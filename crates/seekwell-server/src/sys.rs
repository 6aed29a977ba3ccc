//! System calls for the threads of a served disk: scheduling class, timer slack, the I/O flusher
//! flag. Also reads values for the account: context switches, suspension, stolen time.

use rustix::process::{Resource, Rlimit};
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;
use std::time::Duration;

/// Sets first-in first-out real-time scheduling for the calling thread; false without the privilege
/// (CAP_SYS_NICE or an rtprio limit). New threads inherit it.
pub fn realtime(priority: i32) -> bool {
    // The kernel's struct and system call are used directly: musl has a longer struct, and its
    // function always fails.
    let param: libc::c_int = priority;
    #[expect(unsafe_code, reason = "no crate in use wraps the call")]
    // SAFETY: the pointer is to a live struct of the layout that the call reads, which is one
    // number; 0 is this thread.
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

/// Makes the thread's sleeps as precise as the machine allows; by default they may be 50 us late.
pub fn precise_sleep() {
    // It never fails; if it did, the measured margin would show it.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// The thread's memory allocations must not write to the disk that it serves.
pub fn io_flusher() -> bool {
    rustix::process::configure_io_flusher_behavior(true).is_ok()
}

/// The kernel stops a real-time thread that runs this long without a pause: a safety net for a
/// spinning loop. The caller pauses far more often.
pub fn limit_realtime(longest: Duration) {
    let us = u64::try_from(longest.as_micros()).ok();
    let limit = Rlimit {
        current: us,
        maximum: us,
    };
    let _ = rustix::process::setrlimit(Resource::Rttime, limit);
}

/// Involuntary context switches of the calling thread; 0 if the kernel does not report them.
pub fn involuntary_switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let count = status
        .lines()
        .find_map(|l| l.strip_prefix("nonvoluntary_ctxt_switches:"));
    count.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

/// Time the machine spent suspended since boot, ns.
pub fn suspended_ns() -> u64 {
    let read = |clock| {
        let t = clock_gettime(clock);
        t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
    };
    // In this order, so that a delay between the two reads never looks like a suspension.
    let boot = read(ClockId::Boottime);
    boot.saturating_sub(read(ClockId::Monotonic))
}

/// Time the hypervisor gave to others while this machine wanted to run, in ticks of 10 ms over all
/// CPUs; `None` if the kernel does not report it.
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
    fn a_thread_that_spins_long_enough_is_put_off() {
        let own = std::thread::spawn(|| {
            let before = involuntary_switches();
            let begun = std::time::Instant::now();
            // Only prevents an endless spin.
            let patient = move || begun.elapsed() < Duration::from_secs(60);
            let over = AtomicBool::new(false);
            // More threads than CPUs, so that some have to wait.
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
    fn what_may_be_refused_is_no_error() {
        let t = std::thread::spawn(|| {
            precise_sleep();
            // The machine decides whether real-time is allowed; the thread continues either way.
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
