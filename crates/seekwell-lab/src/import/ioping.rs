//! Reads the statistics at the end of ioping. Each block of statistics is a run.
//!
//! Source: ioping 0.9 to 1.3, for example `220 requests completed in 3.01 s, 73 iops, 292.9 KiB/s`
//! and `min/avg/max/mdev = 3.89 ms / 13.7 ms / 21.9 ms / 3.88 ms`.

use super::harvest::{Harvest, HarvestRun, Of, metric, number, short, value};
use super::{Format, ImportError, Input, NameFrom, Place};

pub const FORMAT: Format = Format {
    name: "ioping",
    summary: "the statistics of ioping",
    becomes: "as pgbench; the target of ioping -> device",
    gives: "one run per block of statistics: mean and maximum latency, IOPS",
    scheduler_from: NameFrom::File,
    known: |t| t.lines().any(|l| target(l).is_some()),
    part_of: None,
    read,
};

const TIMES_MS: &[(&str, f64)] = &[
    ("ns", 1e-6),
    ("us", 1e-3),
    ("ms", 1.0),
    ("s", 1e3),
    ("min", 6e4),
    ("hour", 3.6e6),
];

/// Parses the first line of the statistics: `--- /dev/sda (block device 1.82 TiB) ioping
/// statistics ---`. Returns the target.
fn target(line: &str) -> Option<&str> {
    let name = line
        .trim()
        .strip_prefix("--- ")?
        .strip_suffix(" ioping statistics ---")?;
    let name = name.split(" (").next().unwrap_or(name);
    Some(name.strip_prefix("/dev/").unwrap_or(name))
}

/// Parses a time such as `13.7 ms`, and returns ms.
fn time_ms(text: &str) -> Result<f64, String> {
    let (n, unit) = text.trim().split_once(' ').unwrap_or((text, ""));
    let unit = TIMES_MS.iter().find(|u| u.0 == unit.trim());
    let (_, ms) = unit.ok_or_else(|| format!("\"{}\" is not a time", short(text)))?;
    Ok(number(n)?.value * ms)
}

/// Returns the IOPS in `220 requests completed in 3.01 s, 73 iops, ...`; `37.6 k iops` is 37600.
fn iops(line: &str) -> Option<Result<f64, String>> {
    let part = line.split(", ").find_map(|p| p.strip_suffix(" iops"))?;
    let (n, unit) = part.split_once(' ').unwrap_or((part, ""));
    let factor = match unit {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        _ => return Some(Err(format!("\"{}\" is not a number of IOPS", short(part)))),
    };
    Some(number(n).map(|n| n.value * factor))
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let mut now: Option<(&str, Option<f64>)> = None;
        let mut runs = 0;
        for (i, line) in input.text.lines().enumerate() {
            let (line, at) = (line.trim(), |why| input.error(Place::Line(i + 1), why));
            if let Some(name) = target(line) {
                now = Some((name, None));
            }
            let Some((name, rate)) = &mut now else {
                continue;
            };
            if line.contains("requests completed in") {
                *rate = iops(line).transpose().map_err(at)?;
            }
            let Some(times) = line.strip_prefix("min/avg/max/mdev =") else {
                continue;
            };
            let times: Vec<&str> = times.split(" / ").collect();
            let &[_, mean, most, _] = times.as_slice() else {
                return Err(at("has no four times".to_owned()));
            };
            let mut values = Vec::new();
            for (what, time) in [("latency mean", mean), ("latency maximum", most)] {
                let ms = time_ms(time).map_err(at)?;
                values.push(value(metric(what, "ms", false), ms, 0));
            }
            values.extend(rate.map(|n| value(metric("IOPS", "IOPS", true), n, 0)));
            runs += 1;
            harvest.run(HarvestRun {
                of: Of {
                    device: short(name),
                    test: "ioping".to_owned(),
                    ..Of::default()
                },
                values,
                ..HarvestRun::default()
            })?;
            now = None;
        }
        if runs == 0 {
            let what = "has no line \"min/avg/max/mdev\": ioping was stopped; run it again";
            return Err(input.error(Place::File, what));
        }
    }
    Ok(())
}
