//! Merges the values per second of several runs.

use crate::results::SeriesRow;

/// One second since the start of the run, merged over all runs that lasted as long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Number of runs that lasted as long.
    pub runs: u32,
    /// Number of operations that ended in this second, over all runs.
    pub ops: u64,
    /// Smallest number of operations in one run.
    pub low: u64,
    /// Largest number of operations in one run.
    pub high: u64,
    /// Sum of the latencies of the operations, in ns.
    pub latency_sum_ns: u64,
    /// Largest latency, in ns.
    pub latency_max_ns: u64,
    /// Sum of the squared latencies, in square microseconds; 0 if not known.
    pub square_us2: u64,
}

impl Second {
    /// Returns the mean number of operations per run, in thousandths.
    pub fn mean_milli(&self) -> u64 {
        self.ops.saturating_mul(1000) / u64::from(self.runs.max(1))
    }
    /// Returns the mean latency in ns; 0 if no operation ended.
    pub fn latency_ns(&self) -> u64 {
        self.latency_sum_ns / self.ops.max(1)
    }
    /// Returns the standard deviation of the latencies in ns; 0 if not known, or for fewer than two
    /// operations.
    pub fn deviation_ns(&self) -> u64 {
        if self.ops < 2 || self.square_us2 == 0 {
            return 0;
        }
        let n = self.ops as f64;
        let mean_us = self.latency_sum_ns as f64 / n / 1e3;
        let variance = (self.square_us2 as f64 - n * mean_us * mean_us) / (n - 1.0);
        (libm::sqrt(variance.max(0.0)) * 1e3) as u64
    }
    /// Merges this second with the next to get a coarser time step. The lowest and the highest
    /// value are kept.
    #[must_use]
    pub fn with(self, other: &Second) -> Self {
        Second {
            runs: self.runs + other.runs,
            ops: self.ops + other.ops,
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            latency_sum_ns: self.latency_sum_ns.saturating_add(other.latency_sum_ns),
            latency_max_ns: self.latency_max_ns.max(other.latency_max_ns),
            square_us2: self.square_us2.saturating_add(other.square_us2),
        }
    }
}

/// Merges the seconds of several runs, one run after another.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    seconds: Vec<Second>,
    /// Number of operations in each second of the current run.
    own: Vec<u64>,
}

/// Largest number of seconds that are kept per run: one day. It limits the memory for a trace with
/// a very long pause.
const LONGEST_S: u64 = 86_400;

impl Course {
    /// Adds one second of the current run.
    pub fn add(&mut self, row: &SeriesRow) {
        let SeriesRow(at, ops, _, sum, max, square) = *row;
        if at >= LONGEST_S {
            return;
        }
        let at = at as usize;
        if self.seconds.len() <= at {
            self.seconds.resize(at + 1, Second::default());
        }
        if self.own.len() <= at {
            self.own.resize(at + 1, 0);
        }
        self.own[at] += ops;
        let s = &mut self.seconds[at];
        s.ops += ops;
        s.latency_sum_ns = s.latency_sum_ns.saturating_add(sum);
        s.latency_max_ns = s.latency_max_ns.max(max);
        s.square_us2 = s.square_us2.saturating_add(square);
    }
    /// Ends the current run. All its seconds count, also those in which no operation ended.
    pub fn end_run(&mut self) {
        for (s, ops) in self.seconds.iter_mut().zip(self.own.drain(..)) {
            s.low = if s.runs == 0 { ops } else { s.low.min(ops) };
            s.high = s.high.max(ops);
            s.runs += 1;
        }
    }
    pub fn into_seconds(self) -> Vec<Second> {
        self.seconds
    }
}
