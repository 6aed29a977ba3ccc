//! A verdict in words, that claims no more than the runs can carry.
//!
//! Each run is deterministic, so there is no spread to test against: what another seed, another
//! disk of the same model or a slightly different program would change is not known from it, and
//! nothing is said about it but how to see it. What programs see decides: the workload's own
//! metric, else its operations; bios only where there is no program (a replay).
//!
//! Four rules keep a verdict from saying too much. Values closer than [`SAME_PERCENT`] are called
//! level. A value with fewer than [`FEWEST`] operations behind it carries none. A quantile is
//! spoken of where [`BEYOND`] operations lie beyond it under every scheduler compared. And between
//! kernels of different generations, which lay the same files out elsewhere, a difference within
//! what placement alone has done is nobody's.

use crate::units::{count, three, time_ns};
use seekwell_core::result::{Latency, Record};
use seekwell_workload::Needs;
use serde::Serialize;

/// Values closer than this are called level, per cent.
pub const SAME_PERCENT: f64 = 2.0;

/// Operations behind a mean or a rate, at least. Latencies spread about as wide as they are long,
/// so the mean of ten is known to a third; that of fewer does not even tell a half from a whole.
pub const FEWEST: u64 = 10;

/// Operations beyond a quantile, at least: their number is then known to a tenth.
pub const BEYOND: u64 = 100;

/// How far placement of files alone has moved a figure, times, on a disk that rotates: the default
/// streams on hdd:hitachi-7k200, 32.0 to 60.8 MB/s over seeds 1 to 6.
const PLACED_ROTATING: f64 = 1.9;
/// The same on flash: the default interactive on ssd:sata3-256-2011 under cfq, 5.18 to 5.75 ms.
const PLACED_FLASH: f64 = 1.11;

/// I/Os a second from which the CPU time of a scheduler, about a microsecond an I/O, would be a
/// tenth of a core or more; the model charges none.
const CPU_MATTERS_IOPS: f64 = 100_000.0;

/// Schedulers named at most of those with too few operations.
const FEW_NAMED: usize = 3;

/// What runs are compared by.
#[derive(Clone, PartialEq, Eq, Debug)]
enum By {
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

/// Who is ahead, and by how much.
#[derive(Clone, Debug)]
pub struct Verdict {
    by: By,
    higher_is_better: bool,
    /// Value and index, best first.
    order: Vec<(f64, usize)>,
    /// Operations behind each run's value, by index; `None`: not known.
    counts: Vec<Option<u64>>,
    /// The run of another kernel generation that is next, where placement of files may be all
    /// there is between it and the best.
    placed: Option<usize>,
}

/// A verdict as data.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// What decides: "metric", "duration", "operation", "read latency" or "write latency".
    pub kind: &'static str,
    /// Its name.
    pub by: String,
    /// Its unit.
    pub unit: String,
    /// Larger is better.
    pub higher_is_better: bool,
    /// All values have operations enough behind them.
    pub enough: bool,
    /// The one scheduler that is ahead of all others, if there is one.
    pub winner: Option<String>,
    /// Best first.
    pub order: Vec<Place>,
    /// In words.
    pub words: String,
}

/// One scheduler's place.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// Whose.
    pub scheduler: String,
    /// In the unit of the verdict.
    pub value: f64,
    /// Operations behind it, where known.
    pub n: Option<u64>,
    /// How much worse than the best, per cent of the better value; `None`: beyond comparison.
    pub behind_percent: Option<f64>,
}

