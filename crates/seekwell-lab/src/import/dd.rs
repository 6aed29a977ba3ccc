//! Reads the last line of dd: `4294967296 bytes (4.3 GB, 4.0 GiB) copied, 2.67133 s, 1.6 GB/s`. Each
//! line is a run; copies of the same size form a workload.
//!
//! Source: coreutils 6 to 9, busybox (`2.671 seconds`), and BSD (`bytes transferred in 2.67 secs`).

use super::harvest::{Harvest, HarvestRun, Of, metric, number, value};
use super::{Format, ImportError, Input, NameFrom, Place};

pub const FORMAT: Format = Format {
    name: "dd",
    summary: "the last lines of dd",
    becomes: "as pgbench; the size -> workload",
    gives: "one run per line: bandwidth",
    scheduler_from: NameFrom::File,
    known: |t| t.lines().any(|l| copied(last(l)).is_some()),
    part_of: None,
    read,
};

/// With status=progress, dd overwrites its line.
fn last(line: &str) -> &str {
    line.trim_end().rsplit('\r').next().unwrap_or(line).trim()
}

/// Returns the number of bytes and the time in s, as text.
fn copied(line: &str) -> Option<(&str, &str)> {
    let (bytes, rest) = line.split_once(" bytes ")?;
    let time = match rest.split_once("copied, ") {
        Some((_, rest)) => rest,
        None => rest.strip_prefix("transferred in ")?,
    };
    let time = time.split_once(" s").map(|p| p.0)?;
    bytes
        .bytes()
        .all(|c| c.is_ascii_digit())
        .then_some((bytes, time))
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let mut runs = 0;
        for (i, line) in input.text.lines().enumerate() {
            let Some((bytes, time)) = copied(last(line)) else {
                continue;
            };
            let at = |why: String| input.error(Place::Line(i + 1), why);
            let size = number(bytes).map_err(at)?.value;
            let seconds = number(time).map_err(at)?.value;
            if seconds <= 0.0 {
                return Err(at("took no time: copy more data".to_owned()));
            }
            runs += 1;
            harvest.run(HarvestRun {
                of: Of {
                    test: format!("dd {bytes} bytes"),
                    ..Of::default()
                },
                values: vec![value(
                    metric("bandwidth", "MB/s", true),
                    size / seconds / 1e6,
                    0,
                )],
                duration_ns: (seconds.min(1e9) * 1e9) as u64,
                ..HarvestRun::default()
            })?;
        }
        if runs == 0 {
            let what = "has no line \"N bytes ... copied, N s\": dd was stopped; run it again";
            return Err(input.error(Place::File, what));
        }
    }
    harvest.note(
        "dd measures the page cache unless it ran with oflag=direct, conv=fdatasync or iflag=direct",
    );
    Ok(())
}
