//! Compares runs if there is only one run of each treatment. Without repetitions there is no spread
//! and no test, so the wording claims no more than a single run can show.
//!
//! Each run is deterministic. It does not show the effect of another seed, another disk of the same
//! model or a slightly different program. Runs are compared by what programs see: the metric of the
//! workload, or the latency of its operations. The latency of bios is used only if there is no
//! program (a replay). Values closer than [`SAME_PERCENT`] are called level. A value with fewer
//! than [`FEWEST`] operations supports no claim. Kernels of different generations place the same
//! files differently. Between such kernels, a difference that file placement alone can cause is not
//! attributed to the scheduler.

use crate::experiment::Deciding;
use seekwell_core::result::{Metric, Record};
use seekwell_workload::Needs;

/// Values closer than this are called level, in percent.
pub const SAME_PERCENT: f64 = 2.0;

/// Fewest operations for which a mean or a rate is reported. The standard deviation of latencies is
/// about as large as their mean, so the mean of ten has a standard error of about a third. With
/// fewer operations, even a factor of two is not reliable.
pub const FEWEST: u64 = 10;

/// Factor by which file placement alone can change a result on a rotating disk. Measured with the
/// default `streams` workload on hdd:hitachi-7k200: 32.0 to 60.8 MB/s over seeds 1 to 6.
const PLACED_ROTATING: f64 = 1.9;
/// The same factor on flash. Measured with the default `interactive` workload on ssd:sata3-256-2011
/// under cfq: 5.18 to 5.75 ms.
const PLACED_FLASH: f64 = 1.11;

/// The quantity by which runs are compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum By {
    /// The metric of the workload.
    Metric,
    /// Time for the same amount of work.
    Duration,
    /// Mean latency of the operations of this kind.
    Operation(String),
    /// Mean latency of reads.
    ReadLatency,
    /// Mean latency of writes.
    WriteLatency,
}

/// The ranking of the runs, with their values.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The quantity by which the runs are ranked.
    pub by: By,
    /// True if larger values are better.
    pub higher_is_better: bool,
    /// The value and the index of each run, best first.
    pub order: Vec<(f64, usize)>,
    /// Number of operations that the value of each run is based on, by run index; `None` if not
    /// known.
    pub counts: Vec<Option<u64>>,
    /// Index of the best run of another kernel generation, if file placement alone can explain its
    /// difference from the best run of all.
    placed: Option<usize>,
}

/// Returns the main kind of operation: the kind that the metric counts, or else the most frequent
/// kind. Returns `None` if a run has no operation of that kind.
pub fn kind_of(records: &[Record]) -> Option<String> {
    let first = records.first()?;
    let named = first.metric.as_ref().and_then(|m| {
        let kind = m.operation.split(", ").next()?;
        (!kind.is_empty()).then(|| kind.to_owned())
    });
    let most = first.operations.iter().max_by_key(|o| o.latency.count());
    named
        .or_else(|| most.map(|o| o.kind.clone()))
        .filter(|k| records.iter().all(|r| r.operation(k).is_some()))
}

/// Returns the ranking of runs that did the same work, one run of each treatment. Returns `None`
/// for fewer than two runs.
pub fn standing(records: &[Record]) -> Option<Standing> {
    let first = records.first().filter(|_| records.len() > 1)?;
    let mode = first
        .params
        .get("mode")
        .map(String::as_str)
        .unwrap_or_default();
    let reads = records.iter().all(|r| r.read.ios > 0);
    // A run that ended early has no metric, so the first run that has a metric names it.
    let metric = records.iter().find_map(|r| r.metric.as_ref());
    let by = if metric.is_some() {
        By::Metric
    } else if mode.starts_with("depth") || mode == "closed" {
        // The amount of work is fixed, so runs are compared by its duration.
        By::Duration
    } else if let Some(kind) = kind_of(records) {
        By::Operation(kind)
    } else if reads {
        By::ReadLatency
    } else {
        By::WriteLatency
    };
    let higher_is_better = metric.is_some_and(|m| m.higher_is_better);
    // The value of each run, and the number of operations that the value is based on.
    let worst = match higher_is_better {
        true => 0.0,
        false => f64::INFINITY,
    };
    let value = |r: &Record| match &by {
        // A run that reached its limit ranks behind all finished runs.
        _ if r.censored() => (worst, None),
        By::Metric => match &r.metric {
            Some(m) => (m.value, Some(m.n).filter(|_| !m.operation.is_empty())),
            None if higher_is_better => (0.0, Some(0)),
            None => (f64::INFINITY, Some(0)),
        },
        By::Duration => (r.duration_ns as f64, Some(r.read.ios + r.write.ios)),
        By::Operation(kind) => match r.operation(kind) {
            Some(o) => (o.latency.mean_ns(), Some(o.latency.count())),
            None => (0.0, Some(0)),
        },
        By::ReadLatency => (r.read.latency.mean_ns(), Some(r.read.ios)),
        By::WriteLatency => (r.write.latency.mean_ns(), Some(r.write.ios)),
    };
    let (values, counts): (Vec<f64>, Vec<Option<u64>>) = records.iter().map(value).unzip();
    let mut order: Vec<_> = values.into_iter().zip(0..).collect();
    // Runs with equal values keep the order in which they were requested.
    order.sort_by(|a, b| {
        if higher_is_better {
            b.0.total_cmp(&a.0)
        } else {
            a.0.total_cmp(&b.0)
        }
    });
    let mut v = Standing {
        by,
        higher_is_better,
        order,
        counts,
        placed: None,
    };
    v.placed = v.next_generation(records);
    Some(v)
}

