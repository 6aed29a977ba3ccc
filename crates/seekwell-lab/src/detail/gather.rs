//! Collects the details of runs, either from records or from the table rows of a folder.

use super::seconds::Course;
use super::{Detail, Facts, Mark, MarkKind, Side, Traded};
use crate::results::{Buckets, Layer, OperationRow, Results, RunKey, SeriesRow};
use crate::stats;
use seekwell_core::result::{MarkAt, Metric, ProcessShare, Record};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Number of processes that are listed separately. The bytes of the other processes are added
/// together.
const PROCESSES: usize = 40;
/// Largest number of marks that are kept per run.
const MARKS: usize = 4_000;

/// The fields of a record that this module reads. They come from a record, or from a results
/// folder.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Told {
    metric: Option<Metric>,
    clock_start_ns: Option<u64>,
    clock_stop_ns: Option<u64>,
    requests: u64,
    back_merges: u64,
    front_merges: u64,
    joins: u64,
    mean_seek_sectors: f64,
    device_busy_ns: u64,
    depth_mean: f64,
    outstanding_mean: f64,
    processes: Vec<ProcessShare>,
    marks: Vec<MarkAt>,
}

/// A kind of operation: the layer in which it is counted, and its name.
type Kind = (Layer, String);

/// The collected data of one treatment in a cell.
#[derive(Debug, Default)]
struct Pile {
    runs: u32,
    /// Number of operations of each kind, and their number per latency bucket.
    operations: BTreeMap<Kind, (u64, BTreeMap<u64, u64>)>,
    /// 99th percentile of the latency of each run, by kind of operation.
    p99: BTreeMap<Kind, Vec<f64>>,
    courses: BTreeMap<Kind, Course>,
    /// The run and the kind of operation whose seconds are being added.
    under_way: Option<(RunKey, Kind)>,
    marks: Vec<Mark>,
    shares: BTreeMap<String, u64>,
    sums: Facts,
    /// Throughput of each run, in bytes per second.
    rates: Vec<f64>,
}

/// Collects the runs of an experiment. The runs must be added in the order of their keys.
#[derive(Debug, Default)]
pub struct Gather {
    piles: BTreeMap<(usize, usize), Pile>,
    /// The kind of operation that the metric counts, by cell.
    named: BTreeMap<usize, String>,
}

impl Gather {
    /// Adds a run with its complete record.
    pub fn record(&mut self, key: RunKey, r: &Record) {
        let told = Told {
            metric: r.metric.clone(),
            clock_start_ns: r.clock_start_ns,
            clock_stop_ns: r.clock_stop_ns,
            requests: r.requests,
            back_merges: r.back_merges,
            front_merges: r.front_merges,
            joins: r.joins,
            mean_seek_sectors: r.mean_seek_sectors,
            device_busy_ns: r.device_busy_ns,
            depth_mean: r.depth_mean,
            outstanding_mean: r.outstanding_mean,
            processes: r.processes.clone(),
            marks: r.marks.clone(),
        };
        let bytes = r.read.bytes + r.write.bytes;
        self.add_partial(key, r.duration_ns, &told, bytes);
        for (kind, d) in [("read", &r.read), ("write", &r.write)] {
            let p99 = d.latency.percentile_ns(99.0);
            self.operation(key, (Layer::Block, kind), d.latency.count(), p99);
            self.latencies(key, Layer::Block, kind, &d.latency.buckets());
        }
        for s in &r.seconds {
            let ops = s.reads + s.writes;
            let row = SeriesRow(s.at_s, ops, s.bytes, s.latency_sum_ns, s.latency_max_ns, 0);
            self.second(key, Layer::Block, "all", &row);
        }
        for o in &r.operations {
            let p99 = o.latency.percentile_ns(99.0);
            self.operation(key, (Layer::Workload, &o.kind), o.latency.count(), p99);
            self.latencies(key, Layer::Workload, &o.kind, &o.latency.buckets());
            for (at, s) in o.seconds.iter().enumerate().filter(|(_, s)| s.ops > 0) {
                let (sum, max) = (s.latency_sum_ns, s.latency_max_ns);
                let row = SeriesRow(at as u64, s.ops, s.bytes, sum, max, s.latency_square_us2);
                self.second(key, Layer::Workload, &o.kind, &row);
            }
        }
    }

    fn pile(&mut self, key: RunKey) -> &mut Pile {
        self.piles.entry((key.cell, key.treatment)).or_default()
    }

