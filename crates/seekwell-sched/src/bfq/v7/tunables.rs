//! Tunables of v7. The names are those of the kernel; times are in milliseconds and are rounded to
//! jiffies.

use super::BfqSq;
use crate::cx::Cx;
use crate::tunable::{INT_MAX, Kind, StoreError, Tunable, legacy_int};

#[rustfmt::skip]
const COMMON: [Tunable; 18] = [
    Tunable::ms("fifo_expire_sync", "125",
        "Age at which the oldest sync request of a queue goes first. It is checked once per \
         slot.").range(1, INT_MAX),
    Tunable::ms("fifo_expire_async", "250",
        "Age at which the oldest async request of a queue goes first. It is checked once per \
         slot.").range(1, INT_MAX),
    Tunable::count("back_seek_max", "KiB", "16384",
        "Largest distance behind the head at which a request still counts as near (twice this, in sectors)."),
    Tunable::count("back_seek_penalty", "factor", "2",
        "One sector behind the head counts as this many sectors in front of it.").range(1, INT_MAX),
    Tunable::ms("slice_idle", "8",
        "How long the device idles for a queue that will soon send more. 0: never; less fairness, \
         better use of fast devices."),
    Tunable::count("max_budget", "sectors", "0",
        "Largest number of sectors in a slot; 0: computed from the measured peak rate. Larger: \
         more throughput; smaller: lower latency."),
    Tunable::count("max_budget_async_rq", "requests", "4",
        "Largest number of async requests in flight while other queues are busy; four times as \
         many if no other queue is busy.").range(1, INT_MAX),
    Tunable::ms("timeout_sync", "125",
        "Longest time of a slot of a sync queue, from its first completion on.").range(1, INT_MAX),
    Tunable::ms("timeout_async", "40", "Longest time of a slot of an async queue."),
    Tunable::flag("low_latency", "1",
        "Raise the weights of interactive and soft real-time queues."),
    Tunable::count("wr_coeff", "factor", "20",
        "Factor on the weight of raised queues.").range(1, INT_MAX),
    Tunable::ms("wr_max_time", "0 (computed)",
        "Longest raising period; 0: computed from the device's speed. Reading it gives the value in force."),
    Tunable::ms("wr_rt_max_time", "300", "How long a soft real-time queue is raised."),
    Tunable::ms("wr_min_idle_time", "2000", "A queue idle for this long counts as interactive."),
    Tunable::ms("wr_min_inter_arr_async", "500",
        "If no async request arrives for this time, the next one raises its async queue."),
    Tunable::count("wr_max_softrt_rate", "sectors/s", "7000",
        "Queues slower than this may be soft real-time; 0: none."),
    Tunable::new("weights", Kind::ReadOnly, "list", "", (0, 0),
        "Lists the queues with their weights and the state of raising."),
    Tunable::count("quantum", "requests", "4",
        "v7r5: largest number of requests of a queue in flight while other queues are \
         busy.").range(1, INT_MAX),
];

/// Tunables of v7r5: all that v7 has.
pub const V7R5: &[Tunable] = &COMMON;
/// Tunables of v7r8: all except `quantum`.
pub const V7R8: &[Tunable] = {
    let (v7r8, _) = COMMON.split_at(COMMON.len() - 1);
    v7r8
};

impl BfqSq {
    pub(super) fn show_tunable(&self, cx: &Cx, name: &str) -> Option<String> {
        let ms = |j: u64| cx.clock().to_ms(j).to_string();
        let s = &self.set;
        Some(match name {
            "fifo_expire_sync" => ms(s.fifo_expire_j[1]),
            "fifo_expire_async" => ms(s.fifo_expire_j[0]),
            "back_seek_max" => self.core.back_seek_max.to_string(),
            "back_seek_penalty" => self.core.back_seek_penalty.to_string(),
            "slice_idle" => ms(s.slice_idle_j),
            "max_budget" => self.core.user_budget.to_string(),
            "max_budget_async_rq" => s.max_budget_async_rq.to_string(),
            "timeout_sync" => ms(s.timeout_j[1]),
            "timeout_async" => ms(s.timeout_j[0]),
            "low_latency" => u8::from(self.core.low_latency).to_string(),
            "wr_coeff" => s.wr_coeff.to_string(),
            "wr_max_time" => ms(self.wr_duration_j()),
            "wr_rt_max_time" => ms(s.wr_rt_max_time_j),
            "wr_min_idle_time" => ms(s.wr_min_idle_j),
            "wr_min_inter_arr_async" => ms(s.wr_min_inter_arr_async_j),
            "wr_max_softrt_rate" => s.softrt_rate.to_string(),
            "quantum" if self.r5 => s.quantum.to_string(),
            "weights" => crate::bfq::weights_text(&self.core, cx),
            _ => return None,
        })
    }

    pub(super) fn store_tunable(
        &mut self,
        cx: &mut Cx,
        name: &str,
        text: &str,
    ) -> Result<(), StoreError> {
        let t = if self.r5 { V7R5 } else { V7R8 };
        let Some(t) = t.iter().find(|t| t.name == name) else {
            return Err(StoreError::unknown(name));
        };
        if t.kind == Kind::ReadOnly {
            return Err(StoreError::read_only(name));
        }
        let v = legacy_int(text).clamp(t.min, t.max) as u64;
        let j = cx.ms_to_jiffies(v);
        let s = &mut self.set;
        match name {
            "fifo_expire_sync" => s.fifo_expire_j[1] = j,
            "fifo_expire_async" => s.fifo_expire_j[0] = j,
            "back_seek_max" => self.core.back_seek_max = v,
            "back_seek_penalty" => self.core.back_seek_penalty = v,
            "slice_idle" => s.slice_idle_j = j,
            "max_budget_async_rq" => s.max_budget_async_rq = v as u32,
            "timeout_async" => s.timeout_j[0] = j,
            "wr_coeff" => s.wr_coeff = v,
            "wr_max_time" => s.wr_max_time_j = j,
            "wr_rt_max_time" => s.wr_rt_max_time_j = j,
            "wr_min_idle_time" => s.wr_min_idle_j = j,
            "wr_min_inter_arr_async" => s.wr_min_inter_arr_async_j = j,
            "wr_max_softrt_rate" => s.softrt_rate = v,
            "quantum" => s.quantum = v as u32,
            "max_budget" => {
                self.core.user_budget = v;
                self.core.tuned_budget = if v == 0 { self.estimated_budget(cx) } else { v };
            }
            "timeout_sync" => {
                s.timeout_j[1] = j;
                if self.core.user_budget == 0 {
                    self.core.tuned_budget = self.estimated_budget(cx);
                }
            }
            _ => self.store_low_latency(v != 0),
        }
        Ok(())
    }

    /// Stores `low_latency`. A write of 0 ends the raising of the queues on the lists of active and
    /// idle queues. The original also decrements the count of raised queues once for every busy
    /// queue on these lists, even if that queue was not raised.
    fn store_low_latency(&mut self, on: bool) {
        if !on && self.core.low_latency {
            for q in 0..self.core.queues.len() as u32 {
                if self.core.on_a_list(q) {
                    self.end_wr(q);
                }
            }
        }
        self.core.low_latency = on;
    }
}
