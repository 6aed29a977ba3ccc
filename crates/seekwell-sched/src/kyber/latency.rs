//! Kyber's latency histograms: eight buckets of a quarter of the target each, read as percentiles.

use crate::cx::Cx;

/// Number of buckets; the first half is within the target.
const BUCKETS: usize = 8;
/// The first bucket beyond the target.
pub const GOOD: u32 = 4;
/// With this many samples, the histogram may be read before the window ends.
const ENOUGH: u64 = 500;

/// The bucket of a latency.
pub fn bucket(latency_ns: u64, target_ns: u64) -> usize {
    let quarter = (target_ns / 4).max(1);
    let beyond = latency_ns.saturating_sub(1);
    // On a disk nearly all latencies take this path, which avoids a division.
    if beyond >= quarter.saturating_mul(BUCKETS as u64 - 1) {
        return BUCKETS - 1;
    }
    (beyond / quarter) as usize
}

/// The end of a domain's current window, shared by its two kinds of latency.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    end_j: Option<u64>,
}

/// Counts of one kind of latency in one domain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Histogram([u64; BUCKETS]);

impl Histogram {
    /// Number of samples since the histogram was last read.
    pub fn samples(&self) -> u64 {
        self.0.iter().sum()
    }
    /// `calculate_percentile`: the bucket of the percentile. `None` while there are too few samples
    /// and the window is still open. Reading empties the histogram.
    pub fn percentile(&mut self, window: &mut Window, cx: &mut Cx, percent: u64) -> Option<u32> {
        let samples = self.samples();
        if samples == 0 {
            return None;
        }
        let (now, second) = (cx.jiffies(), cx.hz());
        let end = *window.end_j.get_or_insert(now + second);
        if samples < ENOUGH && now < end {
            return None;
        }
        window.end_j = None;
        let mut rest = (samples * percent).div_ceil(100);
        let mut found = BUCKETS as u32 - 1;
        for (b, &n) in self.0[..BUCKETS - 1].iter().enumerate() {
            if n >= rest {
                found = b as u32;
                break;
            }
            rest -= n;
        }
        self.0 = [0; BUCKETS];
        cx.why(super::rules::PERCENTILE, || {
            format!("p{percent} of {samples} samples lies in bucket {found}")
        });
        Some(found)
    }
}

/// All histograms.
#[derive(Clone, Debug, Default)]
pub struct Histograms {
    /// Time from allocation to completion.
    pub total: [Histogram; 3],
    /// Time from issue to completion.
    pub io: [Histogram; 3],
}

impl Histograms {
    /// Adds a request's latencies.
    pub fn add(&mut self, domain: usize, total_ns: u64, io_ns: u64, target_ns: u64) {
        self.total[domain].0[bucket(total_ns, target_ns)] += 1;
        self.io[domain].0[bucket(io_ns, target_ns)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k4_buckets() {
        let b = |ns| bucket(ns, 2_000_000);
        assert_eq!(b(0), 0);
        assert_eq!(b(500_000), 0);
        assert_eq!(b(500_001), 1);
        assert_eq!(b(2_000_000), 3);
        assert_eq!(b(2_000_001), 4);
        assert_eq!(b(3_500_000), 6);
        assert_eq!(b(3_500_001), 7);
        assert_eq!(b(9_000_000), 7);
        assert_eq!(bucket(5, 3), 4, "a target below 4 ns divides by one");
    }
}
