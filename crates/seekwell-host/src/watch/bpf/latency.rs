//! Counts request latencies of devices inside the kernel, by direction and size.

use super::event::Layout;
use super::{failed, histogram, kernel};
use crate::watch::WatchError;
use crate::watch::blocktrace::Tracefs;
use seekwell_core::result::Latency;
use std::os::fd::{AsRawFd, OwnedFd};

/// Names of the classes of requests, in the order of [`LatencyCounts`].
pub const CLASSES: [&str; 6] = [
    "read of up to 16 KiB",
    "read of up to 128 KiB",
    "read above 128 KiB",
    "write of up to 16 KiB",
    "write of up to 128 KiB",
    "write above 128 KiB",
];

/// The histograms of one device.
#[derive(Debug)]
struct Counted {
    counters: OwnedFd,
    /// The table of active requests. The programs use it.
    _slots: OwnedFd,
    /// The attachments to the tracepoints. The programs end when they are closed.
    _attached: Vec<OwnedFd>,
}

/// Running histograms of devices. They end when the value is dropped, or when the process ends.
#[derive(Debug)]
pub struct Latencies(Vec<Counted>);

/// The counts since the start, by class, direction and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyCounts(Vec<u64>);

impl Latencies {
    /// Starts to count. Each device is `major << 20 | minor`.
    ///
    /// # Errors
    /// The kernel does not support this, or this user is not allowed to do it.
    pub fn open(devices: &[u32]) -> Result<Self, WatchError> {
        let tracefs = Tracefs::find()?;
        let events = tracefs.root.join("events/block");
        let layout = |event| Layout::read(&events, event);
        let (start, end) = (layout("block_getrq")?, layout("block_rq_complete")?);
        let mut all = Vec::new();
        for device in devices {
            let slots = kernel::array(histogram::SLOT_BYTES, histogram::SLOTS);
            let slots = slots.map_err(failed("a BPF map"))?;
            let counters = kernel::array(histogram::COUNTERS * 8, 1);
            let counters = counters.map_err(failed("a BPF map"))?;
            let (table, sums) = (slots.as_raw_fd(), counters.as_raw_fd());
            let programs = [
                // The completions are attached first, so that no early start stays in the table.
                (&end, histogram::completed(&end, *device, table, sums)),
                (&start, histogram::started(&start, *device, table)),
            ];
            let mut attached = Vec::new();
            for (l, code) in &programs {
                let program = kernel::load(code).map_err(failed("a BPF program"))?;
                attached.push(kernel::attach(&program, l.id).map_err(failed(l.name))?);
                // The attachment needs the program, which is therefore kept too.
                attached.push(program);
            }
            all.push(Counted {
                counters,
                _slots: slots,
                _attached: attached,
            });
        }
        Ok(Latencies(all))
    }

    /// Returns the counts since the start, summed over the devices.
    ///
    /// # Errors
    /// The kernel does not return the counters.
    pub fn read(&self) -> Result<LatencyCounts, WatchError> {
        let mut sum = LatencyCounts::default();
        let mut one = vec![0; histogram::COUNTERS as usize];
        for c in &self.0 {
            kernel::first_entry(&c.counters, &mut one).map_err(failed("a BPF map"))?;
            for (to, from) in sum.0.iter_mut().zip(&one) {
                *to += from;
            }
        }
        Ok(sum)
    }
}

impl Default for LatencyCounts {
    fn default() -> Self {
        LatencyCounts(vec![0; histogram::COUNTERS as usize])
    }
}

/// A histogram of latencies, exact to 3 %. It is much smaller than [`Latency`], because a trial has
/// one for each second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buckets(Vec<u64>);

