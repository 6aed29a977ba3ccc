//! Reads `hdparm -tT`. Each timing is a run.
//!
//! Source: hdparm 5 to 9, for example ` Timing buffered disk reads: 364 MB in  3.00 seconds = 121.20
//! MB/sec`, where 1 MB is 1,048,576 bytes. Cached reads measure memory, so they are left out.

use super::harvest::{Harvest, HarvestRun, Of, metric, number, short, value};
use super::{Format, ImportError, Input, NameFrom, Place};
use crate::data::MetricInfo;

pub const FORMAT: Format = Format {
    name: "hdparm",
    summary: "hdparm -t, -T or both",
    becomes: "as pgbench; the disk that hdparm names -> device",
    gives: "one run per timing of disk reads: MiB/s",
    scheduler_from: NameFrom::File,
    known: |t| t.lines().any(|l| timing(l).is_some()),
    part_of: None,
    read,
};

/// Returns the kind of reads, and the rate as text.
fn timing(line: &str) -> Option<(&str, &str)> {
    let (kind, rest) = line.trim().strip_prefix("Timing ")?.split_once(" reads:")?;
    let (_, rate) = rest.split_once(" = ")?;
    Some((kind, rate.trim()))
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let (mut disk, mut runs) = (String::new(), 0);
        for (i, line) in input.text.lines().enumerate() {
            let named = line.trim().strip_prefix("/dev/");
            if let Some(name) = named.and_then(|n| n.strip_suffix(':')) {
                disk = short(name);
            }
            let Some((kind, rate)) = timing(line).filter(|t| !t.0.contains("cached")) else {
                continue;
            };
            let at = |why| input.error(Place::Line(i + 1), why);
            let (n, unit) = rate.split_once(' ').unwrap_or((rate, ""));
            let factor = match unit.trim() {
                "MB/sec" => 1.0,
                "kB/sec" => 1.0 / 1024.0,
                _ => return Err(at(format!("\"{}\" is not a rate in MB/sec", short(rate)))),
            };
            let n = number(n).map_err(at)?;
            let of = MetricInfo {
                step: n.step.map(|s| s * factor),
                ..metric("bandwidth", "MiB/s", true)
            };
            runs += 1;
            harvest.run(HarvestRun {
                of: Of {
                    device: disk.clone(),
                    test: format!("hdparm {} reads", short(kind)),
                    ..Of::default()
                },
                values: vec![value(of, n.value * factor, 0)],
                ..HarvestRun::default()
            })?;
        }
        if runs == 0 {
            let what = "has no timing of disk reads: run hdparm -t (-T measures memory)";
            return Err(input.error(Place::File, what));
        }
    }
    harvest
        .note("hdparm times sequential reads of 3 s by one process; few scheduler settings matter");
    Ok(())
}
