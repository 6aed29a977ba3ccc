//! A commented experiment file as a starting point. It runs unchanged within seconds. Its
//! commented-out lines are valid, too.

use super::read::is_job;
use crate::usual::TODAY;
use seekwell::words;
use seekwell_workload::{Kind, workload};
use std::fmt::Write as _;
use toml::Value;

/// The contents of a new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Name of the experiment.
    pub name: String,
    /// Devices, as typed.
    pub devices: Vec<String>,
    /// Schedulers, as typed.
    pub schedulers: Vec<String>,
    /// Workloads, as typed: names with parameters after a colon, or fio job files.
    pub workloads: Vec<String>,
}

impl Default for Start {
    /// Today's default schedulers and workloads on the default devices, except for the NVMe drive,
    /// which takes longest to simulate.
    fn default() -> Self {
        let own = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect();
        Start {
            name: "my-experiment".to_owned(),
            devices: own(&TODAY.devices[1..]),
            schedulers: own(&TODAY.schedulers.split(',').collect::<Vec<_>>()),
            workloads: own(TODAY.workloads),
        }
    }
}

/// A string in TOML.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// A string in TOML; numbers stay without quotes.
fn value(text: &str) -> String {
    match text.parse::<i64>() {
        Ok(n) if n.to_string() == text => text.to_owned(),
        _ => quoted(text),
    }
}

const HEAD: &str = r#"# An experiment for `seekwell compare`. It runs as it stands, without root, in seconds; with
# --dry-run it only says what it would do.
#
# What it compares are schedulers, on every device with every workload (and machine): each such
# combination is a cell. In a cell every scheduler runs once in each block, in random order and with
# the same seed; blocks are repeated until the intervals are narrow enough.
#
# Text behind `# ` explains; a setting behind `#` alone is one that could be made: take the # away.
# A list of values is a grid: every value becomes a device, scheduler, workload or machine of its
# own. docs/experiments.md tells everything; `seekwell new --schema` prints the schema that lets an
# editor complete and check this file as it is typed.

"#;

const METHOD: &str = r#"# Same seed, same bytes, on any number of threads.
seed = 1
# Blocks of each cell: at least, and at most. A number alone (5) means just so many.
repeats = "10..30"
# A difference that matters; smaller ones are called real but too small.
margin = "2 %"
# Of the intervals.
#confidence = "95 %"
# A cell ends when the interval of every comparison is narrower than this on either side, or than a
# quarter of the effect. "decided" ends it when it is sure which side is ahead, or that none is.
#target = "1 %"
#stop = "width"
# No more blocks are begun after so much time on the clock.
budget = "10min"
# "sequential" makes all runs of a scheduler, then all of the next, as most publications did.
#order = "interleaved"
# Time that workloads with a given duration leave out of their figures: found from the first block.
#warmup = "auto"
# Flash drives before each run: fresh, filled once in order (as presets say), used, or steady.
#state = "used"
"#;

const TAIL: &str = r#"
# The modelled machine above the queue, as an example; without any, it is the usual one for the
# kernel that each scheduler is of. Each further [[machine]] makes cells of its own.
#[[machine]]
#memory = "4G"
#cores = 2

# Settings of /sys/block/DEV/queue, the same for all schedulers.
#[queue]
#nr_requests = 128

# Cells, or schedulers in some of them, that are left out; * stands for any letters.
#[[exclude]]
"#;

