//! The primary value of a timed run, second by second, so that a warm-up can be left out.
//!
//! A workload with a fixed duration also measures its start, while caches fill and writeback has
//! not begun. The first seconds are left out, the same number in all runs of a cell. The experiment
//! sets this number, or MSER-5 finds it once from the first block. A number per run would vary by
//! chance, and differ between schedulers.
//!
//! Exceptions: workloads with fixed work have no warm-up, because their clock starts after it.
//! Programs that print their own figure (hdparm, seeker, Blogbench) keep that figure. Percentiles
//! have no values per second. Secondary figures cover the whole run.

use super::throttled::throttled;
use super::{Cell, Outcome, Results, Run, RunKey};
use crate::stats;
use seekwell_core::NSEC_PER_SEC;
use seekwell_core::result::Record;
use serde::{Deserialize, Serialize};

/// Seconds a run needs for a warm-up to be found: four batches of five. With fewer, half of the run
/// would always be removed.
pub const SECONDS_MIN: usize = 20;

/// How a value is computed from the seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaceOf {
    /// Operations per second.
    Rate,
    /// MiB per second.
    Mib,
    /// Mean latency of operations, ms.
    MeanMs,
}

/// A run's primary value, second by second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// How the value is computed.
    pub of: PaceOf,
    /// For each whole second of the workload's clock: the summed quantity (operations, bytes, ns of
    /// latency), and the number of operations.
    pub seconds: Vec<(u64, u64)>,
}

/// Where a record contains the seconds of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paced {
    /// How the value is computed.
    pub of: PaceOf,
    /// Kinds of the workload's operations; empty: all bios.
    pub kinds: Vec<String>,
    /// Duration of the workload, in ns.
    pub time_ns: u64,
}

impl Paced {
    /// The whole seconds of a record, from the start of its clock to the end of its duration. Mean
    /// latencies extend to the stop of the clock, because operations in progress belong to them.
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
    /// The value without the first `drop` seconds, and its number of operations; `None` if nothing
    /// is left.
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

    /// The level of each second. For latency, a second in which no operation ended takes the level
    /// of the second before; the first seconds take the first known level.
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

/// A treatment whose values were not yet steady.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moving {
    /// Treatment, as an index into [`Results::treatments`].
    pub treatment: usize,
    /// Relative difference between the last and the middle third.
    pub change: f64,
}

/// The warm-up that the primary values of a cell's timed runs leave out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Seconds, the same in all runs.
    pub seconds: u32,
    /// True if the first block determined it, false if the experiment set it.
    pub found: bool,
    /// It is half of the run; the run may never have been steady.
    #[serde(default)]
    pub not_reached: bool,
    /// Treatments whose values still changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moving: Vec<Moving>,
}

impl WarmUp {
    /// Determines the warm-up from the runs of the first block; runs without values are ignored.
    pub fn of(warmup_s: Option<f64>, first_block: &[&Pace]) -> Self {
        if let Some(s) = warmup_s {
            return WarmUp {
                // The series has whole seconds.
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

    /// Number of seconds to leave out.
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

/// Share of processor time for other work above which a run is marked.
pub const BUSY: f64 = 0.1;

/// The host was busy with other work during runs of a treatment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Busy {
    /// Treatment, as an index into [`Results::treatments`].
    pub treatment: usize,
    /// Number of affected runs.
    pub runs: usize,
    /// Largest share of processor time that other work took in a run.
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

/// Replaces the primary value of a run by its value without the first `drop` seconds.
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

/// Removes the warm-up from all runs with values per second, records it in their cells, and drops
/// the seconds. Cells with an incomplete first block stay unchanged.
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
                let mut warm = WarmUp::of(method.warmup_s, &paces);
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
