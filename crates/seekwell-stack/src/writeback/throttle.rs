//! Throttling of tasks that dirty pages. Since 3.2, the kernel slows these tasks so that dirty
//! memory stays near a setpoint. In 2.6, the tasks write back pages themselves.

use super::flusher;
use crate::executor::{Actor, pay, sleep_until};
use crate::machine::{K, World};
use crate::stats::Mark;
use seekwell_core::{Control, Instant, Nanos, TaskId};

impl World {
    fn dirty_total(&self) -> u64 {
        self.cache.nr_dirty + self.cache.nr_wb
    }
    /// Returns the number of dirty pages at the free-run ceiling, the setpoint and the limit.
    pub(crate) fn control_line(&self) -> (f64, f64, f64) {
        let (background, limit) = self.dirty_limits();
        let free = (background + limit) as f64 / 2.0;
        let limit = limit as f64;
        (free, (free + limit) / 2.0, limit)
    }
    /// Returns the factor for the balanced rate, as a function of dirty memory.
    pub(crate) fn pos_ratio(&self, dirty: f64) -> f64 {
        let (_, setpoint, limit) = self.control_line();
        if dirty >= limit {
            return 0.0;
        }
        let x = (setpoint - dirty) / (limit - setpoint).max(1.0);
        let global = (1.0 + x * x * x).clamp(0.0, 2.0);
        // The control by the device: the factor is 1 at the setpoint. It falls with the dirty pages
        // above the setpoint, measured in eight seconds of writing. The rate is doubled when dirty
        // memory is below half of the setpoint.
        let span = (8.0 * self.bw.write).max(1.0);
        let device = (1.0 - (dirty - setpoint) / span).clamp(0.25, 4.0);
        let starved = if dirty < setpoint / 2.0 { 2.0 } else { 1.0 };
        global * device * starved
    }
    /// Updates the average rates, at most five times per second.
    fn update_bandwidth(&mut self) {
        let c = &self.cfg.constants;
        let (step, period) = (c.bandwidth_step_ns, c.bandwidth_period_ns as f64);
        let now = self.rt.now;
        let elapsed = now.since(self.bw.at).0;
        if elapsed < step {
            return;
        }
        let dirty = self.dirty_total() as f64;
        let pos = self.pos_ratio(dirty);
        let (free, ..) = self.control_line();
        let b = &mut self.bw;
        let secs = elapsed as f64 / 1e9;
        let written = (b.written - b.written_at) as f64 / secs;
        let dirtied = (b.dirtied - b.dirtied_at) as f64 / secs;
        // After an idle period, the average would include mainly the idle time.
        let idle = elapsed as f64 > period / 2.0 || dirty <= free / 2.0;
        if !idle {
            let share = (elapsed as f64 / period).min(1.0);
            b.write = (b.write * (1.0 - share) + written * share).max(16.0);
            // Each task dirtied pages at the rate `limit * pos`. The total rate is `dirtied`, so
            // this gives the number of tasks.
            let task = b.limit * pos;
            let balanced = task * b.write / dirtied.max(1.0);
            let balanced = balanced.clamp(1.0, b.write.max(1.0));
            b.limit += (balanced - b.limit) / 4.0;
        }
        b.at = now;
        (b.written_at, b.dirtied_at) = (b.written, b.dirtied);
    }
    /// Counts a page that a task dirtied. Returns true if the task should check the limits.
    #[inline]
    pub(crate) fn dirtied_by(&mut self, a: Actor) -> bool {
        let first = self.cfg.constants.first_check_pages as u32;
        let t = &mut self.tasks[a as usize].account;
        t.dirtied += 1;
        t.dirtied >= t.check_after.max(first)
    }
    /// Returns whether the task must check the limits.
    pub(crate) fn should_balance(&self, a: Actor) -> bool {
        let t = &self.tasks[a as usize].account;
        t.dirtied
            >= t.check_after
                .max(self.cfg.constants.first_check_pages as u32)
    }
    /// Returns the number of pages that a task dirties between two checks in 2.6. At most 4 MiB.
    fn check_interval_2_6(&self) -> u64 {
        let even = self.cache.limit / (u64::from(self.cfg.cores.max(1)) * 32);
        even.clamp(16, 1024)
    }
    fn slow(&mut self, on: bool) {
        if on {
            if self.throttled == 0 {
                self.mark(Mark::ThrottleBegin);
            }
            self.throttled += 1;
        } else {
            self.throttled -= 1;
            if self.throttled == 0 {
                self.mark(Mark::ThrottleEnd);
            }
        }
    }
}

