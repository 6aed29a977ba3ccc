//! The deciding metrics. A deciding metric is a metric of the workload, the latency of one of its
//! operations, or a measurement of the block layer.

use crate::data::{MetricInfo, PaceOf, Paced, Value};
use seekwell::{SpecErrors, WorkloadSpec};
use seekwell_core::NSEC_PER_SEC;
use seekwell_core::result::{Latency, Metric, Record};
use seekwell_workload::declared::{Declared, also_decide, declared};
use seekwell_workload::fio::{JobFile, Kind};
use seekwell_workload::params::parse_time;
use std::sync::Arc;

/// A statistic of the latencies of operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// Operations per second.
    Rate,
    /// Mean latency, in ms.
    Mean,
    /// A percentile of the latency, from 0 to 100.
    Percentile(f64),
    /// Largest latency, in ms.
    Max,
}

/// The bios whose latencies are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bios {
    /// Reads and writes.
    All,
    /// Reads only.
    Reads,
    /// Writes only.
    Writes,
}

/// A deciding metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Primary {
    /// The first metric that the workload reports.
    #[default]
    Own,
    /// The metric with this name.
    Metric(String),
    /// A statistic of one kind of operation of the workload.
    Operation(String, Statistic),
    /// A statistic of bios in the block layer.
    Block(Bios, Statistic),
    /// Throughput of bios in MiB per second.
    Throughput,
    /// Time from the start to the stop of the workload's clock, in s.
    Duration,
}

/// All deciding metrics of a cell. Each has its own row with a verdict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deciding {
    /// The first metric. It also determines when there are enough blocks.
    pub primary: Primary,
    /// The metrics of the other rows.
    pub rows: Vec<Primary>,
    /// Metrics without their own row. They must agree too before the analysis concludes that
    /// nothing differs.
    pub checks: Vec<String>,
}

impl Deciding {
    /// Returns the default deciding metrics of a workload.
    pub fn usual(of: &WorkloadSpec) -> Self {
        Deciding {
            primary: Primary::usual(of),
            rows: Primary::also(of),
            checks: checks(of),
        }
    }
    /// Returns a single deciding metric, if the user requests one.
    pub fn alone(primary: Primary) -> Self {
        Deciding {
            primary,
            ..Deciding::default()
        }
    }
    /// Returns the name, unit and direction of the other rows.
    pub fn rows_info(&self, of: &WorkloadSpec) -> Vec<MetricInfo> {
        self.rows.iter().map(|p| p.info(of)).collect()
    }
}

/// Measurements of the block layer, which every workload has.
pub(super) const BELOW: &[&str] = &[
    "duration",
    "block throughput",
    "block io rate",
    "block io mean",
    "block read p99",
    "block write max",
];

/// Names of the statistics, for messages.
const STATISTICS: &str = "rate, mean, max, p50, p90, p95, p99, p99.9";

impl Statistic {
    fn parse(word: &str) -> Option<Statistic> {
        match word {
            "rate" => Some(Statistic::Rate),
            "mean" => Some(Statistic::Mean),
            "max" => Some(Statistic::Max),
            _ => {
                let digits = word.strip_prefix('p')?;
                if !digits.starts_with(|c: char| c.is_ascii_digit()) {
                    return None;
                }
                let p: f64 = digits.parse().ok()?;
                (p > 0.0 && p < 100.0).then_some(Statistic::Percentile(p))
            }
        }
    }
    fn word(self) -> String {
        match self {
            Statistic::Rate => "rate".to_owned(),
            Statistic::Mean => "mean".to_owned(),
            Statistic::Max => "max".to_owned(),
            Statistic::Percentile(p) => format!("p{p}"),
        }
    }
    /// Returns the statistic of these latencies in ms. Must not be called for a rate.
    fn compute(self, latency: &Latency) -> f64 {
        let ms = |ns: f64| ns / 1e6;
        match self {
            Statistic::Rate => latency.count() as f64,
            Statistic::Mean => ms(latency.mean_ns()),
            Statistic::Max => ms(latency.max_ns() as f64),
            Statistic::Percentile(p) => ms(latency.percentile_ns(p) as f64),
        }
    }
    fn info(self, name: String, of: &str) -> MetricInfo {
        let rate = self == Statistic::Rate;
        MetricInfo {
            name,
            unit: if rate {
                format!("{of}/s")
            } else {
                "ms".to_owned()
            },
            higher_is_better: rate,
            step: None,
        }
    }
}

impl Bios {
    fn word(self) -> &'static str {
        match self {
            Bios::All => "io",
            Bios::Reads => "read",
            Bios::Writes => "write",
        }
    }
}