/// Builds the text of a new file.
pub fn template(start: &Start) -> String {
    let mut out = HEAD.to_owned();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "[experiment]\nname = {}", quoted(&start.name));
    out += "# In a sentence, for whoever reads the results.\n#description = \"why this is compared\"\n";
    out += METHOD;
    if let Some(first) = start.schedulers.first() {
        out += "# The scheduler that the others are compared with; without it, the kernel's default for the\n";
        out += "# device, if it is among them.\n";
        let _ = writeln!(out, "#reference = {}", quoted(first));
    }
    out += "\n# `seekwell devices` lists them, `seekwell devices NAME` the parameters that can be changed\n";
    out += "# here, too. The path of a preset file is a device as well.\n";
    for (i, d) in start.devices.iter().enumerate() {
        let _ = writeln!(out, "[[device]]\nuse = {}", quoted(d));
        if i == 0 {
            out += "# What tables call it.\n#name = \"my disk\"\n";
        }
        out.push('\n');
    }
    out +=
        "# `seekwell schedulers` lists them, `seekwell schedulers NAME` versions and tunables.\n";
    for (i, s) in start.schedulers.iter().enumerate() {
        let _ = writeln!(out, "[[scheduler]]\nuse = {}", quoted(s));
        if let Some(line) = tunable(s).filter(|_| i == 0) {
            out += &line;
        }
        out.push('\n');
    }
    out +=
        "# `seekwell workloads` lists them. A fio job file (fio = \"FILE\") and a recorded trace\n";
    out += "# (trace = \"FILE\") are workloads as well.\n";
    for (i, w) in start.workloads.iter().enumerate() {
        out += &work(w, i == 0);
        if i + 1 < start.workloads.len() {
            out.push('\n');
        }
    }
    out += TAIL;
    if let Some(last) = start.schedulers.last() {
        let _ = writeln!(out, "#scheduler = {}", quoted(last));
        let _ = writeln!(out, "#workload = \"{}*\"", name_of(&start.workloads));
    }
    out
}

/// A commented-out grid for a tunable whose default is a number.
fn tunable(scheduler: &str) -> Option<String> {
    let typed = words::scheduler(scheduler).ok()?;
    let found = words::named(&typed.spec.versioned()).ok()?;
    let all = (found.info.tunables)(found.version).iter();
    let mut some = all.filter_map(|t| Some((t, t.default.parse::<i64>().ok()?)));
    let wide = |d: i64, t: &seekwell_sched::Tunable| d > 1 && 2 * d <= t.max && d / 2 >= t.min;
    let best = some.clone().find(|(t, _)| t.name == "fifo_batch");
    let (t, default) = best.or_else(|| some.find(|(t, d)| wide(*d, t)))?;
    let list = [default / 2, default, 2 * default];
    let all = list.iter().all(|n| t.validate(&n.to_string()).is_ok());
    all.then(|| {
        format!(
            "# Three of it, by its tunable ({default} is the kernel's default).\n#{} = [{}, {}, {}]\n",
            t.name, list[0], list[1], list[2]
        )
    })
}

/// The beginning of the first workload's label.
fn name_of(workloads: &[String]) -> &str {
    let first = workloads.first().map_or("", String::as_str);
    let first = first.rsplit('/').next().unwrap_or(first);
    let end = first.find([':', '.']).unwrap_or(first.len());
    &first[..end]
}

/// One workload: its given parameters, and the others commented out with their defaults.
fn work(text: &str, explain: bool) -> String {
    if is_job(text) {
        return format!("[[workload]]\nfio = {}\n", quoted(text));
    }
    let (name, inline) = text.split_once(':').unwrap_or((text, ""));
    let mut out = format!("[[workload]]\nuse = {}\n", quoted(name));
    let given: Vec<(&str, &str)> = inline
        .split(',')
        .filter_map(|p| p.split_once('='))
        .collect();
    for (k, v) in &given {
        let _ = writeln!(out, "{} = {}", k.trim(), value(v.trim()));
    }
    let Some(w) = workload(name.trim()) else {
        return out;
    };
    if explain {
        out += "# What decides instead of its own metric: block io mean, block read p99 and the like, of what\n";
        out += "# the block layer did, duration, or a figure of its operations (rate, mean, max, p99).\n";
        out += "#metric = \"block io p99\"\n";
    }
    let others = w
        .params
        .iter()
        .filter(|p| given.iter().all(|g| g.0.trim() != p.name));
    for p in others {
        // Numbers need no quotes; times and sizes do.
        let default = match p.kind {
            Kind::Count(..) => value(p.default),
            _ => quoted(p.default),
        };
        let _ = writeln!(out, "#{} = {default}  # {}", p.name, p.summary);
    }
    out
}
