//! The few system calls that no safe wrapper has: scheduling class, timer slack, the I/O flusher
//! mark, resource use of a thread.

#![allow(unsafe_code)] // Plain system calls; each says why it is sound.

use std::time::Duration;

/// Asks for first-in first-out real-time scheduling of the calling thread; false without the
/// privilege (CAP_SYS_NICE or a rtprio limit). Threads it makes inherit it.
pub fn realtime(priority: i32) -> bool {
    let param = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the pointer is to a live struct of the type the call reads; 0 is this thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) == 0 }
}

/// The thread's sleeps end as precisely as the machine can; by default they may be 50 us late.
pub fn precise_sleep() {
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory.
    let _ = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Memory the thread asks for must not be won by writing to the very disk it serves.
pub fn io_flusher() -> bool {
    // Number from linux/prctl.h (5.6); the libc crate has it on some targets only.
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: it takes numbers and touches no memory.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0 }
}

/// A real-time thread that computes for so long without a pause is stopped by the kernel: a safety
/// net under a spinning loop. The caller pauses far more often.
pub fn limit_realtime(longest: Duration) {
    let us = longest.as_micros() as libc::rlim_t;
    let limit = libc::rlimit {
        rlim_cur: us,
        rlim_max: us,
    };
    // SAFETY: the pointer is to a live struct of the type the call reads.
    let _ = unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit) };
}

/// Times the calling thread was put off its CPU against its will.
pub fn involuntary_switches() -> u64 {
    // SAFETY: all-zero bytes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live struct of the type the call fills.
    let ok = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) } == 0;
    if ok { usage.ru_nivcsw.max(0) as u64 } else { 0 }
}

/// Time the machine spent suspended since boot, ns.
pub fn suspended_ns() -> u64 {
    let read = |clock| {
        let mut t = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the pointer is to a live struct of the type the call fills.
        unsafe { libc::clock_gettime(clock, &raw mut t) };
        t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
    };
    // In this order, so that two reads apart never look like a suspension of the whole machine.
    let boot = read(libc::CLOCK_BOOTTIME);
    boot.saturating_sub(read(libc::CLOCK_MONOTONIC))
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