impl Primary {
    /// Parses the name of a deciding metric of a workload. `transactions` is a metric of the
    /// workload. `fsync p99` is a statistic of its operations: rate, mean, max or a percentile.
    /// Every workload also has `duration`, `block throughput`, `block io rate`, `block read p99`,
    /// `block write mean` and similar metrics.
    ///
    /// # Errors
    /// Returns an error if the workload does not have this metric, as far as this is known before a
    /// run.
    pub fn parse(text: &str, of: &WorkloadSpec) -> Result<Primary, SpecErrors> {
        let text = text.trim();
        let split = text
            .rsplit_once(' ')
            .map(|(kind, word)| (kind.trim(), word));
        let statistic = split.and_then(|(kind, word)| Some((kind, Statistic::parse(word)?)));
        if text == "duration" {
            return Ok(Primary::Duration);
        }
        if let Some(below) = text.strip_prefix("block ") {
            let of = |word: &str| match word {
                "io" => Some(Bios::All),
                "read" => Some(Bios::Reads),
                "write" => Some(Bios::Writes),
                _ => None,
            };
            let found = below.rsplit_once(' ');
            let found = found.and_then(|(kind, s)| Some((of(kind)?, Statistic::parse(s)?)));
            return match (below, found) {
                ("throughput", _) => Ok(Primary::Throughput),
                (_, Some((bios, s))) => Ok(Primary::Block(bios, s)),
                _ => Err(SpecErrors::single(
                    "",
                    format!(
                        "the block layer has no metric \"{text}\": write block throughput, or \
                         block io, block read or block write with one of {STATISTICS}"
                    ),
                )),
            };
        }
        let given = gives(of);
        let metric = given.is_some_and(|g| g.metrics.iter().any(|m| m.name == text));
        if metric {
            return Ok(Primary::Metric(text.to_owned()));
        }
        if let Some(file) = job_file(of) {
            return parse_of_job_file(text, statistic, &file, of);
        }
        match (statistic, given) {
            (Some((kind, s)), Some(g)) if g.operations.contains(&kind) => {
                Ok(Primary::Operation(kind.to_owned(), s))
            }
            (_, Some(g)) => Err(unknown(text, split, of, g)),
            // The operations of an external workload are not known before a run, so every name is
            // accepted.
            (Some((kind, s)), None) => Ok(Primary::Operation(kind.to_owned(), s)),
            (None, None) if text.is_empty() => Err(SpecErrors::single(
                "",
                "the metric is empty; leave it out to use the metric of the workload",
            )),
            (None, None) => match of {
                WorkloadSpec::Trace { .. } => Err(SpecErrors::single(
                    "",
                    format!(
                        "a trace has no metric \"{text}\": write block throughput, or block io, \
                         block read or block write with one of {STATISTICS}"
                    ),
                )),
                _ => Ok(Primary::Metric(text.to_owned())),
            },
        }
    }

    /// Returns the default deciding metric: the metric of the workload. A trace has no metric. If
    /// the replay ignores the timestamps of the trace, the metric is the time for the same work;
    /// otherwise it is the mean latency.
    pub fn usual(of: &WorkloadSpec) -> Primary {
        match of {
            WorkloadSpec::Trace { mode, .. } => match mode.as_str() {
                m if m == "closed" || m.starts_with("depth") => Primary::Duration,
                _ => Primary::Block(Bios::All, Statistic::Mean),
            },
            _ => Primary::Own,
        }
    }

    /// Returns the further default metrics, which matter to a user of the workload. Each has its
    /// own row.
    fn also(of: &WorkloadSpec) -> Vec<Primary> {
        if let Some(file) = job_file(of) {
            let others = file.figures().into_iter().skip(1);
            return others
                .map(|f| Primary::Metric(f.name.into_owned()))
                .collect();
        }
        let WorkloadSpec::Script { name, params } = of else {
            return Vec::new();
        };
        // A parameter of the workload selects one of its metrics.
        let chosen = gives(of).and_then(|g| params.get(g.named_by?));
        if chosen.is_some_and(|c| c != "all") {
            return Vec::new();
        }
        let all = also_decide(name).iter();
        all.filter_map(|text| Primary::parse(text, of).ok())
            .collect()
    }

