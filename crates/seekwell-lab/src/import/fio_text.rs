//! Reads fio's ordinary text output, versions 2 and 3. A file is a run.
//!
//! Source: `stat.c` of fio 2.1 to 3.39 and published outputs. Version 3 prints
//! `read: IOPS=5604, BW=21.9MiB/s (23.0MB/s)(219MiB/10001msec)`, version 2
//! `read : io=1018.5MB, bw=34758KB/s, iops=8689, runt= 30005msec`, where KB means 1024 bytes. The
//! text rounds rates to three digits; the exact IOPS are the number of issued I/Os per run time.

use super::fio::{Direction, Job, add_jobs};
use super::harvest::{Harvest, number, short};
use super::{Format, ImportError, Input, NameFrom, Place};

pub const FORMAT: Format = Format {
    name: "fio-text",
    summary: "fio's ordinary text output, versions 2 and 3",
    becomes: "as fio",
    gives: "one run per file: IOPS, bandwidth, mean latency and the percentiles that fio printed",
    scheduler_from: NameFrom::File,
    known: |t| t.lines().any(|l| begins(l).is_some()),
    part_of: None,
    read,
};

/// Directions, in the order of the line `issued rwts`.
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Parses the first line of a job: `NAME: (groupid=0, jobs=1): err= 0: pid=7: ...`. Returns the
/// name and the error number.
fn begins(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(": (groupid=")?;
    let (_, error) = rest.split_once("): err=")?;
    Some((name.trim(), error.split(':').next().unwrap_or("").trim()))
}

/// Returns the value after `name=`, up to a comma or a blank.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let at = text.match_indices(name).map(|m| m.0 + name.len());
    let mut values = at.filter_map(|i| text[i..].strip_prefix('='));
    let value = values.next()?.trim_start();
    value.split([',', ' ', ')']).next()
}

/// Parses a number with a suffix such as `k` or `MiB/s`. `units` are the factors of the suffixes.
fn scaled(text: &str, units: &[(&str, f64)]) -> Result<f64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '/');
    let unit = units.iter().find(|u| u.0 == &text[digits.len()..]);
    let (_, factor) = unit.ok_or_else(|| format!("\"{}\" has an unknown unit", short(text)))?;
    let n = number(digits)?.value;
    match n < 0.0 {
        true => Err(format!("\"{}\" is negative", short(text))),
        false => Ok(n * factor),
    }
}