/// Checks the dirty limits for a task that dirtied pages, and pauses the task if needed.
pub(crate) async fn balance(k: &K, a: Actor) {
    let writes = {
        let w = k.w();
        if w.cfg.ablations.no_throttling {
            None
        } else {
            Some(w.cfg.constants.dirtier_writes != 0)
        }
    };
    match writes {
        None => {
            let mut w = k.w();
            w.tasks[a as usize].account.dirtied = 0;
            if w.over_background() {
                w.kick_flusher();
            }
        }
        Some(true) => balance_2_6(k, a).await,
        Some(false) => balance_3_2(k, a).await,
    }
}

async fn balance_3_2(k: &K, a: Actor) {
    let mut slowed = false;
    loop {
        let pause = {
            let mut w = k.w();
            w.update_bandwidth();
            let dirty = w.dirty_total();
            let (free, _, limit) = w.control_line();
            if w.over_background() {
                w.kick_flusher();
            }
            let now = w.now();
            if (dirty as f64) <= free {
                // Check again when this task alone could have used a part of the remaining room.
                let room = (limit - dirty as f64).max(1.0) as u64;
                let first = (w.cfg.constants.first_check_pages as u32).min(1024);
                let t = &mut w.tasks[a as usize].account;
                t.dirtied = 0;
                t.paused_until = now;
                t.check_after = (1 << (room.ilog2() / 2)).clamp(first, 1024);
                break;
            }
            let rate = w.bw.limit * w.pos_ratio(dirty as f64);
            let (min, max) = {
                let c = &w.cfg.constants;
                (c.pause_min_ns, c.pause_max_ns)
            };
            let t = &mut w.tasks[a as usize].account;
            let over = dirty as f64 >= limit;
            let wanted = if over {
                max
            } else {
                (f64::from(t.dirtied) * 1e9 / rate.max(1.0)) as u64
            };
            // Time since the last pause counts as pause time, up to one second.
            let from = Instant(t.paused_until.0.max(now.0.saturating_sub(1_000_000_000)));
            let until = from + Nanos(wanted);
            let due = until.since(now).0;
            // The task checks about twice per tenth of a second.
            t.check_after = ((rate * 0.05) as u32).clamp(1, 1024);
            if over {
                Nanos(max)
            } else if due < min {
                t.paused_until = until;
                t.dirtied = 0;
                break;
            } else {
                t.dirtied = 0;
                let due = due.min(max);
                t.paused_until = now + Nanos(due);
                Nanos(due)
            }
        };
        if !slowed {
            slowed = true;
            k.w().slow(true);
        }
        pay(k, a).await;
        let at = {
            let mut w = k.w();
            w.stats.throttled_ns += pause.0;
            let now = w.now();
            w.sink.control(now, Control::DirtySleep(TaskId(a)));
            now + pause
        };
        sleep_until(k, a, at).await;
        let w = k.w();
        if (w.dirty_total() as f64) < w.control_line().2 {
            break;
        }
    }
    if slowed {
        k.w().slow(false);
    }
}

async fn balance_2_6(k: &K, a: Actor) {
    {
        let mut w = k.w();
        let every = w.check_interval_2_6() as u32;
        let over = w.dirty_total() > w.dirty_limits().1;
        let t = &mut w.tasks[a as usize].account;
        t.dirtied = 0;
        t.check_after = if over { 8 } else { every };
    }
    let mut slowed = false;
    loop {
        let over = {
            let mut w = k.w();
            let over = w.dirty_total() > w.dirty_limits().1;
            if over && !slowed {
                slowed = true;
                w.slow(true);
            }
            over
        };
        if !over {
            break;
        }
        pay(k, a).await;
        let begun = k.w().now();
        let chunk = k.w().check_interval_2_6() * 3 / 2;
        let n = flusher::write_some(k, a, chunk).await;
        if n >= chunk {
            break;
        }
        // As in congestion_wait.
        let at = {
            let w = k.w();
            w.now() + Nanos(w.cfg.constants.pause_max_ns)
        };
        sleep_until(k, a, at).await;
        let mut w = k.w();
        w.stats.throttled_ns += w.now().since(begun).0;
    }
    let mut w = k.w();
    if slowed {
        w.slow(false);
    }
    if w.over_background() {
        w.kick_flusher();
    }
}
