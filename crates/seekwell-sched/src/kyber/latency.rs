//! Kyber's latency histograms. Each has eight buckets, and a bucket is a quarter of the latency
//! target wide. Percentiles are read from them.

use crate::cx::Cx;

/// Number of buckets. The first half of the buckets is within the target.
const BUCKETS: usize = 8;
/// Index of the first bucket beyond the target.
pub const GOOD: u32 = 4;
/// A histogram with this many samples can be read before its window ends.
const ENOUGH: u64 = 500;

/// Returns the bucket of a latency, for a latency target.
pub fn bucket(latency_ns: u64, target_ns: u64) -> usize {
    let quarter = (target_ns / 4).max(1);
    let beyond = latency_ns.saturating_sub(1);
    // On a hard disk nearly all latencies take this path, which avoids a division.
    if beyond >= quarter.saturating_mul(BUCKETS as u64 - 1) {
        return BUCKETS - 1;
    }
    (beyond / quarter) as usize
}

/// End of the current window of a domain. Both histograms of the domain use it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    end_j: Option<u64>,
}

/// Number of requests in each bucket, for one kind of latency in one domain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Histogram([u64; BUCKETS]);

impl Histogram {
    /// Returns the number of samples since the histogram was last read.
    pub fn samples(&self) -> u64 {
        self.0.iter().sum()
    }
    /// `calculate_percentile`: returns the bucket that contains the percentile, and empties the
    /// histogram. Returns `None` if there are too few samples and the window has not ended.
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

/// The histograms of all domains.
#[derive(Clone, Debug, Default)]
pub struct Histograms {
    /// Time from allocation to completion, by domain.
    pub total: [Histogram; 3],
    /// Time from issue to completion, by domain.
    pub io: [Histogram; 3],
}

impl Histograms {
    /// Adds the latencies of a request to the histograms of its domain.
    pub fn add(&mut self, domain: usize, total_ns: u64, io_ns: u64, target_ns: u64) {
        self.total[domain].0[bucket(total_ns, target_ns)] += 1;
        self.io[domain].0[bucket(io_ns, target_ns)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_buckets_are_a_quarter_of_the_target_wide() {
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
