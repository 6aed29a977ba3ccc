//! Reads CSV files from OpenBenchmarking.org and from the client's `result-file-to-csv`. One form
//! contains means without errors; the other form contains all runs. Quotes are not used
//! consistently.

use super::harvest::{Harvest, Of, short};
use super::pts_names::{metric_of, test_of};
use super::pts_xml::figures;
use super::{Format, ImportError, Input, NameFrom, Place};
use crate::data::MetricInfo;

pub const FORMAT: Format = Format {
    name: "openbenchmarking-csv",
    summary: "OpenBenchmarking.org or phoronix-test-suite result-file-to-csv",
    becomes: "columns as the systems of pts-xml; title, description and unit -> workload",
    gives: "means only: ratios without tests",
    scheduler_from: NameFrom::System,
    known: |t| {
        let mut lines = t.lines().take(200);
        lines.any(|l| [",HIB,", ",LIB,"].iter().any(|p| l.contains(p)))
    },
    part_of: None,
    read,
};

pub const RAW: Format = Format {
    name: "openbenchmarking-raw-csv",
    summary: "phoronix-test-suite result-file-raw-to-csv",
    becomes: "as openbenchmarking-csv",
    gives: "runs",
    scheduler_from: NameFrom::System,
    known: |t| {
        let mut lines = t.lines().take(200);
        lines.any(|l| direction_line(l).is_some())
    },
    part_of: None,
    read: read_raw,
};

fn direction_line(line: &str) -> Option<&'static str> {
    let line = line.trim().trim_matches([',', '"']);
    match line {
        "Higher Results Are Better" => Some("HIB"),
        "Lower Results Are Better" => Some("LIB"),
        _ => None,
    }
}

/// Splits a line into fields, which may or may not be quoted.
fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.trim_end_matches(['\r', '\n']).chars().peekable();
    while let Some(c) = chars.next() {
        let last = out.len() - 1;
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                out[last].push('"');
            }
            '"' if quoted => quoted = false,
            // A quote inside an unquoted field is an ordinary character.
            '"' if out[last].trim().is_empty() => quoted = true,
            ',' if !quoted => out.push(String::new()),
            c => out[last].push(c),
        }
    }
    out
}

/// Splits "TITLE - DESCRIPTION (UNIT)" into the name of the test and the unit.
fn title_of(text: &str) -> (String, String) {
    let text = text.trim();
    let unit = text.strip_suffix(')').and_then(|t| t.rsplit_once('('));
    let (name, unit) = match unit {
        Some((name, unit)) => (name.trim(), unit.trim()),
        None => (text, ""),
    };
    (short(name.trim_end_matches([' ', '-'])), short(unit))
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let mut systems: Vec<String> = Vec::new();
        let mut disks: Vec<String> = Vec::new();
        for (i, line) in input.text.lines().enumerate() {
            let f = fields(line);
            let cell = |k: usize| f.get(k).map_or("", |c| c.trim());
            if harvest.title.is_empty() && i == 0 {
                harvest.title = short(cell(1));
            }
            let named = f.len() > 2 && cell(0).is_empty() && cell(1).is_empty();
            if named && !cell(2).is_empty() {
                systems = f[2..].iter().map(|s| short(s)).collect();
                while systems.last().is_some_and(String::is_empty) {
                    systems.pop();
                }
                continue;
            }
            if cell(0) == "Disk" && cell(1).is_empty() && f.len() >= 3 {
                // Without quotes, values that contain commas cannot be separated, so the line is
                // ignored.
                let whole = f.len() - 2 == systems.len();
                disks = if whole {
                    f[2..].iter().map(|d| short(d)).collect()
                } else {
                    Vec::new()
                };
                continue;
            }
            if !["HIB", "LIB", "ABSTRACT"].contains(&cell(1)) {
                continue;
            }
            if systems.is_empty() {
                let what = "a result before the line that names the systems (` ,,\"A\",\"B\"`)";
                return Err(input.error(Place::Line(i + 1), what));
            }
            if f.len() - 2 > systems.len()
                && f[2 + systems.len()..].iter().any(|c| !c.trim().is_empty())
            {
                let what = format!("has {} values for {} systems", f.len() - 2, systems.len());
                return Err(input.error(Place::Line(i + 1), what));
            }
            let (test, unit) = title_of(cell(0));
            let metric = metric_of(&unit, cell(1), harvest);
            for (k, system) in systems.iter().enumerate() {
                if cell(k + 2).is_empty() {
                    continue;
                }
                let of = Of {
                    system: system.clone(),
                    device: disks.get(k).cloned().unwrap_or_default(),
                    test: test_of(&test, "", ""),
                    ..Of::default()
                };
                figures(of, &metric, cell(k + 2), &[], harvest)?;
            }
        }
    }
    Ok(())
}

fn read_raw(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let (mut before, mut current): (String, Option<(String, MetricInfo)>) =
            (String::new(), None);
        for (i, line) in input.text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let f = fields(line);
            if let Some(direction) = direction_line(line) {
                let (test, unit) = title_of(&before);
                let metric = metric_of(&unit, direction, harvest);
                current = Some((test_of(&test, "", ""), metric));
                continue;
            }
            let runs: Vec<&str> = f[1..]
                .iter()
                .map(|c| c.trim())
                .filter(|c| !c.is_empty())
                .collect();
            let system = short(&f[0]);
            match &current {
                // A line that contains only a name is the title of the next result.
                _ if runs.is_empty() => before = f[0].clone(),
                None => {
                    let what = "runs before the first title and `Higher Results Are Better`";
                    return Err(input.error(Place::Line(i + 1), what));
                }
                Some((test, metric)) => {
                    let of = Of {
                        system,
                        test: test.clone(),
                        ..Of::default()
                    };
                    harvest.runs_of(&of, metric, &runs)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_fields_may_be_bare_or_quoted() {
        assert_eq!(
            fields("\"a, \"\"b\"\"\",HIB,1.0,"),
            ["a, \"b\"", "HIB", "1.0", ""]
        );
        assert_eq!(fields(" ,,\"A\",\"B\""), [" ", "", "A", "B"]);
        assert_eq!(
            title_of("FS-Mark - 1000 Files (Files/s)"),
            ("FS-Mark - 1000 Files".into(), "Files/s".into())
        );
    }
}
