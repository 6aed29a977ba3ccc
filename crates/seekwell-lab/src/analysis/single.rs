//! Compares runs when there is only one of each. There is no spread and so no test; the wording
//! claims no more than a single run can show.
//!
//! Each run is deterministic. It does not show what another seed, another disk of the same model or
//! a slightly different program would change. The figures that programs see decide: the workload's
//! own metric, otherwise its operations. Bios decide only if there is no program (a replay). Values
//! closer than [`SAME_PERCENT`] are level. A value with fewer than [`FEWEST`] operations supports
//! no claim. Kernels of different generations place the same files differently. Between them, a
//! difference as small as placement alone can cause is not attributed to the scheduler.

use crate::experiment::Deciding;
use seekwell_core::result::{Metric, Record};
use seekwell_workload::Needs;

/// Values closer than this are called level, in percent.
pub const SAME_PERCENT: f64 = 2.0;

/// Fewest operations for a mean or a rate. Latencies spread about as widely as their mean, so the
/// mean of ten is accurate to about a third. With fewer, even a factor of two is not reliable.
pub const FEWEST: u64 = 10;

/// Factor by which file placement alone has changed a figure on a rotating disk: the default
/// streams on hdd:hitachi-7k200, 32.0 to 60.8 MB/s over seeds 1 to 6.
const PLACED_ROTATING: f64 = 1.9;
/// The same on flash: the default interactive on ssd:sata3-256-2011 under cfq, 5.18 to 5.75 ms.
const PLACED_FLASH: f64 = 1.11;

/// The figure that runs are compared by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum By {
    /// The workload's own metric.
    Metric,
    /// Time for the same work.
    Duration,
    /// Mean latency of the program's operations of a kind.
    Operation(String),
    /// Mean latency of reads.
    ReadLatency,
    /// Mean latency of writes.
    WriteLatency,
}

/// The order of the runs, and the distances between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The figure that decides.
    pub by: By,
    /// Larger is better.
    pub higher_is_better: bool,
    /// Value and run index, best first.
    pub order: Vec<(f64, usize)>,
    /// Operations behind each run's value, by index; `None` if not known.
    pub counts: Vec<Option<u64>>,
    /// The next run of another kernel generation, if file placement alone can explain its distance
    /// from the best run.
    placed: Option<usize>,
}

/// The main kind of operation: the one that the metric counts, otherwise the most frequent. `None`
/// if a run lacks it.
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

/// The order of runs of the same work, one run each; `None` for fewer than two.
pub fn standing(records: &[Record]) -> Option<Standing> {
    let first = records.first().filter(|_| records.len() > 1)?;
    let mode = first
        .params
        .get("mode")
        .map(String::as_str)
        .unwrap_or_default();
    let reads = records.iter().all(|r| r.read.ios > 0);
    // A run that ended early has no metric.
    let metric = records.iter().find_map(|r| r.metric.as_ref());
    let by = if metric.is_some() {
        By::Metric
    } else if mode.starts_with("depth") || mode == "closed" {
        // The work is fixed, so the time it takes decides.
        By::Duration
    } else if let Some(kind) = kind_of(records) {
        By::Operation(kind)
    } else if reads {
        By::ReadLatency
    } else {
        By::WriteLatency
    };
    let higher_is_better = metric.is_some_and(|m| m.higher_is_better);
    // Each value and the number of operations it is based on.
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
    // Equal values keep the order in which they were requested.
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

/// Copies of the runs, once per deciding figure, with that figure as their metric. If only one
/// figure decides, the result is one element with the unchanged runs.
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

/// Whether the workload creates files, whose location the kernel chooses.
pub fn on_files(r: &Record) -> bool {
    let known = seekwell_workload::workload(&r.workload);
    r.substrate == "sim"
        && r.workload != "replay"
        && known.is_none_or(|w| w.needs == Needs::Directory)
}

/// The factor that file placement alone can cause on this device.
pub fn placement(r: &Record) -> f64 {
    if r.device.rotational {
        PLACED_ROTATING
    } else {
        PLACED_FLASH
    }
}

impl Standing {
    /// The best run of another kernel generation than the best run. Only if the two are not level,
    /// and file placement can explain the distance.
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
    /// How much worse than the best, in percent of the better value; infinite if not comparable.
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
    /// How many times worse than the best this run is; 1 for the best.
    pub fn times(&self, run: usize) -> f64 {
        let own = self.order.iter().find(|o| o.1 == run);
        own.map_or(1.0, |o| self.behind(o.0) / 100.0 + 1.0)
    }
    /// Whether every value is based on enough operations.
    pub fn enough(&self) -> bool {
        self.counts.iter().flatten().all(|n| *n >= FEWEST)
    }
    /// The index of the run that is ahead of all others, if there is one.
    pub fn winner(&self) -> Option<usize> {
        let second = self.order.get(1)?;
        let ahead = self.behind(second.0) > SAME_PERCENT;
        (ahead && self.enough() && self.placed.is_none()).then(|| self.order[0].1)
    }
    /// Indices of the runs that are level with the best, the best first. Empty if all runs are
    /// level, or if the data cannot decide.
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
    /// The best run that is not level with the first, and how many times it is worse.
    pub fn next(&self) -> Option<(usize, f64)> {
        let leaders = self.leaders();
        let next = self.order.iter().find(|o| !leaders.contains(&o.1))?;
        Some((next.1, self.behind(next.0) / 100.0 + 1.0))
    }
    /// Kernels of the best run and of the best run that is not level with it. Only if the kernels
    /// differ and the program uses files.
    pub fn other_kernel<'a>(&self, records: &'a [Record]) -> Option<(&'a str, &'a str)> {
        let best = &records[self.order[0].1];
        let (next, _) = self.next()?;
        let (a, b) = (&best.scheduler.kernel, &records[next].scheduler.kernel);
        (a != b && on_files(best)).then_some((a, b))
    }
    /// Whether file placement alone can explain the difference between the generations.
    pub fn only_placement(&self) -> bool {
        self.placed.is_some()
    }
    /// The next run of another generation, if [`Self::only_placement`] is true.
    pub fn placed(&self) -> Option<usize> {
        self.placed
    }
}
