//! Verdicts on one run per scheduler, in words that claim no more than the runs support. The lab
//! computes every number ([`seekwell_lab::analysis::single`]), and this module describes them.
//!
//! A quantile is reported if at least [`BEYOND`] operations are beyond it under every compared
//! scheduler. An undecided verdict says how it can be decided.

use crate::units::{count, percent, three, time_ns};
use seekwell_core::prose::in_prose;
use seekwell_core::result::{Latency, Record, Starved};
use seekwell_lab::analysis::single::{
    By, FEWEST, SAME_PERCENT, Standing, by_rows, kind_of, placement,
};
use serde::Serialize;

/// Minimum number of operations beyond a quantile. With 100 operations, their number has a standard
/// error of a tenth.
pub const BEYOND: u64 = 100;

/// I/O rate above which a scheduler's CPU time, about a microsecond per I/O, needs at least a tenth
/// of a core.
const CPU_MATTERS_IOPS: f64 = 100_000.0;

/// Maximum number of schedulers that are named among those with too few operations.
const FEW_NAMED: usize = 3;

/// A verdict as data.
#[derive(Clone, Debug, Serialize)]
pub struct VerdictData {
    /// The kind of the deciding metric: "metric", "duration", "operation", "read latency" or "write
    /// latency".
    pub kind: &'static str,
    /// Name of the deciding metric.
    pub by: String,
    /// Unit of the deciding metric.
    pub unit: String,
    /// Whether larger values are better.
    pub higher_is_better: bool,
    /// Whether all values are based on enough operations.
    pub enough: bool,
    /// The scheduler that is ahead of all others; `None` if there is no single one.
    pub winner: Option<String>,
    /// The schedulers, best first.
    pub order: Vec<Place>,
    /// The verdict in words.
    pub words: String,
    /// Verdicts by the other deciding metrics, one for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<VerdictData>,
}

/// The rank of one scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// The scheduler.
    pub scheduler: String,
    /// Value in the unit of the verdict.
    pub value: f64,
    /// Number of operations that the value is based on, if known.
    pub n: Option<u64>,
    /// How much worse the value is than the best value, in per cent of the better one; `None` if
    /// they cannot be compared.
    pub behind_percent: Option<f64>,
}

/// Returns ">600 s" for a run that reached its limit of 600 s.
pub(crate) fn at_limit(r: &Record) -> Option<String> {
    (r.censored()).then(|| format!(">{} s", three(r.span_ns() as f64 / 1e9)))
}

/// Returns the note in a summary about a run that reached its limit.
pub(crate) fn limit(r: &Record) -> Option<String> {
    let early = r.early.as_ref().filter(|e| e.limit)?;
    let s = three(r.span_ns() as f64 / 1e9);
    Some(format!(
        "not finished after {s} s (starved?): {}; its figures cover that time only",
        early.why
    ))
}

/// Returns starvation and time limits in runs of the same workload: each text, with the schedulers
/// that it applies to.
pub(crate) fn starvation(records: &[Record]) -> Vec<(String, Vec<&str>)> {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    let mut starved: Vec<(Starved, Vec<&str>)> = Vec::new();
    for r in records {
        let name = r.scheduler.spec.as_str();
        if let Some(text) = limit(r) {
            match said.iter_mut().find(|s| s.0 == text) {
                Some(s) => s.1.push(name),
                None => said.push((text, vec![name])),
            }
        }
        for one in &r.starved {
            match starved
                .iter_mut()
                .find_map(|s| s.0.merge(one).then_some(&mut s.1))
            {
                Some(who) => who.push(name),
                None => starved.push((one.clone(), vec![name])),
            }
        }
    }
    said.extend(starved.into_iter().map(|(s, who)| (s.words(), who)));
    said
}

/// The standing of runs, from which verdicts are made.
pub struct RunStanding<'a> {
    standing: Standing,
    records: &'a [Record],
}

/// Returns the standing of runs of the same workload, or `None` for fewer than two runs.
pub fn standing(records: &[Record]) -> Option<RunStanding<'_>> {
    let standing = seekwell_lab::analysis::single::standing(records)?;
    Some(RunStanding { standing, records })
}

/// Returns the text with a capital letter at its start.
fn capital(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(rest).collect()
}

/// Describes all deciding metrics. The text says that schedulers are level only if they are level
/// in every metric.
pub fn words(records: &[Record]) -> Option<String> {
    let views = by_rows(records);
    let said: Vec<RunStanding> = views.iter().filter_map(|v| standing(v)).collect();
    let last = said.first()?.rests();
    let each = said.iter().map(|s| match said.len() {
        1 => s.judged(),
        // Each of several verdicts is a separate sentence.
        _ => capital(&s.judged()),
    });
    Some(format!("{} {last}", each.collect::<Vec<_>>().join(" ")))
}

