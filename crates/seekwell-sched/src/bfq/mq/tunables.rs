//! Tunables of multi-queue BFQ.

use super::Bfq;
use crate::cx::Cx;
use crate::tunable::{INT_MAX, Kind, StoreError, Tunable, UINT_MAX, strict_u64};
use seekwell_core::Nanos;

/// All tunables of multi-queue BFQ.
#[rustfmt::skip]
pub const TUNABLES: &[Tunable] = &[
    Tunable::new("fifo_expire_sync", Kind::Ms, "ms", "125", (1, INT_MAX),
        "Age at which the oldest sync request of a queue goes first. It is checked once per slot."),
    Tunable::new("fifo_expire_async", Kind::Ms, "ms", "250", (1, INT_MAX),
        "Age at which the oldest async request of a queue goes first. It is checked once per slot."),
    Tunable::count("back_seek_max", "KiB", "16384",
        "Largest distance behind the head at which a request still counts as near (twice this, in sectors)."),
    Tunable::count("back_seek_penalty", "factor", "2",
        "One sector behind the head counts as this many sectors in front of it.").range(1, INT_MAX),
    Tunable::new("slice_idle", Kind::Ms, "ms", "8", (0, INT_MAX),
        "How long the device idles for a queue that will soon send more. 0: never (except with \
         strict_guarantees); less fairness, better use of fast devices."),
    Tunable::new("slice_idle_us", Kind::Us, "us", "8000", (0, UINT_MAX),
        "The value of slice_idle in microseconds."),
    Tunable::count("max_budget", "sectors", "0",
        "Largest number of sectors in a slot; 0: computed from the measured peak rate. Larger: \
         more throughput; smaller: lower latency."),
    Tunable::ms("timeout_sync", "125",
        "Longest time of a slot of a sync or async queue. Larger: more throughput of slow queues; \
         smaller: lower latency.").range(1, INT_MAX),
    Tunable::flag("strict_guarantees", "0",
        "At most one request is in the driver, and the device always idles for the queue in \
         service. Shares are exact, but throughput is lower. Setting it raises slice_idle to at \
         least 8 ms."),
    Tunable::flag("low_latency", "1",
        "Raise the weights of interactive and soft real-time queues."),
];

impl Bfq {
    pub(super) fn show_tunable(&self, cx: &Cx, name: &str) -> Option<String> {
        let ms = |n: Nanos| (n.0 / 1_000_000).to_string();
        Some(match name {
            "fifo_expire_sync" => ms(self.set.fifo_expire[1]),
            "fifo_expire_async" => ms(self.set.fifo_expire[0]),
            "back_seek_max" => self.core.back_seek_max.to_string(),
            "back_seek_penalty" => self.core.back_seek_penalty.to_string(),
            "slice_idle" => ms(self.set.slice_idle),
            "slice_idle_us" => self.set.slice_idle.as_us().to_string(),
            "max_budget" => self.core.user_budget.to_string(),
            "timeout_sync" => cx.clock().to_ms(self.set.timeout_j).to_string(),
            "strict_guarantees" => u8::from(self.set.strict).to_string(),
            "low_latency" => u8::from(self.core.low_latency).to_string(),
            _ => return None,
        })
    }

    pub(super) fn store_tunable(
        &mut self,
        cx: &mut Cx,
        name: &str,
        text: &str,
    ) -> Result<(), StoreError> {
        let Some(t) = TUNABLES.iter().find(|t| t.name == name) else {
            return Err(StoreError::unknown(name));
        };
        let v = strict_u64(name, text)?.clamp(t.min as u64, t.max as u64);
        match name {
            "fifo_expire_sync" => self.set.fifo_expire[1] = Nanos::from_ms(v),
            "fifo_expire_async" => self.set.fifo_expire[0] = Nanos::from_ms(v),
            "back_seek_max" => self.core.back_seek_max = v,
            "back_seek_penalty" => self.core.back_seek_penalty = v,
            "slice_idle" => self.set.slice_idle = Nanos::from_ms(v),
            "slice_idle_us" => self.set.slice_idle = Nanos::from_us(v),
            "max_budget" => {
                self.core.user_budget = v;
                self.core.tuned_budget = if v == 0 { self.estimated_budget(cx) } else { v };
            }
            "timeout_sync" => {
                self.set.timeout_j = cx.ms_to_jiffies(v);
                if self.core.user_budget == 0 {
                    self.core.tuned_budget = self.estimated_budget(cx);
                }
            }
            "strict_guarantees" => {
                if v == 1 && !self.set.strict {
                    self.set.slice_idle = self.set.slice_idle.max(Nanos::from_ms(8));
                }
                self.set.strict = v == 1;
            }
            _ => self.store_low_latency(cx, v == 1),
        }
        Ok(())
    }
    /// `bfq_end_wr`: stores `low_latency`. A write of 0 ends the raising of the queues on the lists
    /// of active and idle queues.
    fn store_low_latency(&mut self, cx: &mut Cx, on: bool) {
        if !on && self.core.low_latency {
            for q in 0..self.core.queues.len() as u32 {
                if self.core.on_a_list(q) && self.core.raised(q) {
                    self.end_wr(cx, q);
                }
            }
        }
        self.core.low_latency = on;
    }
}
