//! Reads pgbench's logs (`-l`): one line per transaction, or with `--aggregate-interval` one line
//! per interval. Each thread of a run writes its own file (`PREFIX.PID`, `PREFIX.PID.1` ...). The
//! files of a run are read together.
//!
//! Checked against logs of PostgreSQL 15, with and without `--rate`.

use super::harvest::{Harvest, HarvestRun, Of, metric, value};
use super::{Format, ImportError, Input, NameFrom, Place};
use std::collections::BTreeMap;

pub const FORMAT: Format = Format {
    name: "pgbench-log",
    summary: "logs of pgbench -l: one line per transaction or interval",
    becomes: "as pgbench; the workload is \"pgbench log\"",
    gives: "one run per process (logs of all threads): tps, latencies",
    scheduler_from: NameFrom::File,
    known: |t| {
        let mut lines = t
            .lines()
            .filter(|l| !l.trim().is_empty())
            .take(3)
            .peekable();
        lines.peek().is_some() && lines.all(|l| kind(l).is_some())
    },
    part_of: Some(process),
    read,
};

/// What a line of the log describes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Transaction,
    Interval,
}

/// Returns whether the text is a time in seconds since 1970, between the years 2000 and 2100.
fn is_epoch(t: &str) -> bool {
    t.parse::<u64>()
        .is_ok_and(|s| (946_684_800..4_102_444_800).contains(&s))
}

fn kind(line: &str) -> Option<Kind> {
    let f: Vec<&str> = line.split_whitespace().take(7).collect();
    let number = |t: &&str| t.parse::<f64>().is_ok();
    if f.len() < 6 {
        None
    } else if is_epoch(f[4]) && f[0].parse::<u32>().is_ok() {
        Some(Kind::Transaction)
    } else if is_epoch(f[0]) && f.iter().all(number) {
        Some(Kind::Interval)
    } else {
        None
    }
}

/// Returns the name of a log without the thread number: `PREFIX.PID`.
fn process(name: &str) -> String {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    match name.rsplit_once('.') {
        Some((front, thread))
            if digits(thread) && front.rsplit_once('.').is_some_and(|p| digits(p.1)) =>
        {
            front.to_owned()
        }
        _ => name.to_owned(),
    }
}

/// Latencies of transactions, and the time of the first and the last one, in us.
#[derive(Default)]
struct Transactions {
    latencies_us: Vec<f64>,
    first_us: Option<i128>,
    last_us: Option<i128>,
    skipped: u64,
    failed: u64,
}

/// Sums per interval.
#[derive(Default)]
struct Intervals {
    /// Number of transactions and sum of latencies in us, by start of the interval in s since 1970.
    by_start: BTreeMap<u64, (f64, f64)>,
}

fn field<T: std::str::FromStr>(f: &[&str], i: usize, what: &str) -> Result<T, String> {
    let text = f
        .get(i)
        .ok_or_else(|| format!("has no {what} (field {})", i + 1))?;
    let bad = || {
        format!(
            "field {} ({what}): \"{}\" is not a valid number",
            i + 1,
            super::harvest::short(text)
        )
    };
    text.parse().map_err(|_| bad())
}

impl Transactions {
    fn line(&mut self, f: &[&str]) -> Result<(), String> {
        let latency = f.get(2).copied().unwrap_or("");
        match latency {
            "skipped" => {
                self.skipped += 1;
                return Ok(());
            }
            "failed" | "serialization" | "deadlock" => {
                self.failed += 1;
                return Ok(());
            }
            _ => {}
        }
        let us: u64 = field(f, 2, "latency in microseconds")?;
        let seconds: u64 = field(f, 4, "second of the end")?;
        let fraction: u64 = field(f, 5, "microsecond of the end")?;
        let end = i128::from(seconds) * 1_000_000 + i128::from(fraction);
        let start = end - i128::from(us);
        self.first_us = Some(self.first_us.map_or(start, |t| t.min(start)));
        self.last_us = Some(self.last_us.map_or(end, |t| t.max(end)));
        self.latencies_us.push(us as f64);
        Ok(())
    }
}

impl Intervals {
    fn line(&mut self, f: &[&str]) -> Result<(), String> {
        let start: u64 = field(f, 0, "start of the interval")?;
        let n: u64 = field(f, 1, "number of transactions")?;
        let sum: f64 = field(f, 2, "sum of latencies")?;
        let good = sum.is_finite() && (0.0..=1e18).contains(&sum);
        if !good {
            return Err(format!(
                "field 3 (sum of latencies): {sum} is not a valid sum"
            ));
        }
        let at = self.by_start.entry(start).or_insert((0.0, 0.0));
        *at = (at.0 + n as f64, at.1 + sum);
        Ok(())
    }

