//! Reads fio's JSON and JSON+ output. A file is a run; all jobs with the same name form a workload.
//!
//! Source: source code and manual of fio 3.42. Versions before 3.0, which have microseconds and
//! other names, can also be read. Jobs with the same name run at the same time, so their rates are
//! added. Their latencies are merged if JSON+ contains histogram bins. Without bins they are left
//! out, because quantiles of several jobs cannot be merged.

use super::harvest::{Harvest, HarvestRun, Of, measured, metric, short, value};
use super::json::{first, mentions, text};
use super::{Format, ImportError, Input, NameFrom, Place};
use crate::data::{Outcome, Value as Measured};
use serde_json::Value;
use std::collections::BTreeMap;

pub const FORMAT: Format = Format {
    name: "fio",
    summary: "fio --output-format=json or json+",
    becomes: "file's or folder's name -> scheduler; the disk that fio names, else the rest of the \
              file's name -> device; job -> workload",
    gives: "one run per file: IOPS, bandwidth, latencies (exact quantiles from the bins of json+)",
    scheduler_from: NameFrom::File,
    known: |t| mentions(t, &["\"fio version\""]),
    part_of: None,
    read,
};

/// Quantiles that become metrics: name, fio's spelling and fraction.
const QUANTILES: &[(&str, &str, f64)] = &[
    ("p50", "50.000000", 0.5),
    ("p99", "99.000000", 0.99),
    ("p99.9", "99.900000", 0.999),
];
/// Kinds of latency, in order of preference. A program waits for the completion latency (`clat`).
const LATENCIES: &[&str] = &["clat", "lat"];

/// One direction, such as reads, of all jobs with the same name.
#[derive(Clone, Default)]
pub(super) struct Direction {
    pub(super) ios: u64,
    pub(super) iops: f64,
    pub(super) bytes_per_s: f64,
    /// Sum of all latencies in ns, and their number.
    pub(super) sum_ns: f64,
    pub(super) n: u64,
    /// Number of operations by latency in ns; `None` if a job has no bins.
    pub(super) bins: Option<BTreeMap<u64, u64>>,
    /// Quantiles that fio computed; used if there is only one job.
    pub(super) told: Vec<(&'static str, f64)>,
    pub(super) jobs: u32,
}

/// All jobs with the same name in a file.
#[derive(Default)]
pub(super) struct Job {
    pub(super) directions: BTreeMap<&'static str, Direction>,
    pub(super) error: Option<i64>,
    pub(super) runtime_ms: u64,
    began_ms: Option<u64>,
}

/// Returns a numeric member; 0 if the member is missing.
fn num(v: &Value, name: &str) -> Result<f64, String> {
    match v.get(name) {
        None => Ok(0.0),
        Some(x) => {
            let x = x
                .as_f64()
                .ok_or_else(|| format!("\"{name}\" is not a number"))?;
            let x = measured(x).map_err(|why| format!("\"{name}\": {why}"))?;
            match x < 0.0 {
                true => Err(format!("\"{name}\" is negative ({x})")),
                false => Ok(x),
            }
        }
    }
}

/// Returns the latency object, and the factor that converts its unit to ns.
fn latency(direction: &Value) -> Option<(&Value, f64)> {
    LATENCIES.iter().find_map(|name| {
        let ns = direction.get(format!("{name}_ns")).map(|l| (l, 1.0));
        ns.or_else(|| direction.get(*name).map(|l| (l, 1e3)))
    })
}

fn bins(l: &Value, unit_ns: f64) -> Result<Option<BTreeMap<u64, u64>>, String> {
    let Some(Value::Object(all)) = l.get("bins") else {
        return Ok(None);
    };
    let mut out = BTreeMap::new();
    for (key, count) in all {
        let at: u64 = key
            .parse()
            .map_err(|_| format!("bin \"{}\" is not a time", short(key)))?;
        let count = count
            .as_u64()
            .ok_or_else(|| format!("bin {at} counts no operations"))?;
        let at = (at as f64 * unit_ns) as u64;
        let sum = out.entry(at).or_insert(0_u64);
        *sum = sum.saturating_add(count);
    }
    Ok(Some(out))
}

impl Direction {
    /// Adds one direction of one job.
    fn add(&mut self, v: &Value) -> Result<(), String> {
        self.jobs += 1;
        self.ios = self.ios.saturating_add(num(v, "total_ios")? as u64);
        self.iops += num(v, "iops")?;
        // fio has `bw_bytes` since 3.0. `bw` is in KiB/s.
        self.bytes_per_s += match v.get("bw_bytes") {
            Some(_) => num(v, "bw_bytes")?,
            None => num(v, "bw")? * 1024.0,
        };
        let Some((l, unit_ns)) = latency(v) else {
            return Ok(());
        };
        let n = match l.get("N") {
            Some(_) => num(l, "N")? as u64,
            None => num(v, "total_ios")? as u64,
        };
        self.sum_ns += num(l, "mean")? * unit_ns * n as f64;
        self.n = self.n.saturating_add(n);
        let own = bins(l, unit_ns)?;
        self.bins = match (self.bins.take(), own, self.jobs) {
            (None, own, 1) => own,
            (Some(mut all), Some(own), _) => {
                for (at, count) in own {
                    let sum = all.entry(at).or_insert(0);
                    *sum = sum.saturating_add(count);
                }
                Some(all)
            }
            _ => None,
        };
        self.told.clear();
        if self.jobs == 1
            && let Some(told) = l.get("percentile")
        {
            for (name, key, _) in QUANTILES {
                if told.get(*key).is_some() {
                    self.told.push((name, num(told, key)? * unit_ns));
                }
            }
        }
        Ok(())
    }

