//! Latencies of a cgroup, and the check against its target.

/// Latency samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stat {
    pub total: u64,
    missed: u64,
    sum_ns: u64,
}

impl Stat {
    pub fn sample(&mut self, latency_ns: u64, target_ns: u64) {
        self.total += 1;
        self.missed += u64::from(latency_ns >= target_ns);
        self.sum_ns = self.sum_ns.saturating_add(latency_ns);
    }
    pub fn add(&mut self, o: Stat) {
        self.total += o.total;
        self.missed += o.missed;
        self.sum_ns = self.sum_ns.saturating_add(o.sum_ns);
    }
    /// Returns whether the latencies meet the target (`latency_stat_sum`). On a rotational disk,
    /// the mean counts. On any other disk, fewer than a tenth of the samples may miss the target.
    pub fn good(&self, rotational: bool, target_ns: u64) -> bool {
        match rotational {
            true => self.sum_ns / self.total.max(1) <= target_ns,
            false => self.missed < (self.total / 10).max(1),
        }
    }
}
