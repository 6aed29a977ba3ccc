//! Reads the text that CrystalDiskMark and KDiskMark save: one line per test, in the sections
//! `[Read]`, `[Write]` and `[Mix]`. A file is a run.
//!
//! Source: published reports of CrystalDiskMark 3 to 8 and KDiskMark 1 to 3, for example
//! `SEQ    1MiB (Q=  8, T= 1):  7427.749 MB/s [   7083.7 IOPS] <   987.81 us>`. 1 MB is 1,000,000
//! bytes.

use super::harvest::{Harvest, HarvestRun, Of, metric, number, short, value};
use super::{Format, ImportError, Input, NameFrom, Place};
use crate::data::{MetricInfo, Value};

pub const FORMAT: Format = Format {
    name: "diskmark",
    summary: "the text of CrystalDiskMark or KDiskMark",
    becomes: "as pgbench; section and test -> workload",
    gives: "one run per file: MB/s, IOPS and latency of each test",
    scheduler_from: NameFrom::File,
    known: |t| {
        let named = |l: &str| l.contains("CrystalDiskMark") || l.contains("KDiskMark (");
        t.lines().take(8).any(named)
    },
    part_of: None,
    read,
};

/// Returns the number and the unit in brackets, as in `[ 7083.7 IOPS]`.
fn bracketed<'a>(text: &'a str, open: char, unit: &str) -> Option<&'a str> {
    let inside = text.split_once(open)?.1.split_once(unit)?.0;
    Some(inside.trim())
}

/// Parses the figures of a test.
fn figures(text: &str) -> Result<Vec<Value>, String> {
    let mut values = Vec::new();
    let mut add = |name: &str, unit: &str, higher: bool, text: &str| -> Result<(), String> {
        let n = number(text)?;
        let of = MetricInfo {
            step: n.step,
            ..metric(name, unit, higher)
        };
        values.push(value(of, n.value, 0));
        Ok(())
    };
    let rate = text.split_once("MB/s").map_or("", |p| p.0);
    add("bandwidth", "MB/s", true, rate)?;
    if let Some(iops) = bracketed(text, '[', "IOPS") {
        add("IOPS", "IOPS", true, iops)?;
    }
    if let Some(us) = bracketed(text, '<', "us>") {
        add("latency mean", "us", false, us)?;
    }
    Ok(values)
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let (mut section, mut tests) = ("", 0);
        for (i, line) in input.text.lines().enumerate() {
            let line = line.trim();
            let named = line.strip_prefix('[').and_then(|l| l.strip_suffix(']'));
            if let Some(name) = named.filter(|n| !n.contains(' ')) {
                section = name;
            }
            let parts = line.rsplit_once(": ").filter(|p| p.1.contains("MB/s"));
            let Some((test, rest)) = parts.filter(|_| !line.starts_with('*')) else {
                continue;
            };
            let values = figures(rest).map_err(|why| input.error(Place::Line(i + 1), why))?;
            tests += 1;
            // CrystalDiskMark pads numbers with blanks.
            let test = format!("{section} {test}")
                .replace("= ", "=")
                .replace("= ", "=");
            harvest.run(HarvestRun {
                of: Of {
                    test: short(&test),
                    ..Of::default()
                },
                values,
                ..HarvestRun::default()
            })?;
        }
        if tests == 0 {
            let what = "has no line with MB/s: save the text after the test (File, Save)";
            return Err(input.error(Place::File, what));
        }
    }
    harvest.note(
        "a score of DiskMark is the best or the mean of its passes, which are not in the text",
    );
    Ok(())
}