    /// Returns the name, unit and direction of the metric, as far as they are known before a run.
    /// The name is empty if it is not known.
    pub fn info(&self, of: &WorkloadSpec) -> MetricInfo {
        let given = gives(of);
        let known = |name: &str| given.and_then(|g| g.metrics.iter().find(|m| m.name == name));
        if let (Primary::Own | Primary::Metric(_), Some(file)) = (self, job_file(of)) {
            let mut all = file.all_figures().into_iter();
            let found = match self {
                Primary::Metric(name) => all.find(|f| f.name == *name),
                _ => all.next(),
            };
            return found.map_or_else(
                || pooled(self),
                |f| MetricInfo {
                    name: f.name.into_owned(),
                    unit: f.kind.unit().to_owned(),
                    higher_is_better: f.kind.higher_is_better(),
                    step: None,
                },
            );
        }
        match self {
            Primary::Own => match given.and_then(|g| first(g, of)) {
                Some(name) => Primary::Metric(name.to_owned()).info(of),
                None => MetricInfo::default(),
            },
            Primary::Metric(name) => match known(name) {
                Some(m) => MetricInfo {
                    name: m.name.to_owned(),
                    unit: m.unit.to_owned(),
                    higher_is_better: m.higher_is_better,
                    step: m.step,
                },
                // The first run determines the unit and the direction.
                None => MetricInfo::default(),
            },
            Primary::Operation(kind, s) => s.info(format!("{kind} {}", s.word()), kind),
            Primary::Block(bios, s) => {
                let name = format!("block {} {}", bios.word(), s.word());
                s.info(name, "I/Os")
            }
            Primary::Throughput => MetricInfo {
                name: "block throughput".to_owned(),
                unit: "MiB/s".to_owned(),
                higher_is_better: true,
                step: None,
            },
            Primary::Duration => MetricInfo {
                name: "duration".to_owned(),
                unit: "s".to_owned(),
                higher_is_better: false,
                step: None,
            },
        }
    }

    /// Returns which seconds of a record contain the metric's value per second. Returns `None` if
    /// the workload has no fixed duration, or if the metric has no value per second (for example a
    /// percentile).
    pub fn paced(&self, of: &WorkloadSpec) -> Option<Paced> {
        let WorkloadSpec::Script { params, .. } = of else {
            return None;
        };
        let timed = gives(of)?.timed?;
        let time_ns = parse_time(params.get(timed.time)?)?;
        let by = |s: Statistic| match s {
            Statistic::Rate => Some(PaceOf::Rate),
            Statistic::Mean => Some(PaceOf::MeanMs),
            Statistic::Percentile(_) | Statistic::Max => None,
        };
        let (of, kinds) = match self {
            Primary::Own | Primary::Metric(_) => {
                let info = self.info(of);
                let found = timed.metrics.iter().find(|m| m.0 == info.name)?;
                let of = match info.unit.as_str() {
                    "ms" => PaceOf::MeanMs,
                    "MB/s" => PaceOf::Mib,
                    _ => PaceOf::Rate,
                };
                (of, found.1.iter().map(|k| (*k).to_owned()).collect())
            }
            Primary::Operation(kind, s) => (by(*s)?, vec![kind.clone()]),
            Primary::Block(Bios::All, s) => (by(*s)?, Vec::new()),
            Primary::Throughput => (PaceOf::Mib, Vec::new()),
            // Latencies of bios are not recorded per second.
            Primary::Block(..) | Primary::Duration => return None,
        };
        Some(Paced { of, kinds, time_ns })
    }

    /// Returns the value of the metric in a record. Returns `None` if the run has no such
    /// operations.
    pub fn value(&self, record: &Record, of: &WorkloadSpec) -> Option<Value> {
        let own = |m: &Metric| {
            let known = Primary::Metric(m.name.clone()).info(of);
            Value {
                metric: Arc::new(MetricInfo {
                    step: known.step,
                    ..m.into()
                }),
                value: m.value,
                n: m.n,
            }
        };
        let info = || Arc::new(self.info(of));
        match self {
            Primary::Own => record.metric.as_ref().map(own),
            Primary::Metric(name) => {
                let mut all = record.metric.iter().chain(&record.more_metrics);
                all.find(|m| m.name == *name).map(own)
            }
            Primary::Operation(kind, s) => {
                let o = record.operation(kind)?;
                let n = o.latency.count();
                let value = match s {
                    Statistic::Rate => record.rate(n as f64),
                    s => s.compute(&o.latency),
                };
                let metric = info();
                (n > 0).then_some(Value { metric, value, n })
            }
            Primary::Block(bios, s) => {
                let mut latency = Latency::default();
                if *bios != Bios::Writes {
                    latency.merge(&record.read.latency);
                }
                if *bios != Bios::Reads {
                    latency.merge(&record.write.latency);
                }
                let n = latency.count();
                let value = match s {
                    Statistic::Rate => record.rate(n as f64),
                    s => s.compute(&latency),
                };
                let metric = info();
                (n > 0).then_some(Value { metric, value, n })
            }
            Primary::Throughput => Some(Value {
                metric: info(),
                value: record.bytes_per_sec() / f64::from(1 << 20),
                n: record.read.ios + record.write.ios,
            }),
            Primary::Duration => Some(Value {
                metric: info(),
                value: record.span_ns() as f64 / NSEC_PER_SEC as f64,
                n: 0,
            }),
        }
    }
}