    /// Adds the same direction of another job, which has no bins.
    pub(super) fn merge(&mut self, other: Direction) {
        self.jobs += other.jobs;
        self.ios = self.ios.saturating_add(other.ios);
        self.iops += other.iops;
        self.bytes_per_s += other.bytes_per_s;
        self.sum_ns += other.sum_ns;
        self.n = self.n.saturating_add(other.n);
        self.told = if self.jobs == 1 {
            other.told
        } else {
            Vec::new()
        };
    }

    /// Adds the quantile that fio printed for this percentage, if it becomes a metric.
    pub(super) fn tell(&mut self, percent: f64, ns: f64) {
        let close = |q: &&(&str, &str, f64)| (q.2 * 100.0 - percent).abs() < 1e-9;
        if let Some((name, ..)) = QUANTILES.iter().find(close) {
            self.told.push((name, ns));
        }
    }

    /// Returns quantiles computed from the bins, or without bins the quantiles that fio computed.
    fn quantiles(&self) -> Vec<(&'static str, f64)> {
        let Some(bins) = &self.bins else {
            return self.told.clone();
        };
        let all: u64 = bins.values().fold(0, |a, b| a.saturating_add(*b));
        if all == 0 {
            return Vec::new();
        }
        let at = |q: f64| {
            let rank = (libm::ceil(q * all as f64) as u64).clamp(1, all);
            let mut sum = 0_u64;
            let found = bins.iter().find(|(_, count)| {
                sum = sum.saturating_add(**count);
                sum >= rank
            });
            found.map_or(0.0, |(at, _)| *at as f64)
        };
        QUANTILES
            .iter()
            .map(|(name, _, q)| (*name, at(*q)))
            .collect()
    }

    fn values(&self, name: &str, out: &mut Vec<Measured>) {
        let iops = metric(&format!("{name} IOPS"), "IOPS", true);
        out.push(value(iops, self.iops, self.ios));
        let rate = metric(&format!("{name} bandwidth"), "MiB/s", true);
        out.push(value(rate, self.bytes_per_s / f64::from(1 << 20), self.ios));
        self.latencies(name, out);
    }

    fn latencies(&self, name: &str, out: &mut Vec<Measured>) {
        if self.n == 0 {
            return;
        }
        let of = |what: &str| metric(&format!("{name} latency {what}"), "ms", false);
        out.push(value(of("mean"), self.sum_ns / self.n as f64 / 1e6, self.n));
        for (what, ns) in self.quantiles() {
            out.push(value(of(what), ns / 1e6, self.n));
        }
    }
}

impl Job {
    /// Adds another job with the same name, which runs at the same time.
    pub(super) fn merge(&mut self, other: Job) {
        self.error = self.error.or(other.error);
        self.runtime_ms = self.runtime_ms.max(other.runtime_ms);
        for (name, d) in other.directions {
            self.directions.entry(name).or_default().merge(d);
        }
    }