impl Buckets {
    /// Adds `n` latencies.
    pub fn add(&mut self, ns: u64, n: u64) {
        self.0.resize(histogram::BUCKETS as usize, 0);
        self.0[histogram::bucket(ns) as usize] += n;
    }
    /// Adds another histogram.
    pub fn merge(&mut self, o: &Buckets) {
        self.0.resize(self.0.len().max(o.0.len()), 0);
        for (to, from) in self.0.iter_mut().zip(&o.0) {
            *to += from;
        }
    }
    /// Returns the number of latencies.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }
    /// Returns the middle of each bucket in ns and its count, in ascending order.
    fn filled(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = (0..histogram::BUCKETS).zip(&self.0);
        all.filter(|b| *b.1 > 0)
            .map(|(b, n)| (histogram::middle_ns(b), *n))
    }
    /// Returns the latency at percentile `p` (0..=100), ns; 0 if there are no latencies.
    pub fn percentile_ns(&self, p: f64) -> u64 {
        let rank = (p / 100.0 * self.count() as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let mut reached = self.filled().skip_while(|(_, n)| {
            below += n;
            below < rank
        });
        reached.next().map_or(0, |b| b.0)
    }
    /// Returns the largest latency, ns; 0 if there are no latencies.
    pub fn max_ns(&self) -> u64 {
        self.filled().last().map_or(0, |b| b.0)
    }
    /// Returns the histogram in the form of the record.
    pub fn latency(&self) -> Latency {
        let mut all = Latency::default();
        self.filled().for_each(|(ns, n)| all.record_many(ns, n));
        all
    }
}

impl LatencyCounts {
    /// Returns the counts after an earlier reading.
    pub fn since(&self, earlier: &LatencyCounts) -> LatencyCounts {
        let pairs = self.0.iter().zip(&earlier.0);
        LatencyCounts(pairs.map(|(a, b)| a.wrapping_sub(*b)).collect())
    }
    /// Returns the histogram of a class: its index in [`CLASSES`].
    pub fn class(&self, class: usize) -> Buckets {
        let from = class * histogram::STRIDE as usize;
        Buckets(self.0[from..from + histogram::BUCKETS as usize].to_vec())
    }
    /// Returns the histogram of all reads.
    pub fn reads(&self) -> Buckets {
        self.sum(0..3)
    }
    /// Returns the histogram of all writes with data.
    pub fn writes(&self) -> Buckets {
        self.sum(3..6)
    }
    /// Returns the sum of the latencies of all reads, and of all writes, ns.
    pub fn sums_ns(&self) -> [u64; 2] {
        let of = |classes: std::ops::Range<usize>| {
            let at = |c: usize| c * histogram::STRIDE as usize + histogram::BUCKETS as usize;
            classes.map(|c| self.0[at(c)]).sum()
        };
        [of(0..3), of(3..6)]
    }
    fn sum(&self, classes: std::ops::Range<usize>) -> Buckets {
        let mut all = Buckets::default();
        classes.for_each(|c| all.merge(&self.class(c)));
        all
    }
    /// Returns the number of completed requests that are in no histogram, because their start is
    /// unknown.
    pub fn missed(&self) -> u64 {
        self.0[histogram::MISSED as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use histogram::{BUCKETS, STRIDE, bucket, middle_ns};

    #[test]
    fn middle_of_a_bucket_is_within_four_percent_of_its_latencies() {
        for ns in [1_100, 4_096, 77_777, 1_000_000, 8_123_456, 2_000_000_000] {
            let middle = middle_ns(bucket(ns)) as f64;
            assert!((middle / ns as f64 - 1.0).abs() < 0.04, "{ns}: {middle}");
        }
        assert_eq!((bucket(0), bucket(1_023)), (0, 0));
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn counts_are_split_by_direction_and_size() {
        let mut earlier = LatencyCounts::default();
        earlier.0[bucket(50_000) as usize] = 2;
        let mut later = earlier.clone();
        later.0[bucket(50_000) as usize] += 3;
        later.0[(4 * STRIDE + bucket(9_000_000)) as usize] += 1;
        later.0[histogram::MISSED as usize] += 7;
        let new = later.since(&earlier);
        assert_eq!((new.reads().count(), new.writes().count()), (3, 1));
        assert_eq!(new.class(4).count(), 1);
        assert_eq!(new.missed(), 7);
        let ms = new.writes().percentile_ns(50.0) as f64 / 1e6;
        assert!((ms / 9.0 - 1.0).abs() < 0.04, "{ms}");
        let both = [new.reads(), new.writes()];
        let mut sum = both[0].clone();
        sum.merge(&both[1]);
        // Three of four latencies are near 50 us.
        assert!(sum.percentile_ns(75.0) < 60_000 && sum.percentile_ns(75.1) > 8_000_000);
        assert_eq!(sum.latency().count(), 4);
        assert_eq!(
            (sum.max_ns(), Buckets::default().percentile_ns(99.0)),
            (both[1].max_ns(), 0)
        );
    }
}