    /// Adds a run. `told` holds some fields of its record, and `bytes` is the number of bytes that
    /// the block layer transferred.
    pub(super) fn add_partial(&mut self, key: RunKey, duration_ns: u64, told: &Told, bytes: u64) {
        if let Some(m) = &told.metric
            && let Some(kind) = m.operation.split(", ").next().filter(|k| !k.is_empty())
        {
            self.named
                .entry(key.cell)
                .or_insert_with(|| kind.to_owned());
        }
        let pile = self.pile(key);
        if pile.runs == 0 {
            pile.marks = marks(&told.marks, duration_ns);
        }
        pile.runs += 1;
        let from = told.clock_start_ns.unwrap_or(0);
        let span = told.clock_stop_ns.unwrap_or(duration_ns);
        let seconds = (span.saturating_sub(from).max(1)) as f64 / 1e9;
        let rate = bytes as f64 / seconds;
        pile.rates.push(rate);
        let s = &mut pile.sums;
        s.bytes_per_s += rate;
        s.requests += told.requests as f64;
        s.merges += (told.back_merges + told.front_merges + told.joins) as f64;
        s.seek_bytes += told.mean_seek_sectors * 512.0;
        s.busy += told.device_busy_ns as f64 / 1e9 / seconds;
        s.depth += told.depth_mean;
        s.outstanding += told.outstanding_mean;
        for p in &told.processes {
            let name = match p.name.as_str() {
                "" => format!("task {}", p.task),
                name => name.to_owned(),
            };
            *pile.shares.entry(name).or_default() += p.bytes;
        }
    }

    pub(super) fn operation(&mut self, key: RunKey, kind: (Layer, &str), count: u64, p99: u64) {
        if count == 0 {
            return;
        }
        let pile = self.pile(key);
        let kind = (kind.0, kind.1.to_owned());
        pile.operations.entry(kind.clone()).or_default().0 += count;
        // With fewer operations, fewer than ten of them are beyond the 99th percentile, so it is
        // too uncertain.
        if count >= 1_000 {
            pile.p99.entry(kind).or_default().push(p99 as f64);
        }
    }

    pub(super) fn row(&mut self, key: RunKey, o: &OperationRow) {
        self.operation(key, (o.layer, &o.kind), o.count, o.quantiles_ns[4]);
    }

    pub(super) fn latencies(
        &mut self,
        key: RunKey,
        layer: Layer,
        kind: &str,
        buckets: &[(u64, u64)],
    ) {
        if buckets.is_empty() {
            return;
        }
        let all = self.pile(key).operations.entry((layer, kind.to_owned()));
        let all = &mut all.or_default().1;
        for (ns, n) in buckets {
            *all.entry(*ns).or_default() += n;
        }
    }

    /// Adds the values of one second of a run to the time series of one kind of operation. The
    /// caller must add all seconds of one run and one kind of operation without others in between.
    pub(super) fn second(&mut self, key: RunKey, layer: Layer, kind: &str, row: &SeriesRow) {
        let pile = self.pile(key);
        let now = (key, (layer, kind.to_owned()));
        if pile.under_way.as_ref() != Some(&now) {
            if let Some(course) = pile
                .under_way
                .take()
                .and_then(|u| pile.courses.get_mut(&u.1))
            {
                course.end_run();
            }
            pile.under_way = Some(now.clone());
        }
        pile.courses.entry(now.1).or_default().add(row);
    }

    /// Returns the details of each cell of the results.
    pub fn done(self, results: &Results) -> Vec<Detail> {
        let mut out: Vec<Detail> = results.cells.iter().map(|_| Detail::default()).collect();
        let mut kinds: BTreeMap<usize, Option<Kind>> = BTreeMap::new();
        for (cell, _) in self.piles.keys() {
            kinds.entry(*cell).or_insert_with(|| self.kind(*cell));
        }
        for ((cell, treatment), pile) in self.piles {
            let (Some(kind), Some(detail)) = (kinds.get(&cell).cloned(), out.get_mut(cell)) else {
                continue;
            };
            detail.operation = match &kind {
                Some((_, name)) => name.clone(),
                None => "I/O".to_owned(),
            };
            detail.sides.push(pile.side(treatment, kind.as_ref()));
        }
        out
    }

    /// Returns the kind of operation whose latencies and seconds a cell shows.
    fn kind(&self, cell: usize) -> Option<Kind> {
        let mut counts: BTreeMap<&Kind, u64> = BTreeMap::new();
        for (_, pile) in self.piles.iter().filter(|p| p.0.0 == cell) {
            for (kind, (n, _)) in &pile.operations {
                *counts.entry(kind).or_default() += n;
            }
        }
        let named = self.named.get(&cell).map(|n| (Layer::Workload, n.clone()));
        if let Some(kind) = named.filter(|k| counts.get(k).is_some_and(|n| *n > 0)) {
            return Some(kind);
        }
        let most = |layer: Layer| {
            let of = counts.iter().filter(|(k, n)| k.0 == layer && **n > 0);
            let most = of.reduce(|a, b| if b.1 > a.1 { b } else { a });
            most.map(|(k, _)| (*k).clone())
        };
        most(Layer::Workload).or_else(|| most(Layer::Block))
    }
}