    fn add(&mut self, job: &Value) -> Result<(), String> {
        if let Some(error) = job.get("error").and_then(Value::as_i64).filter(|e| *e != 0) {
            self.error = Some(error);
        }
        for name in ["read", "write", "trim"] {
            let Some(direction) = job.get(name).filter(|d| d.is_object()) else {
                continue;
            };
            if num(direction, "total_ios")? > 0.0 || num(direction, "io_bytes")? > 0.0 {
                let d = self.directions.entry(name).or_default();
                d.add(direction).map_err(|why| format!("{name}: {why}"))?;
            }
            let runtime = num(direction, "runtime")? as u64;
            self.runtime_ms = self.runtime_ms.max(runtime);
        }
        if let Some(sync) = job.get("sync").filter(|s| s.is_object())
            && num(sync, "total_ios")? > 0.0
        {
            let d = self.directions.entry("sync").or_default();
            d.add(sync).map_err(|why| format!("sync: {why}"))?;
        }
        let began = job.get("job_start").and_then(Value::as_u64);
        self.began_ms = self.began_ms.or(began);
        Ok(())
    }

    /// Returns all values. The primary metric, operations per second, comes first.
    fn values(&self) -> Vec<Measured> {
        let mut out = Vec::new();
        let moving: Vec<_> = self.directions.iter().filter(|d| *d.0 != "sync").collect();
        if moving.len() > 1 {
            let iops: f64 = moving.iter().map(|d| d.1.iops).sum();
            let ios = moving.iter().fold(0_u64, |a, d| a.saturating_add(d.1.ios));
            out.push(value(metric("IOPS", "IOPS", true), iops, ios));
        }
        for (name, d) in &moving {
            d.values(name, &mut out);
        }
        if let Some(sync) = self.directions.get("sync") {
            sync.latencies("sync", &mut out);
        }
        out
    }
}

/// Returns the disk in fio's statistics if there is exactly one, otherwise an empty text.
fn disk(document: &Value) -> String {
    let all = document.get("disk_util").and_then(Value::as_array);
    match all.map(Vec::as_slice) {
        Some([one]) => short(text(one, "name")),
        _ => String::new(),
    }
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let (document, _) = first(input)?;
        let jobs = document
            .get("jobs")
            .or_else(|| document.get("client_stats"));
        let Some(jobs) = jobs.and_then(Value::as_array) else {
            let what = "has neither `jobs` nor `client_stats`: fio was stopped before it could \
                        write them; run it again";
            return Err(input.error(Place::File, what));
        };
        let mut names: Vec<String> = Vec::new();
        let mut all: Vec<Job> = Vec::new();
        for (i, job) in jobs.iter().enumerate() {
            let name = short(text(job, "jobname"));
            // A server's sum over its clients would count the jobs twice.
            if name == "All clients" {
                continue;
            }
            let at = names.iter().position(|n| *n == name).unwrap_or_else(|| {
                names.push(name.clone());
                all.push(Job::default());
                all.len() - 1
            });
            let place = || Place::Element(format!("jobs {} ({name})", i + 1));
            all[at].add(job).map_err(|why| input.error(place(), why))?;
        }
        add_jobs(input, harvest, &names, &all, &disk(&document))?;
    }
    Ok(())
}

/// Adds the jobs of a file, with their names, as one run.
pub(super) fn add_jobs(
    input: &Input,
    harvest: &mut Harvest,
    names: &[String],
    all: &[Job],
    disk: &str,
) -> Result<(), ImportError> {
    for (name, job) in names.iter().zip(all) {
        let mut values = job.values();
        let failed = job.error.map(|e| format!("fio's error {e}"));
        if values.is_empty() {
            let Some(why) = &failed else {
                harvest.note(format!("{}: job {name} did no I/O, left out", input.name));
                continue;
            };
            harvest.note(format!("{}: job {name} failed ({why})", input.name));
            values.push(value(metric("IOPS", "IOPS", true), 0.0, 0));
        }
        if all.len() > 1 {
            harvest.note(
                "several jobs of a file belong to one run: their figures are not independent",
            );
        }
        harvest.run(HarvestRun {
            of: Of {
                device: disk.to_owned(),
                test: match name.as_str() {
                    "" => "fio".to_owned(),
                    name => format!("fio {name}"),
                },
                ..Of::default()
            },
            outcome: failed.map_or(Outcome::Done, Outcome::Failed),
            values,
            began_unix_ns: job.began_ms.and_then(|ms| ms.checked_mul(1_000_000)),
            duration_ns: job.runtime_ms.saturating_mul(1_000_000),
            ..HarvestRun::default()
        })?;
    }
    Ok(())
}