/// Returns one copy of the runs for each deciding metric, with that metric as the metric of the
/// run. If only one metric decides, returns one copy with unchanged runs.
pub fn by_rows(records: &[Record]) -> Vec<Vec<Record>> {
    let spec = records.iter().find_map(|r| r.spec.as_ref());
    let rows = spec
        .map(|s| Deciding::usual(&s.workload).rows)
        .unwrap_or_default();
    let mut views = vec![records.to_vec()];
    for (row, spec) in rows.iter().zip(std::iter::repeat(spec)) {
        let Some(spec) = spec else { continue };
        let view = |r: &Record| {
            let value = row.value(r, &spec.workload);
            let metric = value.map(|v| {
                let name = v.metric.name.clone();
                let given = r.more_metrics.iter().find(|m| m.name == name);
                Metric {
                    name,
                    unit: v.metric.unit.clone(),
                    value: v.value,
                    higher_is_better: v.metric.higher_is_better,
                    operation: given.map_or(String::new(), |m| m.operation.clone()),
                    n: v.n,
                }
            });
            Record {
                metric,
                ..r.clone()
            }
        };
        let view: Vec<Record> = records.iter().map(view).collect();
        let name = |r: &Record| r.metric.as_ref().map(|m| m.name.clone());
        let known = |v: &Vec<Record>| v.iter().find_map(name) == view.iter().find_map(name);
        if view.iter().any(|r| r.metric.is_some()) && !views.iter().any(known) {
            views.push(view);
        }
    }
    views
}

/// Returns whether the workload creates files, whose location the kernel chooses.
pub fn on_files(r: &Record) -> bool {
    let known = seekwell_workload::workload(&r.workload);
    r.substrate == "sim"
        && r.workload != "replay"
        && known.is_none_or(|w| w.needs == Needs::Directory)
}

/// Returns the factor that file placement alone can cause on the device of a run.
pub fn placement(r: &Record) -> f64 {
    if r.device.rotational {
        PLACED_ROTATING
    } else {
        PLACED_FLASH
    }
}

impl Standing {
    /// Returns the best run that has another kernel generation than the best run of all. Returns
    /// `None` if the two are level, or if file placement cannot explain the difference.
    fn next_generation(&self, records: &[Record]) -> Option<usize> {
        let best = &records[self.order[0].1];
        let other = |o: &&(f64, usize)| {
            records[o.1].scheduler.kernel != best.scheduler.kernel && on_files(best)
        };
        let next = self.order.iter().find(other)?;
        let behind = self.behind(next.0);
        let placed = behind > SAME_PERCENT && behind <= (placement(best) - 1.0) * 100.0;
        placed.then_some(next.1)
    }
    /// Returns how much worse `value` is than the best value, in percent of the better value.
    /// Returns infinity if exactly one of the two is 0.
    pub fn behind(&self, value: f64) -> f64 {
        let best = self.order.first().map_or(0.0, |o| o.0);
        let (high, low) = if best > value {
            (best, value)
        } else {
            (value, best)
        };
        if low <= 0.0 {
            // Either both values are 0, or only one of them.
            if high <= 0.0 { 0.0 } else { f64::INFINITY }
        } else {
            (high / low - 1.0) * 100.0
        }
    }
    /// Returns how many times worse a run is than the best run; 1 for the best run.
    pub fn times(&self, run: usize) -> f64 {
        let own = self.order.iter().find(|o| o.1 == run);
        own.map_or(1.0, |o| self.behind(o.0) / 100.0 + 1.0)
    }
    /// Returns whether every value is based on at least [`FEWEST`] operations.
    pub fn enough(&self) -> bool {
        self.counts.iter().flatten().all(|n| *n >= FEWEST)
    }
    /// Returns the index of the run that is ahead of all others, if there is such a run.
    pub fn winner(&self) -> Option<usize> {
        let second = self.order.get(1)?;
        let ahead = self.behind(second.0) > SAME_PERCENT;
        (ahead && self.enough() && self.placed.is_none()).then(|| self.order[0].1)
    }
    /// Returns the indices of the runs that are level with the best run, the best first. The list
    /// is empty if all runs are level, or if some value has too few operations.
    pub fn leaders(&self) -> Vec<usize> {
        let level = self.order.iter();
        let level = level.filter(|o| self.behind(o.0) <= SAME_PERCENT);
        let level: Vec<usize> = level.map(|o| o.1).collect();
        if level.len() == self.order.len() || !self.enough() {
            Vec::new()
        } else {
            level
        }
    }
    /// Returns the best run outside [`Self::leaders`], and how many times worse it is than the best
    /// run.
    pub fn next(&self) -> Option<(usize, f64)> {
        let leaders = self.leaders();
        let next = self.order.iter().find(|o| !leaders.contains(&o.1))?;
        Some((next.1, self.behind(next.0) / 100.0 + 1.0))
    }
    /// Returns the kernels of the best run and of the best run that is not level with it. Returns
    /// `None` if the kernels are the same, or if the program uses no files.
    pub fn other_kernel<'a>(&self, records: &'a [Record]) -> Option<(&'a str, &'a str)> {
        let best = &records[self.order[0].1];
        let (next, _) = self.next()?;
        let (a, b) = (&best.scheduler.kernel, &records[next].scheduler.kernel);
        (a != b && on_files(best)).then_some((a, b))
    }
    /// Returns whether file placement alone can explain the difference between the kernel
    /// generations.
    pub fn only_placement(&self) -> bool {
        self.placed.is_some()
    }
    /// Returns the best run of another kernel generation, if [`Self::only_placement`] is true.
    pub fn placed(&self) -> Option<usize> {
        self.placed
    }
}