/// The kind of operation a run is about: what its metric counts, else the most frequent.
fn kind_of(records: &[Record]) -> Option<String> {
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

/// The verdict over runs of the same work; `None` for fewer than two.
pub fn of(records: &[Record]) -> Option<Verdict> {
    let first = records.first().filter(|_| records.len() > 1)?;
    let mode = first
        .params
        .get("mode")
        .map(String::as_str)
        .unwrap_or_default();
    let reads = records.iter().all(|r| r.read.ios > 0);
    // One that ended early has none.
    let metric = records.iter().find_map(|r| r.metric.as_ref());
    let by = if metric.is_some() {
        By::Metric
    } else if mode.starts_with("depth") || mode == "closed" {
        // The work is given and the time is what it takes.
        By::Duration
    } else if let Some(kind) = kind_of(records) {
        By::Operation(kind)
    } else if reads {
        By::ReadLatency
    } else {
        By::WriteLatency
    };
    let higher_is_better = metric.is_some_and(|m| m.higher_is_better);
    // Each value with the number of operations behind it.
    let value = |r: &Record| match &by {
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
    // Equal values keep the order in which they were asked for.
    order.sort_by(|a, b| {
        if higher_is_better {
            b.0.total_cmp(&a.0)
        } else {
            a.0.total_cmp(&b.0)
        }
    });
    let mut v = Verdict {
        by,
        higher_is_better,
        order,
        counts,
        placed: None,
    };
    v.placed = v.next_generation(records);
    Some(v)
}

/// Does the workload make files, whose places a kernel chooses?
pub(crate) fn on_files(r: &Record) -> bool {
    let known = seekwell_workload::workload(&r.workload);
    r.substrate == "sim"
        && r.workload != "replay"
        && known.is_none_or(|w| w.needs == Needs::Directory)
}

/// Times by which placement of files alone may differ on that device.
fn placement(r: &Record) -> f64 {
    if r.device.rotational {
        PLACED_ROTATING
    } else {
        PLACED_FLASH
    }
}

impl Verdict {
    /// The best run of another kernel generation than the best's, if it is not level with it, and
    /// no further behind than placement may put it.
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
    /// How much worse than the best, per cent of the better value.
    fn behind(&self, value: f64) -> f64 {
        let best = self.order.first().map_or(0.0, |o| o.0);
        let (high, low) = if best > value {
            (best, value)
        } else {
            (value, best)
        };
        if low <= 0.0 {
            // Both nothing, or one of them nothing at all.
            if high <= 0.0 { 0.0 } else { f64::INFINITY }
        } else {
            (high / low - 1.0) * 100.0
        }
    }
    /// How many times worse than the best a run is; 1 for the best.
    pub fn times(&self, run: usize) -> f64 {
        let own = self.order.iter().find(|o| o.1 == run);
        own.map_or(1.0, |o| self.behind(o.0) / 100.0 + 1.0)
    }
    /// Has every value operations enough behind it?
    pub fn enough(&self) -> bool {
        self.counts.iter().flatten().all(|n| *n >= FEWEST)
    }
    /// The index of the run that is ahead of all others, if there is one.
    pub fn winner(&self) -> Option<usize> {
        let second = self.order.get(1)?;
        let ahead = self.behind(second.0) > SAME_PERCENT;
        (ahead && self.enough() && self.placed.is_none()).then(|| self.order[0].1)
    }
    /// Indices of the runs that are level with the best, the best first; empty where that is all of
    /// them or nobody can say.
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
    /// Kernels of the best run and of the best that is not level with it, where they differ under
    /// a program that uses files.
    pub fn other_kernel<'a>(&self, records: &'a [Record]) -> Option<(&'a str, &'a str)> {
        let best = &records[self.order[0].1];
        let (next, _) = self.next()?;
        let (a, b) = (&best.scheduler.kernel, &records[next].scheduler.kernel);
        (a != b && on_files(best)).then_some((a, b))
    }
    /// May placement of files be all there is between the generations?
    pub fn only_placement(&self) -> bool {
        self.placed.is_some()
    }
    fn value(&self, v: f64, r: &Record) -> String {
        match (&self.by, &r.metric) {
            (By::Metric, None) => "nothing".to_owned(),
            (By::Metric, Some(m)) => format!("{} {}", three(v), m.unit),
            _ => time_ns(v),
        }
    }
    fn measure(&self, r: &Record) -> String {
        match (&self.by, &r.metric) {
            (By::Metric, Some(m)) => m.name.clone(),
            (By::Metric, None) => String::new(),
            (By::Duration, _) => "time for the same work".to_owned(),
            (By::Operation(kind), _) => format!("mean {kind}"),
            (By::ReadLatency, _) => "mean read latency".to_owned(),
            (By::WriteLatency, _) => "mean write latency".to_owned(),
        }
    }
    /// What is counted, for "n = 20 fsync".
    fn counted(&self, r: &Record) -> String {
        match (&self.by, &r.metric) {
            (By::Metric, Some(m)) => m.operation.clone(),
            (By::Operation(kind), _) => kind.clone(),
            (By::ReadLatency, _) => "read".to_owned(),
            (By::WriteLatency, _) => "write".to_owned(),
            _ => "I/O".to_owned(),
        }
    }
    /// " (n 20)", where it is known.
    fn n(&self, run: usize) -> String {
        self.counts[run].map_or(String::new(), |n| format!(" (n {})", count(n)))
    }

    /// As data.
    pub fn told(&self, records: &[Record]) -> Told {
        let first = &records[self.order[0].1];
        let (kind, unit) = match &self.by {
            By::Metric => {
                let unit = first.metric.as_ref().map(|m| m.unit.clone());
                ("metric", unit.unwrap_or_default())
            }
            By::Duration => ("duration", "ns".to_owned()),
            By::Operation(_) => ("operation", "ns".to_owned()),
            By::ReadLatency => ("read latency", "ns".to_owned()),
            By::WriteLatency => ("write latency", "ns".to_owned()),
        };
        let place = |o: &(f64, usize)| Place {
            scheduler: records[o.1].scheduler.spec.clone(),
            value: o.0,
            n: self.counts[o.1],
            behind_percent: Some(self.behind(o.0)).filter(|b| b.is_finite()),
        };
        Told {
            kind,
            by: self.measure(first),
            unit,
            higher_is_better: self.higher_is_better,
            enough: self.enough(),
            winner: self.winner().map(|w| records[w].scheduler.spec.clone()),
            order: self.order.iter().map(place).collect(),
            words: self.words(records),
        }
    }

    /// In words.
    pub fn words(&self, records: &[Record]) -> String {
        let name = |i: usize| records[i].scheduler.spec.as_str();
        let (best, worst) = (self.order[0], self.order[self.order.len() - 1]);
        let first = &records[best.1];
        let what = self.measure(first);
        let seed = first.seed;
        let rests = format!(
            "One run each with seed {seed}: what another would change it does not tell (--seed {}).",
            seed.wrapping_add(1)
        );
        let of = |o: (f64, usize)| format!("{}{}", self.value(o.0, &records[o.1]), self.n(o.1));
        if !self.enough() {
            let kind = match self.counted(first) {
                k if k.is_empty() => "what is measured".to_owned(),
                k => k,
            };
            let few = (0..records.len()).filter(|i| self.counts[*i].is_some_and(|n| n < FEWEST));
            let few = few.map(|i| format!("{} under {}", self.counts[i].unwrap_or(0), name(i)));
            let mut few: Vec<String> = few.collect();
            if few.len() > FEW_NAMED {
                let rest = few.len() - FEW_NAMED;
                few.truncate(FEW_NAMED);
                few.push(format!("too few under {rest} more"));
            }
            return format!(
                "too few operations to say (of {kind}: {}; {FEWEST} are the least). By {what}, {} \
                 has {}, {} {}. {rests}",
                few.join(", "),
                name(best.1),
                of(best),
                name(worst.1),
                of(worst),
            );
        }
        if worst.0 == best.0 {
            return format!("no difference: {what} is {} under all. {rests}", of(best));
        }
        if self.behind(worst.0) <= SAME_PERCENT {
            return format!(
                "level. By {what} all lie within {:.1} % of each other, {} to {}; less than \
                 {SAME_PERCENT:.0} % is not told apart here. {rests}",
                self.behind(worst.0),
                of(best),
                of(worst),
            );
        }
        let same = self
            .order
            .iter()
            .filter(|o| self.behind(o.0) <= SAME_PERCENT);
        let leaders: Vec<_> = same.map(|o| name(o.1)).collect();
        let verb = if leaders.len() > 1 {
            format!("are level (within {SAME_PERCENT:.0} %) and ahead")
        } else {
            "is ahead".to_owned()
        };
        let mut text = format!("by {what}, {} {verb} with {}", list(&leaders), of(best));
        if let Some(next) = self.order.get(leaders.len())
            && next.1 != worst.1
        {
            text += &format!(
                "; next is {} with {}, {}",
                name(next.1),
                of(*next),
                self.distance(next.0)
            );
        }
        text += &format!(
            "; last is {} with {}, {}. ",
            name(worst.1),
            of(worst),
            self.distance(worst.0)
        );
        text += &self.placement_words(records);
        text += &self.tail(records, best.1);
        text + &rests
    }

    /// Kernels of different generations lay the same files out elsewhere.
    fn placement_words(&self, records: &[Record]) -> String {
        let Some(next) = self.placed else {
            return match self.other_kernel(records) {
                Some((best, next)) => format!(
                    "They stand on kernels of different generations ({best} and {next}): page \
                     cache and file system differ, too. "
                ),
                None => String::new(),
            };
        };
        let (best, next) = (&records[self.order[0].1], &records[next]);
        format!(
            "But {} ({}) and {} ({}) are of different kernels, which place the same files \
             elsewhere: on such a device that alone has moved a figure {} times, so this may be no \
             scheduler's doing. ",
            best.scheduler.spec,
            best.scheduler.kernel,
            next.scheduler.spec,
            next.scheduler.kernel,
            placement(best)
        )
    }

    /// Means can hide what users feel: says so if another run has a far better worst case.
    fn tail(&self, records: &[Record], best: usize) -> String {
        let kind = kind_of(records);
        let latency = |r: &Record| -> Option<Latency> {
            match &kind {
                Some(k) => r.operation(k).map(|o| o.latency.clone()),
                None => Some(r.read.latency.clone()),
            }
        };
        let Some(all) = records.iter().map(latency).collect::<Option<Vec<_>>>() else {
            return String::new();
        };
        let fewest = all.iter().map(Latency::count).min().unwrap_or(0);
        let Some((word, part)) = TAILS.iter().find(|t| fewest >= BEYOND * t.1) else {
            return String::new();
        };
        let at = |l: &Latency| l.percentile_ns(100.0 - 100.0 / *part as f64);
        let own = at(&all[best]);
        let others = (0..all.len()).filter(|i| *i != best);
        let calm = others.map(|i| (at(&all[i]), i)).min();
        let what = kind.as_deref().unwrap_or("read");
        match calm {
            Some((ns, i)) if ns * 10 < own * 9 => format!(
                "But its slowest {word} of {what} operations takes {} or more, against {} under {}. ",
                time_ns(own as f64),
                time_ns(ns as f64),
                records[i].scheduler.spec
            ),
            _ => String::new(),
        }
    }

    fn distance(&self, value: f64) -> String {
        let behind = self.behind(value);
        let lower = self.higher_is_better;
        let word = match (&self.by, lower) {
            (By::Metric, true) => "lower",
            (By::Metric, false) => "higher",
            _ => "longer",
        };
        if !behind.is_finite() {
            "beyond comparison".to_owned()
        } else if behind >= 100.0 {
            format!("{:.1} times {word}", behind / 100.0 + 1.0)
        } else if lower {
            // Per cent of the best.
            format!("{:.0} % {word}", behind / (100.0 + behind) * 100.0)
        } else {
            format!("{behind:.0} % {word}")
        }
    }
}

/// Tails by the share beyond them, the rarest first.
const TAILS: [(&str, u64); 4] = [
    ("thousandth", 1000),
    ("hundredth", 100),
    ("twentieth", 20),
    ("tenth", 10),
];

/// What the model leaves out where it would matter: schedulers that cost CPU time.
pub fn cpu_note(records: &[Record]) -> Option<String> {
    let fast = records
        .iter()
        .filter(|r| r.substrate == "sim" && !r.device.rotational);
    let most = fast.map(Record::iops).fold(0.0, f64::max);
    (most >= CPU_MATTERS_IOPS).then(|| {
        format!(
            "At {} I/Os a second the CPU time that a scheduler takes would show. The model charges \
             none of it: a scheduler that does more than `none` looks better here than it is.",
            three(most)
        )
    })
}

/// "a", "a and b", "a, b and c".
pub(crate) fn list(names: &[&str]) -> String {
    match names {
        [one] => (*one).to_owned(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests;
