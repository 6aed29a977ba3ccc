//! Measures the device: whether it queues commands, and its peak rate.

use super::{Bfq, MIN_TT};
use crate::bfq::core::{QId, RATE_SHIFT, sectors_in};
use crate::cx::Cx;
use seekwell_core::{NSEC_PER_MSEC, NSEC_PER_SEC, NSEC_PER_USEC, RqId};

/// Threshold of the test whether the device queues commands. A completion is a sample if more than
/// this many requests are queued or in the driver. The device queues commands if more than this
/// many requests were in the driver at once.
const HW_TAG_LOAD: u32 = 3;
/// Number of samples after which the test whether the device queues commands decides.
const HW_TAG_SAMPLES: u32 = 32;
/// A pause of this length between dispatches ends an observation, ns.
const PAUSE: u64 = 100 * NSEC_PER_MSEC;
/// Length of an observation, ns.
const WINDOW: u64 = NSEC_PER_SEC;
/// Length of the shortest observation that is used, ns.
const WINDOW_MIN: u64 = 300 * NSEC_PER_MSEC;
/// The smallest number of requests in an observation that is used.
const SAMPLES_MIN: u32 = 32;
/// Rates above 20 sectors/us are ignored.
const RATE_MAX: u64 = 20 << RATE_SHIFT;
/// A completion slower than 2^-10 sectors/us ends an observation.
const RATE_LATE: u64 = 1 << (RATE_SHIFT - 10);

impl Bfq {
    /// `bfq_update_hw_tag`: detects whether the device queues commands. Runs before the counters
    /// drop the completed request.
    pub(super) fn learn_depth(&mut self, q: QId) {
        let c = &mut self.core;
        c.max_in_driver = c.max_in_driver.max(c.in_driver);
        if c.hw_tag == 1 || c.in_driver + c.queued <= HW_TAG_LOAD {
            return;
        }
        let x = &c.queues[q as usize];
        let own = x.dispatched + x.queued[0] + x.queued[1];
        if x.short_think && own < HW_TAG_LOAD && c.in_driver < HW_TAG_LOAD {
            return;
        }
        c.hw_tag_samples += 1;
        if c.hw_tag_samples <= HW_TAG_SAMPLES {
            return;
        }
        c.hw_tag = i8::from(c.max_in_driver > HW_TAG_LOAD);
        c.max_in_driver = 0;
        c.hw_tag_samples = 0;
        self.flash_queueing = self.flash && self.core.hw_tag == 1;
        self.core.use_pos = !self.flash_queueing;
    }

    /// `bfq_update_peak_rate`: adds a dispatch to the observation.
    pub(super) fn learn_rate(&mut self, cx: &Cx, q: QId, rq: RqId) {
        let (now, n) = (cx.now().0, cx.rqs[rq].sectors.0);
        if self.window.samples == 0 {
            self.restart_window(now, Some(n));
        } else if now - self.window.last_dispatch > PAUSE && self.core.in_driver == 0 {
            self.close_window(cx, Some(n));
        } else {
            let busy = self.core.in_driver > 0 || now.wrapping_sub(self.last_completion) < MIN_TT.0;
            let sequential = busy && !self.is_seek(cx, self.core.last_position, rq);
            let w = &mut self.window;
            w.samples += 1;
            w.sequential += u32::from(sequential);
            w.sectors += u64::from(n);
            w.largest = if w.samples.is_multiple_of(32) {
                n
            } else {
                w.largest.max(n)
            };
            w.span = now - w.first_dispatch;
            if w.span >= WINDOW {
                self.close_window(cx, Some(n));
            }
        }
        self.core.last_position = cx.rqs[rq].end();
        if self.core.serving == Some(q) {
            self.serving_last_pos = self.core.last_position;
        }
        self.window.last_dispatch = now;
    }
    /// `bfq_reset_rate_computation`: starts a new observation. `first` is the size of its first
    /// request.
    fn restart_window(&mut self, now: u64, first: Option<u32>) {
        let w = &mut self.window;
        let Some(n) = first else {
            w.samples = 0;
            return;
        };
        w.first_dispatch = now;
        w.last_dispatch = now;
        w.samples = 1;
        w.sequential = 0;
        w.sectors = u64::from(n);
        w.largest = n;
    }
    /// `bfq_update_rate_reset`: ends an observation, and updates the peak rate if it was long
    /// enough.
    fn close_window(&mut self, cx: &Cx, next: Option<u32>) {
        let w = &mut self.window;
        if w.samples >= SAMPLES_MIN && w.span >= WINDOW_MIN {
            let to_completion = self.last_completion.saturating_sub(w.first_dispatch);
            w.span = w.span.max(to_completion);
            let w = *w;
            self.learn_from(cx, w);
        }
        self.restart_window(cx.now().0, next);
    }
    fn learn_from(&mut self, cx: &Cx, w: super::RateWindow) {
        let rate = (w.sectors << RATE_SHIFT) / (w.span / NSEC_PER_USEC).max(1);
        let random = w.sequential < (3 * w.samples) >> 2;
        if (random && rate <= self.peak_rate) || rate > RATE_MAX {
            return;
        }
        let share = u64::from(9 * w.sequential / w.samples);
        let weight = (share * w.span / WINDOW).min(8);
        let d = 10 - weight;
        self.peak_rate = (self.peak_rate * (d - 1) / d + rate / d).max(1);
        if self.core.user_budget == 0 {
            self.core.tuned_budget = self.estimated_budget(cx);
        }
    }
    /// `bfq_calc_max_budget`: returns the maximum budget that follows from the peak rate, in
    /// sectors.
    pub(super) fn estimated_budget(&self, cx: &Cx) -> u64 {
        sectors_in(self.peak_rate, cx.clock().to_ms(self.set.timeout_j))
    }
    /// Ends the observation if a completion was late, compared with the largest recent request.
    pub(super) fn late_completion(&mut self, cx: &Cx) {
        let now = cx.now().0;
        let us = (now - self.last_completion) / NSEC_PER_USEC;
        let largest = u64::from(self.window.largest) << RATE_SHIFT;
        if us > MIN_TT.0 / NSEC_PER_USEC && largest / us < RATE_LATE {
            self.close_window(cx, None);
        }
        self.last_completion = now;
    }
}