const COUNTS: &[(&str, f64)] = &[("", 1.0), ("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9)];
/// fio 2 writes KB for 1024 bytes.
const RATES: &[(&str, f64)] = &[
    ("B/s", 1.0),
    ("KiB/s", 1024.0),
    ("MiB/s", 1_048_576.0),
    ("GiB/s", 1_073_741_824.0),
    ("TiB/s", 1_099_511_627_776.0),
    ("KB/s", 1024.0),
    ("MB/s", 1_048_576.0),
    ("GB/s", 1_073_741_824.0),
];
const TIMES: &[(&str, f64)] = &[("nsec", 1.0), ("usec", 1e3), ("msec", 1e6), ("sec", 1e9)];

/// Returns the factor of the unit in parentheses, as in `clat (usec): min=...`.
fn unit_ns(line: &str) -> Option<f64> {
    let inside = line.split_once('(')?.1.split_once(')')?.0;
    TIMES.iter().find(|t| t.0 == inside).map(|t| t.1)
}

/// The lines of one job.
#[derive(Default)]
struct Text {
    job: Job,
    /// The direction that the current lines describe, with its run time in ms.
    now: Option<(&'static str, f64)>,
    runtimes: Vec<(&'static str, f64)>,
    /// Unit of the percentiles that follow, in ns.
    percentiles_ns: Option<f64>,
}

impl Text {
    /// Parses one line without blanks at its ends.
    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some(name) = DIRECTIONS.into_iter().find(|d| {
            let rest = line.strip_prefix(d).map(|r| r.trim_start());
            rest.is_some_and(|r| r.starts_with(": IOPS=") || r.starts_with(": io="))
        }) {
            return self.direction(name, line);
        }
        if line.starts_with("fsync/fdatasync/sync_file_range") {
            self.begin("sync", Direction::default(), 0.0);
        } else if line.starts_with("clat (") || line.starts_with("sync (") {
            self.latency(line)?;
        } else if line.starts_with("clat percentiles") || line.starts_with("sync percentiles") {
            self.percentiles_ns = unit_ns(line);
        } else if line.starts_with('|') {
            self.quantiles(line)?;
        } else if let Some(total) = field(line, "total").filter(|_| line.starts_with("issued")) {
            self.issued(total, line)?;
        } else {
            self.percentiles_ns = None;
        }
        Ok(())
    }

    fn begin(&mut self, name: &'static str, d: Direction, runtime_ms: f64) {
        self.job.directions.insert(name, Direction { jobs: 1, ..d });
        self.now = Some((name, runtime_ms));
        self.percentiles_ns = None;
    }

    fn direction(&mut self, name: &'static str, line: &str) -> Result<(), String> {
        let rate = field(line, "BW").or_else(|| field(line, "bw"));
        let rate = rate.map(|r| r.split('(').next().unwrap_or(r).trim());
        let iops = field(line, "IOPS").or_else(|| field(line, "iops"));
        let (Some(rate), Some(iops)) = (rate, iops) else {
            return Err("has no IOPS and no bandwidth".to_owned());
        };
        let iops = scaled(iops, COUNTS)?;
        let time = match field(line, "runt") {
            Some(old) => old,
            None => line.rsplit_once('/').map_or("", |p| p.1),
        };
        let time = time.split(')').next().unwrap_or("").trim();
        let runtime_ms = scaled(time, TIMES)? / 1e6;
        self.runtimes.push((name, runtime_ms));
        self.job.runtime_ms = self.job.runtime_ms.max(runtime_ms as u64);
        let d = Direction {
            ios: (iops * runtime_ms / 1e3) as u64,
            iops,
            bytes_per_s: scaled(rate, RATES)?,
            ..Direction::default()
        };
        self.begin(name, d, runtime_ms);
        Ok(())
    }

    fn current(&mut self) -> Option<&mut Direction> {
        self.job.directions.get_mut(self.now?.0)
    }

    fn latency(&mut self, line: &str) -> Result<(), String> {
        let unit = unit_ns(line).ok_or("the latency has no unit")?;
        let mean = field(line, "avg").ok_or("the latency has no mean")?;
        let mean = scaled(mean, COUNTS)? * unit;
        if let Some(d) = self.current() {
            // The number of calls to sync is in the line `issued`.
            d.n = d.ios.max(1);
            d.sum_ns = mean * d.n as f64;
        }
        Ok(())
    }

    fn quantiles(&mut self, line: &str) -> Result<(), String> {
        let Some(unit) = self.percentiles_ns else {
            return Ok(());
        };
        for part in line.trim_start_matches('|').split("],") {
            let Some((percent, value)) = part.split_once("th=[") else {
                continue;
            };
            let percent = number(percent)?.value;
            let ns = scaled(value.trim_end_matches(']').trim(), COUNTS)? * unit;
            if let Some(d) = self.current() {
                d.tell(percent, ns);
            }
        }
        Ok(())
    }

    /// Reads the numbers of issued I/Os: `496,528,0,0`, or `r=496/w=528/d=0` of version 2.
    fn issued(&mut self, total: &str, line: &str) -> Result<(), String> {
        let list = line.split_once("total=").map_or("", |p| p.1);
        let list = list.split(' ').next().unwrap_or("");
        let counts: Vec<&str> = match total.starts_with("r=") {
            true => total
                .split('/')
                .filter_map(|p| p.split_once('='))
                .map(|p| p.1)
                .collect(),
            false => list.trim_end_matches(',').split(',').collect(),
        };
        for (name, count) in DIRECTIONS.into_iter().chain(["sync"]).zip(counts) {
            let count = number(count)?.value.max(0.0);
            let runtime = self
                .runtimes
                .iter()
                .find(|r| r.0 == name)
                .map_or(0.0, |r| r.1);
            let Some(d) = self.job.directions.get_mut(name) else {
                continue;
            };
            let mean_ns = d.sum_ns / d.n.max(1) as f64;
            // The printed rate has three digits. Use the exact rate if it is the same.
            let exact = count * 1e3 / runtime;
            if name == "sync" || runtime > 0.0 && (exact - d.iops).abs() <= 0.01 * d.iops {
                d.ios = count as u64;
                if name != "sync" {
                    d.iops = exact;
                }
                if d.n > 0 {
                    d.n = d.ios.max(1);
                    d.sum_ns = mean_ns * d.n as f64;
                }
            }
        }
        Ok(())
    }
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let mut texts: Vec<(String, Text)> = Vec::new();
        let mut disk = None;
        let mut disks_follow = false;
        for (i, line) in input.text.lines().enumerate() {
            let line = line.rsplit('\r').next().unwrap_or(line);
            let at = |why| input.error(Place::Line(i + 1), why);
            if let Some((name, error)) = begins(line) {
                let error = number(error).map_err(at)?.value as i64;
                let mut text = Text::default();
                text.job.error = Some(error).filter(|e| *e != 0);
                texts.push((short(name), text));
            } else if line.starts_with("Run status group") {
                // Sums over jobs follow.
                texts.iter_mut().for_each(|t| t.1.now = None);
            } else if line.starts_with("Disk stats") {
                disks_follow = true;
            } else if let Some((name, _)) = line.split_once(": ios=").filter(|_| disks_follow) {
                // Several disks identify no device.
                disk = Some(disk.map_or_else(|| short(name), |_: String| String::new()));
            } else if let Some((_, text)) = texts.last_mut() {
                text.line(line.trim()).map_err(at)?;
            }
        }
        let (mut names, mut all): (Vec<String>, Vec<Job>) = (Vec::new(), Vec::new());
        for (name, text) in texts {
            let at = names.iter().position(|n| *n == name).unwrap_or_else(|| {
                names.push(name.clone());
                all.push(Job::default());
                all.len() - 1
            });
            all[at].merge(text.job);
        }
        harvest.note(
            "fio's text has rounded numbers; --output-format=json+ gives exact ones with histograms",
        );
        add_jobs(input, harvest, &names, &all, &disk.unwrap_or_default())?;
    }
    Ok(())
}
