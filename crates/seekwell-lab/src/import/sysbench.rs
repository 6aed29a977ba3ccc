//! Reads one or several reports of sysbench, version 1.0. Versions 0.4 and 0.5 are read where the
//! wording agrees.

use super::harvest::{Harvest, HarvestRun, Number, Of, metric, number, short, value};
use super::{Format, ImportError, Input, NameFrom, Place};
use crate::data::{MetricInfo, Outcome};

pub const FORMAT: Format = Format {
    name: "sysbench",
    summary: "sysbench's report (fileio, oltp, cpu ...)",
    becomes: "as pgbench; test, mode and threads -> workload",
    gives: "one run per report: transactions or events per second, mean latency and p95",
    scheduler_from: NameFrom::File,
    known: |t| t.lines().any(|l| begins(l).is_some()),
    part_of: None,
    read,
};

/// Parses the first line of a report: `sysbench 1.0.20 (using ...)`.
fn begins(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("sysbench ")?;
    rest.starts_with(|c: char| c.is_ascii_digit())
        .then_some(rest)
}

#[derive(Default)]
struct Report {
    line: usize,
    test: &'static str,
    mode: String,
    threads: String,
    events: Option<Number>,
    seconds: Option<Number>,
    transactions: Option<Number>,
    queries: Option<Number>,
    mib_read: Option<Number>,
    mib_written: Option<Number>,
    latency_mean: Option<Number>,
    latency_p95: Option<Number>,
}

impl Report {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let Some((name, rest)) = line.split_once(':') else {
            if let Some(mode) = line.strip_prefix("Doing ") {
                self.test = "fileio";
                self.mode = short(mode);
            }
            return Ok(());
        };
        let told = rest.trim();
        // Values are, for example, "2.0013s", "0.01ms" or "815    (406.45 per sec.)".
        let plain = |t: &str| {
            let t = t.split_whitespace().next().unwrap_or("");
            number(t.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%'))
        };
        let per_second = |t: &str| {
            let inside = t.split_once('(').map_or("", |p| p.1);
            number(inside.split_whitespace().next().unwrap_or(""))
        };
        match name.trim() {
            "Number of threads" => self.threads = short(told),
            "total time" => self.seconds = Some(plain(told)?),
            "total number of events" => self.events = Some(plain(told)?),
            "transactions" if told.contains('(') => {
                self.test = "oltp";
                self.transactions = Some(per_second(told)?);
            }
            "queries" if told.contains('(') => self.queries = Some(per_second(told)?),
            "read, MiB/s" => self.mib_read = Some(plain(told)?),
            "written, MiB/s" => self.mib_written = Some(plain(told)?),
            "CPU speed" => self.test = "cpu",
            "avg" => self.latency_mean = Some(plain(told)?),
            "95th percentile" | "approx.  95 percentile" | "approx. 95 percentile" => {
                self.latency_p95 = Some(plain(told)?);
            }
            "File operations" => self.test = "fileio",
            _ => {}
        }
        Ok(())
    }

    fn names(&self) -> Of {
        let mut test = "sysbench".to_owned();
        for part in [self.test, &self.mode] {
            if !part.is_empty() {
                test += &format!(" {part}");
            }
        }
        if !self.threads.is_empty() {
            let plural = if self.threads == "1" { "" } else { "s" };
            test += &format!(", {} thread{plural}", self.threads);
        }
        Of {
            test,
            ..Of::default()
        }
    }
}

/// Returns a metric whose resolution is the last printed digit.
fn stepped(name: &str, unit: &str, higher: bool, n: Number) -> MetricInfo {
    MetricInfo {
        step: n.step,
        ..metric(name, unit, higher)
    }
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let mut reports: Vec<Report> = Vec::new();
        for (i, line) in input.text.lines().enumerate() {
            if begins(line).is_some() {
                reports.push(Report {
                    line: i + 1,
                    ..Report::default()
                });
            } else if let Some(report) = reports.last_mut() {
                let said = report.line(line.trim());
                said.map_err(|why| input.error(Place::Line(i + 1), why))?;
            }
        }
        for report in &reports {
            let told = report.events.zip(report.seconds);
            let Some((events, seconds)) = told.filter(|(_, s)| s.value > 0.0) else {
                let what = "a report without `total time` and `total number of events`: sysbench \
                            was stopped before its end; run it again";
                return Err(input.error(Place::Line(report.line), what));
            };
            let n = events.value.max(0.0) as u64;
            let mut values = Vec::new();
            if let Some(tps) = report.transactions {
                let of = stepped("transactions", "transactions/s", true, tps);
                values.push(value(of, tps.value, n));
            }
            // Events divided by time have more digits than the printed rates.
            let rate = events.value / seconds.value;
            values.push(value(metric("events", "events/s", true), rate, n));
            for (name, unit, higher, of) in [
                ("queries", "queries/s", true, report.queries),
                ("read", "MiB/s", true, report.mib_read),
                ("written", "MiB/s", true, report.mib_written),
                ("latency mean", "ms", false, report.latency_mean),
                ("latency p95", "ms", false, report.latency_p95),
            ] {
                if let Some(x) = of {
                    values.push(value(stepped(name, unit, higher, x), x.value, n));
                }
            }
            harvest.run(HarvestRun {
                of: report.names(),
                outcome: match n {
                    0 => Outcome::Failed("no event in the whole run".to_owned()),
                    _ => Outcome::Done,
                },
                values,
                duration_ns: (seconds.value.min(1e9) * 1e9) as u64,
                ..HarvestRun::default()
            })?;
        }
    }
    Ok(())
}
