//! Latencies of a cgroup, and whether they meet the target.

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
    /// A rotational disk is judged by its mean, any other disk by whether a tenth misses the target
    /// (`latency_stat_sum`).
    pub fn good(&self, rotational: bool, target_ns: u64) -> bool {
        match rotational {
            true => self.sum_ns / self.total.max(1) <= target_ns,
            false => self.missed < (self.total / 10).max(1),
        }
    }
}
