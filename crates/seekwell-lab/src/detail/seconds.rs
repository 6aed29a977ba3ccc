//! Seconds of several runs put together.

use crate::results::SeriesRow;

/// A second over the runs that lasted so long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Runs that lasted so long.
    pub runs: u32,
    /// Operations of all of them that ended in it.
    pub ops: u64,
    /// Fewest of a run.
    pub low: u64,
    /// Most of a run.
    pub high: u64,
    /// Sum of their latencies, ns.
    pub latency_sum_ns: u64,
    /// Longest of them, ns.
    pub latency_max_ns: u64,
    /// Sum of their squares, square microseconds; 0 where it was not kept.
    pub square_us2: u64,
}

impl Second {
    /// Operations of a run in the mean, thousandths.
    pub fn mean_milli(&self) -> u64 {
        self.ops.saturating_mul(1000) / u64::from(self.runs.max(1))
    }
    /// Mean latency, ns; 0 where nothing ended.
    pub fn latency_ns(&self) -> u64 {
        self.latency_sum_ns / self.ops.max(1)
    }
    /// Standard deviation of the latencies, ns; 0 for fewer than two.
    pub fn deviation_ns(&self) -> u64 {
        if self.ops < 2 || self.square_us2 == 0 {
            return 0;
        }
        let n = self.ops as f64;
        let mean_us = self.latency_sum_ns as f64 / n / 1e3;
        let variance = (self.square_us2 as f64 - n * mean_us * mean_us) / (n - 1.0);
        (libm::sqrt(variance.max(0.0)) * 1e3) as u64
    }
    /// With the next one: a coarser step, in which what is lowest and highest stays.
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

/// Puts runs together, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    seconds: Vec<Second>,
    /// Of the run under way: operations by second.
    own: Vec<u64>,
}

/// Seconds of a run that are kept: a day. A pause of years costs nothing.
const LONGEST_S: u64 = 86_400;

impl Course {
    /// A second of the run under way.
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
    /// The run is over: its seconds count, also those in which nothing ended.
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