impl Pile {
    fn side(mut self, treatment: usize, kind: Option<&Kind>) -> Side {
        if let Some(course) = self
            .under_way
            .take()
            .and_then(|u| self.courses.get_mut(&u.1))
        {
            course.end_run();
        }
        let latency = kind.and_then(|k| self.operations.remove(k));
        let latency: Buckets = latency.map_or(Vec::new(), |l| l.1.into_iter().collect());
        // The block layer has one common series for reads and writes.
        let of = |k: &Kind| match k.0 {
            Layer::Block => (Layer::Block, "all".to_owned()),
            Layer::Workload => k.clone(),
        };
        let course = kind.and_then(|k| self.courses.remove(&of(k)));
        let runs = f64::from(self.runs.max(1));
        let p99 = kind.and_then(|k| self.p99.remove(k));
        let s = self.sums;
        let facts = Facts {
            bytes_per_s: s.bytes_per_s / runs,
            requests: s.requests / runs,
            merges: s.merges / runs,
            seek_bytes: s.seek_bytes / runs,
            busy: s.busy / runs,
            depth: s.depth / runs,
            outstanding: s.outstanding / runs,
            percentiles_ns: percentiles(&latency),
        };
        Side {
            treatment,
            runs: self.runs,
            seconds: course.map_or(Vec::new(), Course::into_seconds),
            marks: self.marks,
            shares: shares(self.shares, self.runs),
            facts: (facts.requests > 0.0).then_some(facts),
            traded: p99.and_then(|p| traded(&self.rates, &p)),
            latency,
        }
    }
}

/// Returns p50, p99, p99.9 and p99.99. A percentile is `None` if fewer than ten operations are
/// beyond it.
fn percentiles(buckets: &[(u64, u64)]) -> [Option<u64>; 4] {
    let all: u64 = buckets.iter().map(|b| b.1).sum();
    [(1, 2), (99, 100), (999, 1_000), (9_999, 10_000)].map(|(part, of): (u64, u64)| {
        let rank = (all * part).div_ceil(of).max(1);
        if all * (of - part) < 10 * of {
            return None;
        }
        let mut below = 0;
        let at = buckets.iter().find(|b| {
            below += b.1;
            below >= rank
        });
        at.map(|b| b.0)
    })
}

fn traded(rates: &[f64], p99: &[f64]) -> Option<Traded> {
    let of = |v: &[f64]| {
        let d = stats::describe(&v.iter().copied().map(Some).collect::<Vec<_>>());
        Some((d.mean.filter(|m| *m > 0.0)?, d.low.zip(d.high)))
    };
    let (bytes_per_s, bytes_95) = of(rates)?;
    let (p99_ns, p99_95) = of(p99)?;
    Some(Traded {
        bytes_per_s,
        bytes_95,
        p99_ns,
        p99_95,
    })
}

fn shares(of: BTreeMap<String, u64>, runs: u32) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = of.into_iter().filter(|s| s.1 > 0).collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if all.len() > PROCESSES {
        let rest: u64 = all.drain(PROCESSES - 1..).map(|s| s.1).sum();
        all.push(("others".to_owned(), rest));
    }
    for share in &mut all {
        share.1 /= u64::from(runs.max(1));
    }
    all
}

/// Joins each begin mark with its end mark.
fn marks(all: &[MarkAt], duration_ns: u64) -> Vec<Mark> {
    let ms = |ns: u64| ns / 1_000_000;
    let mut out: Vec<Mark> = Vec::new();
    let mut open: BTreeMap<(MarkKind, &str), u64> = BTreeMap::new();
    for m in all {
        let (what, begins) = match m.name.as_str() {
            "checkpoint start" => (MarkKind::Checkpoint, Some(true)),
            "checkpoint end" => (MarkKind::Checkpoint, Some(false)),
            "throttling begins" => (MarkKind::Throttled, Some(true)),
            "throttling ends" => (MarkKind::Throttled, Some(false)),
            "throttled" => (MarkKind::Throttled, None),
            "flush" => (MarkKind::Flush, None),
            _ => continue,
        };
        let at = m.at_ns;
        let from = match begins {
            Some(true) => {
                open.entry((what, &m.task)).or_insert(at);
                continue;
            }
            Some(false) => match open.remove(&(what, m.task.as_str())) {
                Some(from) => from,
                None => continue,
            },
            None => at,
        };
        out.push(Mark {
            what,
            from_ms: ms(from),
            to_ms: ms(at),
        });
    }
    // A mark without an end lasts until the end of the run.
    out.extend(open.into_iter().map(|((what, _), from)| Mark {
        what,
        from_ms: ms(from),
        to_ms: ms(duration_ns),
    }));
    joined(out)
}

/// Merges overlapping intervals of the same kind, because many tasks can be throttled at the same
/// time.
fn joined(mut all: Vec<Mark>) -> Vec<Mark> {
    all.sort_by_key(|m| (m.what, m.from_ms, m.to_ms));
    let mut out: Vec<Mark> = Vec::new();
    for m in all {
        match out.last_mut() {
            Some(last) if last.what == m.what && m.from_ms <= last.to_ms => {
                last.to_ms = last.to_ms.max(m.to_ms);
            }
            _ => out.push(m),
        }
    }
    out.truncate(MARKS);
    out
}
