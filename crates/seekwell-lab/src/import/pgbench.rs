//! Reads pgbench's report: transactions per second and mean latency. A file contains one or more
//! reports, one per run.
//!
//! Checked against the output of PostgreSQL 15. The wording of older versions ("excluding
//! connections establishing", "latency average:") is accepted as well.

use super::harvest::{Harvest, HarvestRun, Number, Of, metric, number, short, value};
use super::{Format, ImportError, Input, NameFrom, Place};
use crate::data::Outcome;

pub const FORMAT: Format = Format {
    name: "pgbench",
    summary: "pgbench's final report",
    becomes: "file's or folder's name -> scheduler, its rest -> device; script, scale and clients \
              -> workload",
    gives: "one run per report: tps without connecting, mean latency",
    scheduler_from: NameFrom::File,
    known: |t| {
        let has = |word: &str| t.lines().any(|l| l.trim_start().starts_with(word));
        has("transaction type:") || (has("tps = ") && has("number of clients:"))
    },
    part_of: None,
    read,
};

/// The contents of one report.
#[derive(Default)]
struct Report {
    script: String,
    scale: String,
    clients: String,
    tps: Option<Number>,
    /// True if the transactions per second exclude the time for connecting.
    tps_without: bool,
    latency_ms: Option<Number>,
    transactions: u64,
    failed: u64,
    duration_s: f64,
    line: usize,
}

impl Report {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let after = |word: &str| line.strip_prefix(word).map(str::trim);
        let first = |t: &str| t.split_whitespace().next().unwrap_or("").to_owned();
        if let Some(t) = after("scaling factor:") {
            self.scale = short(t);
        } else if let Some(t) = after("number of clients:") {
            self.clients = short(t);
        } else if let Some(t) = after("duration:") {
            self.duration_s = number(&first(t))?.value.clamp(0.0, 1e9);
        } else if let Some(t) = after("number of transactions actually processed:") {
            let done = t.split(['/', ' ']).next().unwrap_or("");
            self.transactions = number(done)?.value.max(0.0) as u64;
        } else if let Some(t) = after("number of failed transactions:") {
            self.failed = number(&first(t))?.value.max(0.0) as u64;
        } else if let Some(t) = after("latency average").map(|t| t.trim_start_matches(['=', ':'])) {
            self.latency_ms = Some(number(&first(t))?);
        } else if let Some(t) = after("tps =") {
            let without = t.contains("without") || t.contains("excluding");
            if self.tps.is_none() || without {
                self.tps = Some(number(&first(t))?);
                self.tps_without = without;
            }
        }
        Ok(())
    }

    fn names(&self) -> Of {
        let mut test = match self.script.as_str() {
            "" => "pgbench".to_owned(),
            script => format!("pgbench {script}"),
        };
        if !self.scale.is_empty() {
            test += &format!(", scale {}", self.scale);
        }
        if !self.clients.is_empty() {
            let plural = if self.clients == "1" { "" } else { "s" };
            test += &format!(", {} client{plural}", self.clients);
        }
        Of {
            test,
            ..Of::default()
        }
    }
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let mut reports: Vec<Report> = Vec::new();
        for (i, line) in input.text.lines().enumerate() {
            let line = line.trim();
            if let Some(script) = line.strip_prefix("transaction type:") {
                reports.push(Report {
                    script: short(script.replace("<builtin: ", "").trim_end_matches('>')),
                    line: i + 1,
                    ..Report::default()
                });
                continue;
            }
            let Some(report) = reports.last_mut() else {
                continue;
            };
            let said = report.line(line);
            said.map_err(|why| input.error(Place::Line(i + 1), why))?;
        }
        if reports.is_empty() {
            let what = "has no line `transaction type:`, with which pgbench begins its report";
            return Err(input.error(Place::File, what));
        }
        for report in &reports {
            let Some(tps) = report.tps else {
                let what = "a report without `tps =`: pgbench was stopped before its end; run it \
                            again, or import its log (-l)";
                return Err(input.error(Place::Line(report.line), what));
            };
            if !report.tps_without {
                harvest.note("pgbench: tps including the time for connecting");
            }
            if report.failed > 0 {
                let (name, failed) = (&input.name, report.failed);
                harvest.note(format!(
                    "{name}: {failed} transactions failed; tps counts the others"
                ));
            }
            let n = report.transactions;
            let mut values = vec![value(metric("tps", "tps", true), tps.value, n)];
            if let Some(ms) = report.latency_ms {
                values.push(value(metric("latency mean", "ms", false), ms.value, n));
            }
            let none = tps.value <= 0.0;
            harvest.run(HarvestRun {
                of: report.names(),
                outcome: match none {
                    true => Outcome::Failed("no transaction was completed".to_owned()),
                    false => Outcome::Done,
                },
                values,
                duration_ns: (report.duration_s * 1e9) as u64,
                ..HarvestRun::default()
            })?;
        }
    }
    Ok(())
}
