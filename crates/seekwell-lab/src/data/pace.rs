//! The primary value of a timed run for each second, so that a warm-up can be left out.
//!
//! A workload with a fixed duration also measures its start, during which caches fill and writeback
//! has not begun. So the first seconds are left out, the same number in all runs of a cell. The
//! experiment sets this number, or MSER-5 determines it from the first block. If each run had its
//! own number, the numbers would vary by chance and differ between schedulers.
//!
//! There are four exceptions. Workloads with a fixed amount of work have no warm-up, because their
//! clock starts after it. Programs that print a result themselves (hdparm, seeker, Blogbench) keep
//! that result. Percentiles have no values per second. Secondary metrics cover the whole run.

use super::throttled::throttled;
use super::{Cell, Outcome, Results, Run, RunKey};
use crate::stats;
use seekwell_core::NSEC_PER_SEC;
use seekwell_core::result::Record;
use serde::{Deserialize, Serialize};

/// Smallest length of a run, in s, for which a warm-up is determined: four batches of five seconds.
/// In a shorter run, half of the seconds would always be left out.
pub const SECONDS_MIN: usize = 20;

/// How a value is computed from the seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaceOf {
    /// Operations per second.
    Rate,
    /// MiB per second.
    Mib,
    /// Mean latency of the operations, in ms.
    MeanMs,
}

/// The primary value of a run for each second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// How the value is computed.
    pub of: PaceOf,
    /// For each whole second of the workload's clock, the sum of the measured quantity and the
    /// number of operations. The quantity is operations, bytes, or ns of latency.
    pub seconds: Vec<(u64, u64)>,
}

/// Where the record of a run contains the seconds of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paced {
    /// How the value is computed.
    pub of: PaceOf,
    /// Kinds of operations of the workload; empty for all bios.
    pub kinds: Vec<String>,
    /// Duration of the workload, in ns.
    pub time_ns: u64,
}

impl Paced {
    /// Reads the whole seconds of a record, from the start of the workload's clock to the end of
    /// its duration. For mean latencies, the seconds until the clock stops are added, because
    /// operations that are still in progress belong to the mean. Returns `None` if there is no
    /// whole second.
    pub fn read(&self, record: &Record) -> Option<Pace> {
        let (from, stop) = record.window_ns();
        let first = from.div_ceil(NSEC_PER_SEC);
        let end = match self.of {
            PaceOf::MeanMs => stop.div_ceil(NSEC_PER_SEC),
            _ => stop.min(from.saturating_add(self.time_ns)) / NSEC_PER_SEC,
        };
        let length = usize::try_from(end.checked_sub(first)?).ok()?;
        let mut seconds = vec![(0, 0); length];
        let mut add = |at: u64, ops: u64, bytes: u64, latency_ns: u64| {
            let at = at.checked_sub(first).and_then(|s| usize::try_from(s).ok());
            if let Some(s) = at.and_then(|s| seconds.get_mut(s)) {
                s.1 += ops;
                s.0 += match self.of {
                    PaceOf::Rate => ops,
                    PaceOf::Mib => bytes,
                    PaceOf::MeanMs => latency_ns,
                };
            }
        };
        if self.kinds.is_empty() {
            for s in &record.seconds {
                add(s.at_s, s.reads + s.writes, s.bytes, s.latency_sum_ns);
            }
        }
        for o in self.kinds.iter().filter_map(|k| record.operation(k)) {
            for (at, s) in o.seconds.iter().enumerate() {
                add(at as u64, s.ops, s.bytes, s.latency_sum_ns);
            }
        }
        Some(Pace {
            of: self.of,
            seconds,
        })
    }
}

impl Pace {
    /// Returns the value without the first `drop` seconds, and the number of operations that it is
    /// based on. Returns `None` if no seconds remain.
    pub fn value(&self, drop: usize) -> Option<(f64, u64)> {
        let kept = self.seconds.get(drop..).filter(|k| !k.is_empty())?;
        let sum: u64 = kept.iter().map(|s| s.0).sum();
        let n: u64 = kept.iter().map(|s| s.1).sum();
        let value = match self.of {
            PaceOf::Rate => sum as f64 / kept.len() as f64,
            PaceOf::Mib => sum as f64 / f64::from(1 << 20) / kept.len() as f64,
            PaceOf::MeanMs if n == 0 => return None,
            PaceOf::MeanMs => sum as f64 / 1e6 / n as f64,
        };
        Some((value, n))
    }

    /// Returns the measured quantity of each second. For latency, a second without operations gets
    /// the value of the second before it. The first seconds get the first known value.
    fn levels(&self) -> Vec<f64> {
        let mean = |s: &(u64, u64)| (s.1 > 0).then(|| s.0 as f64 / s.1 as f64);
        if self.of != PaceOf::MeanMs {
            return self.seconds.iter().map(|s| s.0 as f64).collect();
        }
        let mut last = self.seconds.iter().find_map(mean).unwrap_or(0.0);
        let each = self.seconds.iter().map(|s| {
            last = mean(s).unwrap_or(last);
            last
        });
        each.collect()
    }
}

/// A treatment whose values still changed at the end of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moving {
    /// Index of the treatment in [`Results::treatments`].
    pub treatment: usize,
    /// Relative difference between the last third and the middle third of a run.
    pub change: f64,
}

