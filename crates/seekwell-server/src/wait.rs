//! Precise waits: sleep until a little before the time, then spin.
//!
//! The margin is measured at the start: the 99th percentile of the lateness of sleeps, between 20
//! and 150 us. The inbox is polled while spinning, so that an arrival gets its timestamp within a
//! microsecond. With real-time priority a sleep ends at most 30 to 150 us late on a loaded machine.
//! Without it a sleep is sometimes milliseconds late: then the widest margin is used.

use crate::inbox::{Clock, Inbox, Reply};
use crate::sys;
use seekwell_core::result::Latency;
use seekwell_core::{Instant, Nanos};
use serde::Serialize;
use std::time::Duration;

/// Number of sleeps measured at the start.
const SLEEPS: u32 = 200;
/// Duration of each.
const SLEEP: Duration = Duration::from_micros(500);
const MARGIN_MIN: Nanos = Nanos(20_000);
const MARGIN_MAX: Nanos = Nanos(150_000);
/// A real-time loop that has not slept for this time pauses briefly.
const BREATHE: Nanos = Nanos(200_000_000);

/// How early a sleep must end, and the measurement behind it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Margin {
    /// Time spent spinning before each completion, ns.
    pub spin_ns: u64,
    /// Whether the threads have real-time priority.
    pub realtime: bool,
    /// Median lateness of a sleep, ns.
    pub sleep_late_p50_ns: u64,
    /// 99th percentile of the lateness, ns.
    pub sleep_late_p99_ns: u64,
    /// Largest lateness, ns.
    pub sleep_late_max_ns: u64,
}

impl Margin {
    /// Measures the calling thread's sleeps; takes about 0.15 s.
    pub fn measure(realtime: bool) -> Self {
        let mut late = Latency::default();
        for _ in 0..SLEEPS {
            let t = std::time::Instant::now();
            // The same call as in service; a wake-up or the timeout ends it.
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

/// Waits for an arrival or a time.
pub struct Waiter {
    clock: Clock,
    margin: Nanos,
    slept: Instant,
    /// Longest overrun of a sleep, ns.
    pub overslept: Nanos,
}

impl Waiter {
    /// A waiter with a measured margin.
    pub fn new(clock: Clock, margin: &Margin) -> Self {
        Waiter {
            clock,
            margin: Nanos(margin.spin_ns),
            slept: clock.now(),
            overslept: Nanos::ZERO,
        }
    }

    /// Returns at `until`, or as soon as the inbox has something.
    pub fn wait<R: Reply>(&mut self, inbox: &Inbox<R>, until: Option<Instant>) {
        loop {
            if inbox.pending() {
                break;
            }
            let now = self.clock.now();
            let Some(until) = until else {
                // Nothing to do until something arrives.
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
            // The kernel stops real-time threads that never sleep; a short sleep is enough.
            std::thread::sleep(Duration::from_nanos(1));
            self.slept = self.clock.now();
        }
    }
}

/// Prepares the calling thread (and threads it creates) for precise timing; returns whether it has
/// real-time priority.
pub fn punctual(priority: i32) -> bool {
    sys::precise_sleep();
    sys::limit_realtime(Duration::from_secs(2));
    sys::realtime(priority)
}
