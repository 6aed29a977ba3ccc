//! What the threads of a served disk ask of the system: scheduling class, timer slack, the I/O
//! flusher's mark; and what is read for the account: switches, suspension, stolen time.

use rustix::process::{Resource, Rlimit};
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;
use std::time::Duration;

/// Asks for first-in first-out real-time scheduling of the calling thread; false without the
/// privilege (CAP_SYS_NICE or a rtprio limit). Threads it makes inherit it.
pub fn realtime(priority: i32) -> bool {
    // The kernel's own struct, and the kernel's own call: musl's struct is longer, and its function
    // refuses always.
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

/// The thread's sleeps end as precisely as the machine can; by default they may be 50 us late.
pub fn precise_sleep() {
    // Refused nowhere; if it were, the measured margin would show it.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Memory the thread asks for must not be won by writing to the very disk it serves.
pub fn io_flusher() -> bool {
    rustix::process::configure_io_flusher_behavior(true).is_ok()
}

/// A real-time thread that computes for so long without a pause is stopped by the kernel: a safety
/// net under a spinning loop. The caller pauses far more often.
pub fn limit_realtime(longest: Duration) {
    let us = u64::try_from(longest.as_micros()).ok();
    let limit = Rlimit {
        current: us,
        maximum: us,
    };
    let _ = rustix::process::setrlimit(Resource::Rttime, limit);
}

/// Times the calling thread was put off its CPU against its will; 0 where the kernel does not tell.
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
    // In this order, so that two reads apart never look like a suspension of the whole machine.
    let boot = read(ClockId::Boottime);
    boot.saturating_sub(read(ClockId::Monotonic))
}

/// Time the hypervisor gave to others while this machine wanted to run, in ticks of 10 ms over all
/// CPUs; `None` where the kernel does not tell.
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
            // Only against spinning for ever.
            let patient = move || begun.elapsed() < Duration::from_secs(60);
            let over = AtomicBool::new(false);
            // More of them than CPUs: somebody has to wait.
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
            // Real-time or not is the machine's to say; the thread goes on either way.
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
