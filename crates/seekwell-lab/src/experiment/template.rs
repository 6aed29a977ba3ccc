//! A commented experiment file that users can start from. It runs unchanged within seconds. Its
//! commented-out lines are valid too.

use super::read::is_job;
use crate::usual::TODAY;
use seekwell::words;
use seekwell_workload::{Kind, workload};
use std::fmt::Write as _;
use toml::Value;

/// What a new experiment file contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Name of the experiment.
    pub name: String,
    /// The devices as typed.
    pub devices: Vec<String>,
    /// The schedulers as typed.
    pub schedulers: Vec<String>,
    /// The workloads as typed: names with parameters after a colon, or fio job files.
    pub workloads: Vec<String>,
}

impl Default for Start {
    /// Returns the default schedulers and workloads of current kernels. The devices are the default
    /// devices without the NVMe drive, which takes longest to simulate.
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

/// Formats a text as a string in TOML.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// Formats a text as a value in TOML. Numbers have no quotes.
fn value(text: &str) -> String {
    match text.parse::<i64>() {
        Ok(n) if n.to_string() == text => text.to_owned(),
        _ => quoted(text),
    }
}

const HEAD: &str = r#"# An experiment for `seekwell compare`. It runs unchanged, without root, in seconds. With
# --dry-run it only prints the plan.
#
# It compares schedulers on every device with every workload (and machine). Each such combination
# is a cell. Each block of a cell runs every scheduler once, in random order and with the same seed.
# Blocks are repeated until the intervals are narrow enough.
#
# Lines that start with `# ` are explanations. A setting after a bare `#` is optional: remove the #
# to use it. A list of values is a grid: every value becomes a separate device, scheduler, workload
# or machine. docs/experiments.md is the full reference. `seekwell new --schema` prints a schema
# with which an editor completes and checks this file.

"#;

const METHOD: &str = r#"# The same seed gives the same bytes, on any number of threads.
seed = 1
# Smallest and largest number of blocks per cell. A single number (5) is a fixed number.
repeats = "10..30"
# The smallest difference that matters. Smaller differences are reported as real but too
# small.
margin = "2 %"
# Confidence of the intervals.
#confidence = "95 %"
# A cell ends when the interval of every comparison has a half-width below this target, or below a
# quarter of the effect. With "decided", a cell ends when it is certain which scheduler is ahead, or
# that none is.
#target = "1 %"
#stop = "width"
# No block starts after this much wall-clock time.
budget = "10min"
# "sequential" makes all runs of one scheduler, then all runs of the next, as in most publications.
#order = "interleaved"
# Warm-up that workloads with a fixed duration leave out. "auto" finds it from the first block.
#warmup = "auto"
# State of flash drives before each run: fresh, filled (once, in order), used or steady. Default:
# the preset's state.
#state = "used"
"#;

const TAIL: &str = r#"
# Example of a modelled machine above the queue. Without this table, the default machine of
# the scheduler's kernel is used. Each additional [[machine]] adds cells.
#[[machine]]
#memory = "4G"
#cores = 2

# Settings of /sys/block/DEV/queue. They are the same for all schedulers.
#[queue]
#nr_requests = 128

# Cells, or schedulers in some cells, to leave out. * matches any characters.
#[[exclude]]
"#;

/// Returns the text of a new experiment file.
pub fn template(start: &Start) -> String {
    let mut out = HEAD.to_owned();
    // Writing to a `String` cannot fail.
    let _ = writeln!(out, "[experiment]\nname = {}", quoted(&start.name));
    out += "# One sentence for readers of the results.\n#description = \"why this is compared\"\n";
    out += METHOD;
    if let Some(first) = start.schedulers.first() {
        out += "# The scheduler that the others are compared with. Default: the kernel's\n";
        out += "# default for the device, if it is in the list.\n";
        let _ = writeln!(out, "#reference = {}", quoted(first));
    }
    out += "\n# `seekwell devices` lists the devices, `seekwell devices NAME` the parameters\n";
    out += "# that you can change here. The path of a preset file is also a device.\n";
    for (i, d) in start.devices.iter().enumerate() {
        let _ = writeln!(out, "[[device]]\nuse = {}", quoted(d));
        if i == 0 {
            out += "# Name in tables.\n#name = \"my disk\"\n";
        }
        out.push('\n');
    }
    out += "# `seekwell schedulers` lists the schedulers, `seekwell schedulers NAME` versions\n";
    out += "# and tunables.\n";
    for (i, s) in start.schedulers.iter().enumerate() {
        let _ = writeln!(out, "[[scheduler]]\nuse = {}", quoted(s));
        if let Some(line) = tunable(s).filter(|_| i == 0) {
            out += &line;
        }
        out.push('\n');
    }
    out += "# `seekwell workloads` lists the workloads. A fio job file (fio = \"FILE\") and a\n";
    out += "# recorded trace (trace = \"FILE\") are also workloads.\n";
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

/// Returns a commented-out grid for a tunable whose default is a number.
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
            "# Three variants with different values of a tunable (kernel default: {default}).\n#{} = [{}, {}, {}]\n",
            t.name, list[0], list[1], list[2]
        )
    })
}

/// Returns the beginning of the label of the first workload.
fn name_of(workloads: &[String]) -> &str {
    let first = workloads.first().map_or("", String::as_str);
    let first = first.rsplit('/').next().unwrap_or(first);
    let end = first.find([':', '.']).unwrap_or(first.len());
    &first[..end]
}

/// Returns the table of a workload with its given parameters. The other parameters are commented
/// out and have their defaults.
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
        out += "# The deciding metric, if not that of the workload: a block-layer metric (block\n";
        out += "# io mean, block read p99), duration, or the rate, mean, max or p99 of its\n";
        out += "# operations.\n";
        out += "#metric = \"block io p99\"\n";
    }
    let others = w
        .params
        .iter()
        .filter(|p| given.iter().all(|g| g.0.trim() != p.name));
    for p in others {
        // Numbers need no quotes, but times and sizes do.
        let default = match p.kind {
            Kind::Count(..) => value(p.default),
            _ => quoted(p.default),
        };
        let _ = writeln!(out, "#{} = {default}  # {}", p.name, p.summary);
    }
    out
}