/// The warm-up that the primary values of a cell's timed runs leave out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Length of the warm-up in s, the same in all runs.
    pub seconds: u32,
    /// True if the first block determined it, false if the experiment set it.
    pub found: bool,
    /// True if the warm-up is half of the run. The run may then never have been steady.
    #[serde(default)]
    pub not_reached: bool,
    /// Treatments whose values still changed at the end of their runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moving: Vec<Moving>,
}

impl WarmUp {
    /// Determines the warm-up from the runs of the first block. If the experiment sets `warmup_s`,
    /// that value is used.
    pub fn from_first_block(warmup_s: Option<f64>, first_block: &[&Pace]) -> Self {
        if let Some(s) = warmup_s {
            return WarmUp {
                // The series has one value per second, so the warm-up is rounded up to whole
                // seconds.
                seconds: libm::ceil(s).clamp(0.0, f64::from(u32::MAX)) as u32,
                ..WarmUp::default()
            };
        }
        let series: Vec<Vec<f64>> = first_block.iter().map(|p| p.levels()).collect();
        let mut warm = WarmUp {
            found: true,
            ..WarmUp::default()
        };
        if series.iter().map(Vec::len).min().unwrap_or(0) >= SECONDS_MIN {
            let cut = stats::frozen_warm_up(&series);
            warm.seconds = u32::try_from(cut.drop).unwrap_or(u32::MAX);
            warm.not_reached = cut.not_reached;
        }
        warm
    }

    /// Returns the number of seconds to leave out.
    pub fn drop(&self) -> usize {
        self.seconds as usize
    }

    fn look(&mut self, cell: &Cell, runs: &[Run], margin: f64) {
        for &treatment in &cell.treatments {
            let own = runs.iter().filter(|r| r.key.treatment == treatment);
            let series = own.filter_map(|r| r.pace.as_ref()).map(Pace::levels);
            let series: Vec<Vec<f64>> = series.filter(|s| s.len() >= SECONDS_MIN).collect();
            let moved = stats::moving(&series, self.drop(), margin).filter(|m| m.moving);
            self.moving.extend(moved.map(|m| Moving {
                treatment,
                change: stats::stored(libm::expm1(m.mean)),
            }));
        }
    }
}

/// Fraction of CPU time for other work above which a run is marked.
pub const BUSY: f64 = 0.1;

/// A treatment with runs during which the host was busy with other work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Busy {
    /// Index of the treatment in [`Results::treatments`].
    pub treatment: usize,
    /// Number of affected runs.
    pub runs: usize,
    /// Largest fraction of CPU time that other work took in one run.
    pub most: f64,
}

fn busy(cell: &Cell, runs: &[Run]) -> Vec<Busy> {
    let of = |treatment: &usize| {
        let own = runs.iter().filter(|r| r.key.treatment == *treatment);
        let shares: Vec<f64> = own.filter_map(|r| r.others).filter(|o| *o > BUSY).collect();
        let most = shares.iter().copied().reduce(f64::max)?;
        Some(Busy {
            treatment: *treatment,
            runs: shares.len(),
            most: stats::stored(most),
        })
    };
    cell.treatments.iter().filter_map(of).collect()
}

/// Replaces the primary value of a run with its value without the first `drop` seconds.
pub(crate) fn cut(run: &mut Run, drop: usize) {
    let Some(pace) = run.pace.as_ref().filter(|_| drop > 0) else {
        return;
    };
    match (pace.value(drop), run.values.first_mut()) {
        (Some((value, n)), Some(first)) => (first.value, first.n) = (value, n),
        _ if matches!(run.outcome, Outcome::Failed(_) | Outcome::Censored(_)) => {}
        _ => {
            run.outcome = Outcome::Failed(format!("nothing is left after a warm-up of {drop} s"));
            run.values.clear();
        }
    }
}

/// Removes the warm-up from the values of all runs that have values per second. Records the warm-up
/// in the cells and removes the values per second. The values of a cell whose first block is
/// incomplete are not changed.
pub fn settle(results: &mut Results) {
    let method = results.about.method.clone();
    results.runs.sort_by_key(|r| r.key);
    let mut rest = results.runs.as_mut_slice();
    for (i, cell) in results.cells.iter_mut().enumerate() {
        let from = rest.partition_point(|r| r.key.cell < i);
        let to = rest.partition_point(|r| r.key.cell <= i);
        let (own, behind) = rest.split_at_mut(to);
        rest = behind;
        let own = &mut own[from..];
        let first = |t: &usize| {
            let (cell, block, treatment) = (i, 0, *t);
            let key = RunKey {
                cell,
                block,
                treatment,
            };
            own.iter().find(|r| r.key == key)
        };
        let first: Option<Vec<&Run>> = cell.treatments.iter().map(first).collect();
        if let Some(first) = first {
            let paces: Vec<&Pace> = first.iter().filter_map(|r| r.pace.as_ref()).collect();
            if !paces.is_empty() {
                let mut warm = WarmUp::from_first_block(method.warmup_s, &paces);
                warm.look(cell, own, method.margin);
                own.iter_mut().for_each(|r| cut(r, warm.drop()));
                cell.warm_up = Some(warm);
            }
        }
        if own.iter().any(|r| r.others.is_some()) {
            cell.busy = busy(cell, own);
        }
        if own.iter().any(|r| r.wbt_lat_usec.is_some()) {
            cell.throttled = throttled(cell, own);
        }
        own.iter_mut()
            .for_each(|r| (r.pace, r.others, r.wbt_lat_usec) = (None, None, None));
    }
}
