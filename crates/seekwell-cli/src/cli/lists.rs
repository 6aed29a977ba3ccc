//! Arguments of the commands that list schedulers, devices and formats, start new files, and
//! calibrate.

use super::Output;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// Arguments of `schedulers`.
#[derive(Args, Debug)]
pub struct Schedulers {
    /// Describe this scheduler: when not to use it, its tunables
    pub name: Option<String>,
    /// Print more: in the list, layers, versions and full descriptions; for one scheduler, history,
    /// every tunable and rule, and source
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Print the page docs/schedulers.md
    #[arg(long, conflicts_with_all = ["json", "name"])]
    pub markdown: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of a command of the Python package.
#[derive(Args, Debug)]
pub struct Handed {
    /// Arguments for the Python program
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    pub arguments: Vec<std::ffi::OsString>,
}

/// What `new` creates instead of an experiment file.
#[derive(Subcommand, Debug)]
pub enum Begin {
    /// Start a new scheduler in the source tree: file, registry line, worked examples
    Scheduler(NewPart),
    /// Start a new device in the source tree: preset file, registry line
    Device {
        /// Name and source tree
        #[command(flatten)]
        what: NewPart,
        /// Built-in device whose preset is copied, from `seekwell devices`
        #[arg(long, value_name = "DEVICE", default_value = "hdd:hitachi-7k200")]
        like: String,
    },
    /// Start a new workload in the source tree: script, registry line, brief parameters for tests
    Workload(NewPart),
    /// Start a new trace format in the source tree: reader and writer, registry line
    Format(NewPart),
}

/// A new part of the source tree.
#[derive(Args, Debug)]
pub struct NewPart {
    /// New name: lower-case letters, digits and hyphens
    pub name: String,
    /// Directory of the source tree
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub tree: PathBuf,
}

/// Arguments of `arena`.
#[derive(Args, Debug)]
pub struct Arena {
    /// Scheduler, with optional version and tunables
    pub name: String,
    /// Device to compare on; may be repeated [default: those of `seekwell compare` for the
    /// scheduler's era]
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<String>,
    /// Workload to compare with, parameters after a colon; may be repeated [default: those of
    /// `seekwell compare`]
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Vec<String>,
    /// Trace to replay as well; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Vec<PathBuf>,
    /// Kernel, as for `seekwell compare`. It determines the schedulers to compare with [default:
    /// 6.12, or 4.0 for the single-queue layer]
    #[arg(long, value_name = "RELEASE")]
    pub kernel: Option<String>,
    /// Number of seeds; every scheduler runs once with each seed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub seeds: u32,
    /// First seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Number of parallel runs; the results do not depend on it [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `new`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct New {
    /// Create something other than an experiment file
    #[command(subcommand)]
    pub begin: Option<Begin>,
    /// Device in the file, from `seekwell devices`, or the path of a preset file relative to the
    /// new file; may be repeated [default: a SATA SSD and a hard disk of today]
    #[arg(long, short, value_name = "DEVICE", conflicts_with = "schema")]
    pub device: Vec<String>,
    /// Schedulers in the file [default: those of `seekwell compare`]
    #[arg(
        long,
        short,
        visible_alias = "scheduler",
        value_name = "LIST",
        conflicts_with = "schema"
    )]
    pub schedulers: Option<String>,
    /// Workload in the file, from `seekwell workloads`, with parameters after a colon, or a fio job
    /// file; may be repeated [default: those of `seekwell compare`]
    #[arg(long, short, value_name = "WORKLOAD", conflicts_with = "schema")]
    pub workload: Vec<String>,
    /// Print the JSON Schema of experiment files instead
    #[arg(long)]
    pub schema: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `devices`.
#[derive(Args, Debug)]
pub struct Devices {
    /// Describe this device: its parameters with unit and source
    pub name: Option<String>,
    /// Print more: in the list, descriptions and other names; for one device, every value with its
    /// source, and the curves; with --validate, every figure
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Also draw the device to FILE as SVG: the seek curve of a disk, or latency over queue depth
    /// for other devices
    #[arg(long, value_name = "FILE.svg", requires = "name", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// Compare the models with published figures and a null model (takes some seconds)
    #[arg(long, conflicts_with = "name")]
    pub validate: bool,
    /// With --validate: print the page docs/devices-validation.md
    #[arg(long, requires = "validate", conflicts_with = "json")]
    pub markdown: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `workloads`.
#[derive(Args, Debug)]
pub struct Workloads {
    /// Describe this workload: metric, parameters, profiles
    pub name: Option<String>,
    /// Print more: full descriptions in the list; for one workload, ranges, profiles and source
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `calibrate`.
#[derive(Args, Debug)]
pub struct Calibrate {
    /// Block device or file to measure; or a modelled device (hdd:hitachi-7k500), to test the
    /// method on a device with known parameters
    #[arg(value_hint = ValueHint::FilePath)]
    pub path: PathBuf,
    /// Time limit for the whole calibration (90s, 3m, 1m30s)
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = budget)]
    pub budget: f64,
    /// Also measure writes. They write back data that was just read from the same place. A device
    /// that is mounted or otherwise in use is refused
    #[arg(long)]
    pub allow_write: bool,
    /// Write the preset to FILE, completely or not at all [default: KIND-NAME.toml in the current
    /// directory, with a number if the file exists]
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Name of the preset [default: the last part of PATH]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Draw measurement, fit and residuals to FILE as SVG
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// Seed of the random numbers that select the places to probe
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Parses a time such as `3m`, `90s` or `1m30s`, of at least 5 seconds, and returns seconds.
pub(super) fn budget(text: &str) -> Result<f64, String> {
    let s = seconds(text)?;
    match s < 5.0 {
        true => Err(format!("`{text}` is less than 5 seconds")),
        false => Ok(s),
    }
}

/// Parses a time of 1 second to 24 hours and returns seconds.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let bad = || format!("`{text}` is not a time; write for example 90s, 3m or 1m30s");
    let (mut rest, mut sum) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, tail) = rest.split_at(digits.ok_or_else(bad)?);
        let number: f64 = number.parse().map_err(|_| bad())?;
        let unit = tail.chars().next().ok_or_else(bad)?;
        sum += number
            * match unit {
                's' => 1.0,
                'm' => 60.0,
                'h' => 3600.0,
                _ => return Err(bad()),
            };
        rest = &tail[unit.len_utf8()..];
    }
    match (1.0..=86_400.0).contains(&sum) {
        true => Ok(sum),
        false => Err(format!("`{text}` is outside 1 second to 24 hours")),
    }
}

/// Arguments of `formats`.
#[derive(Args, Debug)]
pub struct Formats {
    /// Describe this format: the data that it contains, and the data that it cannot hold
    pub name: Option<String>,
    /// Print more: content and full description of each format
    #[arg(long, conflicts_with_all = ["json", "name"])]
    pub details: bool,
    /// Print the page docs/formats.md
    #[arg(long, conflicts_with_all = ["json", "name"])]
    pub markdown: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `machines`.
#[derive(Args, Debug)]
pub struct Machines {
    /// Describe this machine: all its settings with their sources
    pub name: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// Name of the shell
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
pub struct Man {
    /// Directory to write one page per command into; without it, the main page is printed
    #[arg(value_hint = ValueHint::DirPath)]
    pub directory: Option<PathBuf>,
}
