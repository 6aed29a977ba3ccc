//! Waits precisely: sleeps until shortly before the time, then spins.
//!
//! The time spent spinning is called the margin. It is measured at the start, as the 99th
//! percentile of the lateness of sleeps, and limited to 20 to 150 us. The thread polls the inbox
//! while it spins. With real-time priority, a sleep ends at most 30 to 150 us late on a loaded
//! machine. Without real-time priority, a sleep sometimes ends milliseconds late, so the largest
//! margin is used.

use crate::inbox::{Clock, Inbox, Reply};
use crate::sys;
use seekwell_core::result::Latency;
use seekwell_core::{Instant, Nanos};
use serde::Serialize;
use std::time::Duration;

/// Number of sleeps that are measured at the start.
const SLEEPS: u32 = 200;
/// Duration of each measured sleep.
const SLEEP: Duration = Duration::from_micros(500);
const MARGIN_MIN: Nanos = Nanos(20_000);
const MARGIN_MAX: Nanos = Nanos(150_000);
/// A real-time loop that has not slept for this time sleeps briefly.
const BREATHE: Nanos = Nanos(200_000_000);

/// The margin: a sleep must end this long before the due time. Also the measurement from which the
/// margin was computed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Margin {
    /// Time spent spinning before each completion, ns.
    pub spin_ns: u64,
    /// Whether the threads have real-time priority.
    pub realtime: bool,
    /// Median lateness of a sleep, ns.
    pub sleep_late_p50_ns: u64,
    /// 99th percentile of the lateness of a sleep, ns.
    pub sleep_late_p99_ns: u64,
    /// Largest lateness of a sleep, ns.
    pub sleep_late_max_ns: u64,
}

impl Margin {
    /// Measures the sleeps of the calling thread. This takes about 0.15 s.
    pub fn measure(realtime: bool) -> Self {
        let mut late = Latency::default();
        for _ in 0..SLEEPS {
            let t = std::time::Instant::now();
            // The loop uses the same call. It returns after a wake-up or after the timeout.
            std::thread::park_timeout(SLEEP);
            late.record(t.elapsed().saturating_sub(SLEEP).as_nanos() as u64);
        }
        let p99 = late.percentile_ns(99.0);
        let spin = if realtime { p99 } else { MARGIN_MAX.0 };
        Margin {
            spin_ns: spin.clamp(MARGIN_MIN.0, MARGIN_MAX.0),
            realtime,
            sleep_late_p50_ns: late.percentile_ns(50.0),
            sleep_late_p99_ns: p99,
            sleep_late_max_ns: late.max_ns(),
        }
    }
}

/// Waits until an arrival or until a given time.
pub struct Waiter {
    clock: Clock,
    margin: Nanos,
    slept: Instant,
    /// Longest time that a sleep ended too late.
    pub overslept: Nanos,
}

impl Waiter {
    /// Returns a waiter with a measured margin.
    pub fn new(clock: Clock, margin: &Margin) -> Self {
        Waiter {
            clock,
            margin: Nanos(margin.spin_ns),
            slept: clock.now(),
            overslept: Nanos::ZERO,
        }
    }

    /// Returns at time `until`, or earlier if the inbox contains something. Without a time it waits
    /// for the inbox.
    pub fn wait<R: Reply>(&mut self, inbox: &Inbox<R>, until: Option<Instant>) {
        loop {
            if inbox.pending() {
                break;
            }
            let now = self.clock.now();
            let Some(until) = until else {
                // There is nothing to do until the inbox gets an entry.
                std::thread::park();
                self.slept = self.clock.now();
                continue;
            };
            if now >= until {
                break;
            }
            let left = until.since(now);
            if left.0 > self.margin.0 {
                let sleep = Nanos(left.0 - self.margin.0);
                std::thread::park_timeout(Duration::from_nanos(sleep.0));
                self.slept = self.clock.now();
                self.overslept = self.overslept.max(self.slept.since(now + sleep));
            } else {
                std::hint::spin_loop();
            }
        }
        let now = self.clock.now();
        if now.since(self.slept) > BREATHE {
            // The kernel stops real-time threads that never sleep. A short sleep is enough to
            // prevent this.
            std::thread::sleep(Duration::from_nanos(1));
            self.slept = self.clock.now();
        }
    }
}

/// Prepares the calling thread, and threads that it creates, for precise timing. Returns whether
/// the thread has real-time priority.
pub fn punctual(priority: i32) -> bool {
    sys::precise_sleep();
    sys::limit_realtime(Duration::from_secs(2));
    sys::realtime(priority)
}
