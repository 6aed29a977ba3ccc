//! Reads fio's terse output (`--minimal`, `--output-format=terse`), versions 3 to 5: one line per
//! job, with fields separated by semicolons. A file is a run.
//!
//! Source: the section "Terse output" of fio's manual
//! (<https://fio.readthedocs.io/en/latest/fio_doc.html#terse-output>). Rates are in KiB/s, latencies
//! in microseconds. Version 4 adds trims, and version 5 adds samples and IOPS to each direction.

use super::fio::{Direction, Job, add_jobs};
use super::harvest::{Harvest, number, short};
use super::{Format, ImportError, Input, NameFrom, Place};

pub const FORMAT: Format = Format {
    name: "fio-terse",
    summary: "fio --output-format=terse (or --minimal), versions 3 to 5",
    becomes: "job -> workload, the rest as fio",
    gives: "one run per file: IOPS, bandwidth, mean latency and the percentiles that fio printed",
    scheduler_from: NameFrom::File,
    known: |t| t.lines().any(|l| version(l).is_some()),
    part_of: None,
    read,
};

/// Number of the first field of the first direction, from 0.
const FIRST: usize = 5;
/// Number of percentiles in each direction.
const PERCENTILES: usize = 20;

/// Returns the version of a line, with the number of fields of each direction, and the directions.
fn version(line: &str) -> Option<(usize, &'static [&'static str])> {
    let (version, rest) = line.trim_start().split_once(';')?;
    rest.starts_with("fio-").then_some(())?;
    match version {
        "3" => Some((41, &["read", "write"])),
        "4" => Some((41, &["read", "write", "trim"])),
        "5" => Some((47, &["read", "write", "trim"])),
        _ => None,
    }
}

/// Parses one line. Returns the name of the job, and the job.
fn parse(line: &str, width: usize, directions: &[&'static str]) -> Result<(String, Job), String> {
    let fields: Vec<&str> = line.trim().split(';').collect();
    let at = |i: usize| -> Result<f64, String> {
        let text = fields.get(i).ok_or_else(|| {
            format!(
                "ends after field {}: fio was stopped; run it again",
                fields.len()
            )
        })?;
        match number(text)
            .map_err(|why| format!("field {}: {why}", i + 1))?
            .value
        {
            n if n < 0.0 => Err(format!("field {}: {n} is negative", i + 1)),
            n => Ok(n),
        }
    };
    let mut job = Job::default();
    job.error = Some(at(4)? as i64).filter(|e| *e != 0);
    for (k, name) in directions.iter().enumerate() {
        let from = FIRST + k * width;
        let (kib, runtime_ms, iops) = (at(from)?, at(from + 3)?, at(from + 2)?);
        if kib == 0.0 && iops == 0.0 {
            continue;
        }
        let ios = (iops * runtime_ms / 1e3) as u64;
        let n = ios.max(1);
        let mut d = Direction {
            ios,
            iops,
            bytes_per_s: at(from + 1)? * 1024.0,
            n,
            sum_ns: at(from + 10)? * 1e3 * n as f64,
            jobs: 1,
            ..Direction::default()
        };
        for part in fields.iter().skip(from + 12).take(PERCENTILES) {
            let (percent, us) = part.split_once("%=").ok_or("a percentile has no \"%=\"")?;
            d.tell(number(percent)?.value, number(us)?.value.max(0.0) * 1e3);
        }
        job.runtime_ms = job.runtime_ms.max(runtime_ms as u64);
        job.directions.insert(name, d);
    }
    Ok((short(fields[2]), job))
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let (mut names, mut all): (Vec<String>, Vec<Job>) = (Vec::new(), Vec::new());
        for (i, line) in input.text.lines().enumerate() {
            let Some((width, directions)) = version(line) else {
                continue;
            };
            let parsed = parse(line, width, directions);
            let (name, job) = parsed.map_err(|why| input.error(Place::Line(i + 1), why))?;
            let at = names.iter().position(|n| *n == name).unwrap_or_else(|| {
                names.push(name);
                all.push(Job::default());
                all.len() - 1
            });
            all[at].merge(job);
        }
        add_jobs(input, harvest, &names, &all, "")?;
    }
    Ok(())
}