/// Returns the verdict as data.
pub fn verdict_data(records: &[Record]) -> Option<VerdictData> {
    let views = by_rows(records);
    let mut all = views.iter().filter_map(|v| Some(standing(v)?.as_data()));
    let first = all.next()?;
    Some(VerdictData {
        rows: all.collect(),
        words: words(records)?,
        ..first
    })
}

impl RunStanding<'_> {
    fn value(&self, v: f64, r: &Record) -> String {
        if let Some(longer) = at_limit(r) {
            return longer;
        }
        match (&self.standing.by, &r.metric) {
            (By::Metric, None) => "nothing".to_owned(),
            (By::Metric, Some(m)) => format!("{} {}", three(v), m.unit),
            _ => time_ns(v),
        }
    }
    fn measure(&self, r: &Record) -> String {
        match (&self.standing.by, &r.metric) {
            (By::Metric, Some(m)) => m.name.clone(),
            (By::Metric, None) => String::new(),
            (By::Duration, _) => "time for the same work".to_owned(),
            (By::Operation(kind), _) => format!("mean {kind}"),
            (By::ReadLatency, _) => "mean read latency".to_owned(),
            (By::WriteLatency, _) => "mean write latency".to_owned(),
        }
    }
    /// Returns the name of the counted operations, for example for "n = 20 fsync".
    fn counted(&self, r: &Record) -> String {
        match (&self.standing.by, &r.metric) {
            (By::Metric, Some(m)) => m.operation.clone(),
            (By::Operation(kind), _) => kind.clone(),
            (By::ReadLatency, _) => "read".to_owned(),
            (By::WriteLatency, _) => "write".to_owned(),
            _ => "I/O".to_owned(),
        }
    }
    /// Returns " (n 20)", if the number of operations is known.
    fn n(&self, run: usize) -> String {
        self.standing.counts[run].map_or(String::new(), |n| format!(" (n {})", count(n)))
    }

    /// Returns the verdict as data.
    pub fn as_data(&self) -> VerdictData {
        let records = self.records;
        let first = &records[self.standing.order[0].1];
        let (kind, unit) = match &self.standing.by {
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
            n: self.standing.counts[o.1],
            behind_percent: Some(self.standing.behind(o.0)).filter(|b| b.is_finite()),
        };
        VerdictData {
            kind,
            by: self.measure(first),
            unit,
            higher_is_better: self.standing.higher_is_better,
            enough: self.standing.enough(),
            winner: self
                .standing
                .winner()
                .map(|w| records[w].scheduler.spec.clone()),
            order: self.standing.order.iter().map(place).collect(),
            words: self.words(),
            rows: Vec::new(),
        }
    }

    /// Returns the verdict in words.
    pub fn words(&self) -> String {
        format!("{} {}", self.judged(), self.rests())
    }

    /// Returns a sentence about the limits of one run per scheduler.
    fn rests(&self) -> String {
        let seed = self.records[self.standing.order[0].1].seed;
        format!(
            "One run each with seed {seed}; another seed can give another result (--seed {}).",
            seed.wrapping_add(1)
        )
    }

    fn judged(&self) -> String {
        let records = self.records;
        let name = |i: usize| in_prose(&records[i].scheduler.spec);
        let (best, worst) = (
            self.standing.order[0],
            self.standing.order[self.standing.order.len() - 1],
        );
        let first = &records[best.1];
        let what = self.measure(first);
        let of = |o: (f64, usize)| format!("{}{}", self.value(o.0, &records[o.1]), self.n(o.1));
        if !self.standing.enough() {
            let kind = match self.counted(first) {
                k if k.is_empty() => "operations".to_owned(),
                k => k,
            };
            let few =
                (0..records.len()).filter(|i| self.standing.counts[*i].is_some_and(|n| n < FEWEST));
            let few =
                few.map(|i| format!("{} under {}", self.standing.counts[i].unwrap_or(0), name(i)));
            let mut few: Vec<String> = few.collect();
            if few.len() > FEW_NAMED {
                let rest = few.len() - FEW_NAMED;
                few.truncate(FEW_NAMED);
                few.push(format!("too few under {rest} more"));
            }
            return format!(
                "too few operations to decide ({kind}: {}; at least {FEWEST} are needed). By \
                 {what}, {} has {}, {} {}.",
                few.join(", "),
                name(best.1),
                of(best),
                name(worst.1),
                of(worst),
            );
        }
        if first.censored() {
            let s = three(first.span_ns() as f64 / 1e9);
            return format!("not decided: none finished within its limit ({s} s).");
        }
        if worst.0 == best.0 {
            return format!("no difference: {what} is {} under all.", of(best));
        }
        if self.standing.behind(worst.0) <= SAME_PERCENT {
            return format!(
                "level: by {what} all are within {} of each other, {} to {}; differences below \
                 {SAME_PERCENT:.0} % are not distinguished here.",
                percent(self.standing.behind(worst.0), 1),
                of(best),
                of(worst),
            );
        }
        let same = self
            .standing
            .order
            .iter()
            .filter(|o| self.standing.behind(o.0) <= SAME_PERCENT);
        let leaders: Vec<_> = same.map(|o| name(o.1)).collect();
        let verb = if leaders.len() > 1 {
            format!("are level (within {SAME_PERCENT:.0} %) and ahead")
        } else {
            "is ahead".to_owned()
        };
        let mut text = format!("by {what}, {} {verb} with {}", list(&leaders), of(best));
        if let Some(next) = self.standing.order.get(leaders.len())
            && next.1 != worst.1
        {
            text += &format!(
                "; next is {} with {}, {}",
                name(next.1),
                of(*next),
                self.distance(*next)
            );
        }
        text += &format!(
            "; last is {} with {}, {}. ",
            name(worst.1),
            of(worst),
            self.distance(worst)
        );
        text += &self.placement_words(records);
        text += &self.tail(records, best.1);
        text.trim_end().to_owned()
    }

    /// Returns a note if the schedulers belong to kernels of different generations, which place the
    /// same files differently.
    fn placement_words(&self, records: &[Record]) -> String {
        let Some(next) = self.standing.placed() else {
            return match self.standing.other_kernel(records) {
                Some((best, next)) => format!(
                    "They belong to kernels of different generations ({best} and {next}), whose \
                     page cache and file system differ too. "
                ),
                None => String::new(),
            };
        };
        let (best, next) = (&records[self.standing.order[0].1], &records[next]);
        format!(
            "But {} ({}) and {} ({}) belong to different kernels, which place the same files \
             differently: on such a device placement alone has changed a figure by a factor of {}, \
             so the scheduler may not be the cause. ",
            in_prose(&best.scheduler.spec),
            best.scheduler.kernel,
            in_prose(&next.scheduler.spec),
            next.scheduler.kernel,
            placement(best)
        )
    }

    /// Returns a note if another run has a much better tail latency, because the mean does not show
    /// the tail.
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
                in_prose(&records[i].scheduler.spec)
            ),
            _ => String::new(),
        }
    }

    /// Describes how far a run is behind. The measure is the lead of the best run, as on the page
    /// and over several seeds.
    fn distance(&self, (value, run): (f64, usize)) -> String {
        let (best, own) = (&self.records[self.standing.order[0].1], &self.records[run]);
        if own.censored() {
            let times = own.span_ns() as f64 / best.span_ns().max(1) as f64;
            return match times > 1.05 {
                true => format!("at least {times:.1} times longer for the same work"),
                false => "not finished".to_owned(),
            };
        }
        let behind = self.standing.behind(value);
        let word = match (&self.standing.by, self.standing.higher_is_better) {
            (By::Metric, true) => "behind",
            (By::Metric, false) => "higher",
            _ => "longer",
        };
        if !behind.is_finite() {
            "beyond comparison".to_owned()
        } else if behind >= 100.0 {
            format!("{:.1} times {word}", behind / 100.0 + 1.0)
        } else {
            format!("{behind:.0} % {word}")
        }
    }
}

/// Tails by the share of operations beyond them, the smallest share first.
const TAILS: [(&str, u64); 4] = [
    ("thousandth", 1000),
    ("hundredth", 100),
    ("twentieth", 20),
    ("tenth", 10),
];

/// Returns a note if the CPU time of schedulers is relevant and is not charged.
pub fn cpu_note(records: &[Record]) -> Option<String> {
    let free = |r: &&Record| {
        matches!(&*r.substrate, "sim" | "kernel") && !r.device.rotational && !r.scheduler_charged
    };
    let fast = records.iter().filter(free);
    let most = fast.map(Record::iops).fold(0.0, f64::max);
    (most >= CPU_MATTERS_IOPS).then(|| {
        format!(
            "At {} I/Os per second a scheduler's CPU time matters. It is not charged here, so a \
             scheduler that does more than `none` looks better than it is.",
            three(most)
        )
    })
}

/// Joins names: "a", "a and b", "a, b and c".
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match &names[..] {
        [one] => (*one).to_owned(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests;