/// Returns the metrics that a workload is known to report.
fn gives(of: &WorkloadSpec) -> Option<&'static Declared> {
    match of {
        WorkloadSpec::Script { name, .. } => declared(name),
        WorkloadSpec::Fio { .. } | WorkloadSpec::Trace { .. } => None,
    }
}

/// Returns the metrics of a job file that must agree but have no row: the rate and mean latency of
/// every section and direction. Returns an empty list for other workloads.
fn checks(of: &WorkloadSpec) -> Vec<String> {
    let Some(file) = job_file(of) else {
        return Vec::new();
    };
    let judged = file.figures();
    let all = file.all_figures().into_iter();
    let checked =
        all.filter(|f| matches!(f.kind, Kind::Iops(_) | Kind::Mean(_)) && !judged.contains(f));
    checked.map(|f| f.name.into_owned()).collect()
}

/// Returns the job file, if the workload is a job file.
fn job_file(of: &WorkloadSpec) -> Option<JobFile> {
    let WorkloadSpec::Fio { .. } = of else {
        return None;
    };
    seekwell_sim::spec::workload::plan(of)
        .ok()??
        .job_file()
        .cloned()
}

/// Metrics of all sections of a job file together, with their units.
const POOLED: [(&str, &str); 2] = [("IOPS", "I/Os/s"), ("bandwidth", "MiB/s")];

fn pooled(of: &Primary) -> MetricInfo {
    let Primary::Metric(name) = of else {
        return MetricInfo::default();
    };
    let known = POOLED.iter().find(|p| p.0 == name);
    known.map_or_else(MetricInfo::default, |(name, unit)| MetricInfo {
        name: (*name).to_owned(),
        unit: (*unit).to_owned(),
        higher_is_better: true,
        step: None,
    })
}

/// Parses a metric of a job file: a metric of one section, of all sections, or a statistic of
/// operations.
fn parse_of_job_file(
    text: &str,
    statistic: Option<(&str, Statistic)>,
    file: &JobFile,
    of: &WorkloadSpec,
) -> Result<Primary, SpecErrors> {
    let figures = file.all_figures();
    let pooled = POOLED.iter().map(|p| p.0.to_owned());
    let known: Vec<String> = figures
        .iter()
        .map(|f| f.name.to_string())
        .chain(pooled)
        .collect();
    if known.iter().any(|name| name == text) {
        return Ok(Primary::Metric(text.to_owned()));
    }
    match statistic {
        Some((kind, s)) if ["read", "write", "trim", "fsync", "fdatasync"].contains(&kind) => {
            Ok(Primary::Operation(kind.to_owned(), s))
        }
        _ => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let mut errors = SpecErrors::default();
            errors.unknown(
                "",
                &format!("{} has no metric \"{text}\"", of.name()),
                text,
                &known,
            );
            Err(errors)
        }
    }
}

/// Returns the metric that the workload reports first with these parameters, in which defaults are
/// filled in.
fn first(g: &'static Declared, of: &WorkloadSpec) -> Option<&'static str> {
    let usual = g.metrics.first().map(|m| m.name);
    let (Some(param), WorkloadSpec::Script { params, .. }) = (g.named_by, of) else {
        return usual;
    };
    match params.get(param)?.as_str() {
        "all" => usual,
        name => g.metrics.iter().map(|m| m.name).find(|m| *m == name),
    }
}

/// Returns the error for a name that is neither a metric nor an operation of the workload.
fn unknown(text: &str, split: Option<(&str, &str)>, of: &WorkloadSpec, g: &Declared) -> SpecErrors {
    let mut errors = SpecErrors::default();
    if let Some((kind, word)) = split
        && g.operations.contains(&kind)
    {
        let what =
            format!("\"{word}\" is not a statistic of operations: write one of {STATISTICS}");
        errors.push("", what);
        return errors;
    }
    let metrics = g.metrics.iter().map(|m| m.name.to_owned());
    // The suggestion has the requested statistic if it is valid, otherwise `p99`.
    let word = split.map_or("p99", |s| s.1);
    let word = Statistic::parse(word).map_or("p99", |_| word);
    let operations = g.operations.iter().map(|o| format!("{o} {word}"));
    let all: Vec<String> = metrics.chain(operations).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let what = format!("{} has no metric \"{text}\"", of.name());
    errors.unknown("", &what, text, &all);
    errors
}
