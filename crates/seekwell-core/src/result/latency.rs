//! Latencies: a histogram, and exact values of mean, minimum and maximum.

use crate::time::NSEC_PER_SEC;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A histogram of latencies from 1 ns to one hour, with three significant digits.
#[derive(Clone, Debug)]
pub struct Latency {
    hist: Histogram<u64>,
    sum_ns: u128,
    max_ns: u64,
    min_ns: u64,
}

const HIGHEST_NS: u64 = 3600 * NSEC_PER_SEC;

impl Default for Latency {
    fn default() -> Self {
        // The library accepts these bounds, which are constant.
        let hist = Histogram::new_with_bounds(1, HIGHEST_NS, 3).expect("constant bounds");
        Latency {
            hist,
            sum_ns: 0,
            max_ns: 0,
            min_ns: u64::MAX,
        }
    }
}

impl Latency {
    /// Adds one latency, ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.hist.saturating_record(ns.max(1));
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
        self.min_ns = self.min_ns.min(ns);
    }
    /// Adds `n` equal latencies, ns.
    pub fn record_many(&mut self, ns: u64, n: u64) {
        if n > 0 {
            self.hist.saturating_record_n(ns.max(1), n);
            self.sum_ns += u128::from(ns) * u128::from(n);
            self.max_ns = self.max_ns.max(ns);
            self.min_ns = self.min_ns.min(ns);
        }
    }
    /// Adds all latencies of another histogram.
    pub fn merge(&mut self, o: &Latency) {
        for v in o.hist.iter_recorded() {
            self.hist
                .saturating_record_n(v.value_iterated_to(), v.count_at_value());
        }
        self.sum_ns += o.sum_ns;
        self.max_ns = self.max_ns.max(o.max_ns);
        self.min_ns = self.min_ns.min(o.min_ns);
    }
    /// Returns the number of latencies.
    pub fn count(&self) -> u64 {
        self.hist.len()
    }
    /// Returns the mean, ns; 0 if there are no latencies.
    pub fn mean_ns(&self) -> f64 {
        if self.count() == 0 {
            0.0
        } else {
            self.sum_ns as f64 / self.count() as f64
        }
    }
    /// Returns the value at percentile `p` (0..=100), ns; 0 if there are no latencies.
    pub fn percentile_ns(&self, p: f64) -> u64 {
        if self.count() == 0 {
            0
        } else {
            self.hist.value_at_percentile(p).min(self.max_ns)
        }
    }
    /// Returns the largest latency, ns.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }
    /// Returns the smallest latency, ns; 0 if there are no latencies.
    pub fn min_ns(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.min_ns }
    }
    /// Returns the value (ns) and the count of each bucket that is not empty, in ascending order.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let pair = |v: hdrhistogram::iterators::IterationValue<u64>| {
            (v.value_iterated_to(), v.count_at_value())
        };
        self.hist.iter_recorded().map(pair).collect()
    }
}

#[derive(Serialize, Deserialize)]
struct LatencyText {
    count: u64,
    mean_ns: f64,
    min_ns: u64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    max_ns: u64,
    sum_ns: String,
    buckets: Vec<(u64, u64)>,
}

impl Serialize for Latency {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        LatencyText {
            count: self.count(),
            mean_ns: self.mean_ns(),
            min_ns: self.min_ns(),
            p50_ns: self.percentile_ns(50.0),
            p90_ns: self.percentile_ns(90.0),
            p99_ns: self.percentile_ns(99.0),
            p999_ns: self.percentile_ns(99.9),
            max_ns: self.max_ns,
            sum_ns: self.sum_ns.to_string(),
            buckets: self.buckets(),
        }
        .serialize(s)
    }
}

impl<'de> Deserialize<'de> for Latency {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let t = LatencyText::deserialize(d)?;
        let mut l = Latency::default();
        for (v, n) in t.buckets {
            l.hist.saturating_record_n(v, n);
        }
        l.sum_ns = t.sum_ns.parse().map_err(serde::de::Error::custom)?;
        l.max_ns = t.max_ns;
        l.min_ns = if t.count == 0 { u64::MAX } else { t.min_ns };
        Ok(l)
    }
}