    /// Returns transactions per second, mean latency in us and number of transactions. The first
    /// and the last interval are left out if there are others, because the run covers them only in
    /// part.
    fn rate(&self) -> Option<(f64, f64, u64)> {
        let starts: Vec<u64> = self.by_start.keys().copied().collect();
        let step = starts.windows(2).map(|w| w[1] - w[0]).min()?;
        let whole: Vec<(f64, f64)> = self.by_start.values().copied().collect();
        let inner = match whole.len() {
            0..=2 => &whole[..],
            n => &whole[1..n - 1],
        };
        // The log may omit intervals without transactions. The time is therefore the difference of
        // two start times.
        let seconds = match starts.len() {
            2 => 2 * step,
            n => starts[n - 1] - starts[1],
        };
        let n: f64 = inner.iter().map(|i| i.0).sum();
        let sum: f64 = inner.iter().map(|i| i.1).sum();
        (n > 0.0 && seconds > 0).then(|| (n / seconds as f64, sum / n, n as u64))
    }
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    let (mut each, mut sums) = (Transactions::default(), Intervals::default());
    let mut first_kind = None;
    for input in inputs {
        for (i, line) in input.text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let at = Place::Line(i + 1);
            let f: Vec<&str> = line.split_whitespace().collect();
            let Some(kind) = kind(line) else {
                let what = "is neither a transaction (client, number, latency, script, second, \
                            microsecond) nor an interval (start, transactions, sum of latencies ...)";
                return Err(input.error(at, what));
            };
            if *first_kind.get_or_insert(kind) != kind {
                let what = "has another type than the previous lines; import logs of transactions \
                            and of intervals separately";
                return Err(input.error(at, what));
            }
            let said = match kind {
                Kind::Transaction => each.line(&f),
                Kind::Interval => sums.line(&f),
            };
            said.map_err(|why| input.error(at, why))?;
        }
    }
    let Some(input) = inputs.first() else {
        return Ok(());
    };
    let mut values = Vec::new();
    let mut duration_ns = 0;
    let tps = metric("tps", "tps", true);
    let mean = metric("latency mean", "ms", false);
    match first_kind {
        Some(Kind::Transaction) => {
            let span = each.first_us.zip(each.last_us).map_or(0, |(a, b)| b - a);
            let n = each.latencies_us.len() as u64;
            if n > 1 && span > 0 {
                values.push(value(tps, n as f64 / (span as f64 / 1e6), n));
                let sum: f64 = each.latencies_us.iter().sum();
                values.push(value(mean, sum / n as f64 / 1e3, n));
                each.latencies_us.sort_by(f64::total_cmp);
                for (name, q) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
                    let rank = (libm::ceil(q * n as f64) as usize).clamp(1, n as usize);
                    let ms = each.latencies_us[rank - 1] / 1e3;
                    let of = metric(&format!("latency {name}"), "ms", false);
                    values.push(value(of, ms, n));
                }
                duration_ns = u64::try_from(span).unwrap_or(0).saturating_mul(1000);
            }
            if each.skipped + each.failed > 0 {
                harvest.note(format!(
                    "{}: {} transactions skipped, {} failed; tps and latencies cover only the \
                     others",
                    input.name, each.skipped, each.failed
                ));
            }
        }
        Some(Kind::Interval) => {
            if let Some((rate, mean_us, n)) = sums.rate() {
                values.push(value(tps, rate, n));
                values.push(value(mean, mean_us / 1e3, n));
                harvest.note(
                    "pgbench intervals: the first and the last are left out, because they \
                              are incomplete",
                );
            }
        }
        None => {}
    }
    if values.is_empty() {
        let what = "has too few transactions for a rate";
        return Err(input.error(Place::File, what));
    }
    harvest.run(HarvestRun {
        of: Of {
            test: "pgbench log".to_owned(),
            ..Of::default()
        },
        values,
        duration_ns,
        ..HarvestRun::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_threads_of_one_process_are_grouped() {
        assert_eq!(process("logs/cfq.710.1"), "logs/cfq.710");
        assert_eq!(process("logs/cfq.710"), "logs/cfq.710");
        assert_eq!(process("pgbench_log.5"), "pgbench_log.5");
    }
}
