//! Arguments of the commands that list what there is, and that fit and describe devices.

use super::Output;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// Arguments of `schedulers`.
#[derive(Args, Debug)]
pub struct Schedulers {
    /// Tell about this one: when not to use it, its tunables
    pub name: Option<String>,
    /// Tell more: of each layer, versions, what it does in full; of one its history, every tunable
    /// and rule, source
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Print the page docs/schedulers.md
    #[arg(long, conflicts_with_all = ["json", "name"])]
    pub markdown: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of a command of the Python package.
#[derive(Args, Debug)]
pub struct Handed {
    /// Its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    pub arguments: Vec<std::ffi::OsString>,
}

/// What `new` begins, if no experiment.
#[derive(Subcommand, Debug)]
pub enum Begin {
    /// Begin a scheduler in the source tree: its file, its line in the registry, worked examples
    Scheduler {
        /// What it is to be called: small letters, digits and hyphens
        name: String,
        /// The source tree
        #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
        tree: PathBuf,
    },
}

/// Arguments of `arena`.
#[derive(Args, Debug)]
pub struct Arena {
    /// The scheduler, with version and tunables where wanted
    pub name: String,
    /// Device it is met on; may be repeated [default: those of `seekwell compare`, for the scheduler's
    /// era]
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<String>,
    /// Workload it is met on, with parameters behind a colon; may be repeated [default: those of
    /// `seekwell compare`]
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Vec<String>,
    /// A trace that it is met on, too; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Vec<PathBuf>,
    /// The kernel, as for `seekwell compare`: rivals are those it has [default: 6.12, or 4.0 in the
    /// single-queue layer]
    #[arg(long, value_name = "RELEASE")]
    pub kernel: Option<String>,
    /// Seeds: every scheduler runs once with each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub seeds: u32,
    /// Seed of the first
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Runs at a time; the result does not depend on it [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `new`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct New {
    /// Something else than an experiment
    #[command(subcommand)]
    pub begin: Option<Begin>,
    /// Device it begins with, from `seekwell devices`, or the path of a preset file as seen from the
    /// new file; may be repeated [default: a SATA SSD and a hard disk of today]
    #[arg(long, short, value_name = "DEVICE", conflicts_with = "schema")]
    pub device: Vec<String>,
    /// Schedulers it begins with [default: those of `seekwell compare`]
    #[arg(
        long,
        short,
        visible_alias = "scheduler",
        value_name = "LIST",
        conflicts_with = "schema"
    )]
    pub schedulers: Option<String>,
    /// Workload it begins with, from `seekwell workloads`, with parameters behind a colon, or a fio
    /// job file; may be repeated [default: those of `seekwell compare`]
    #[arg(long, short, value_name = "WORKLOAD", conflicts_with = "schema")]
    pub workload: Vec<String>,
    /// Print the JSON Schema of experiment files instead
    #[arg(long)]
    pub schema: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `devices`.
#[derive(Args, Debug)]
pub struct Devices {
    /// Tell about this one: its parameters with unit and source
    pub name: Option<String>,
    /// Tell more: of each what it is and its other names; of one every value, what it rests on, and
    /// the curves; with --validate every figure
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write its picture to FILE as an SVG, too: the seek curve of a disk, latency against depth of
    /// what has none
    #[arg(long, value_name = "FILE.svg", requires = "name", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// Measure the models against published figures, a null model beside them (some seconds)
    #[arg(long, conflicts_with = "name")]
    pub validate: bool,
    /// With --validate: print the page docs/devices-validation.md
    #[arg(long, requires = "validate", conflicts_with = "json")]
    pub markdown: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `calibrate`.
#[derive(Args, Debug)]
pub struct Calibrate {
    /// Block device or file; or a modelled device (hdd:hitachi-7k500), to see what probing finds of
    /// one that is known
    #[arg(value_hint = ValueHint::FilePath)]
    pub path: PathBuf,
    /// Time for everything (90s, 3m, 1m30s)
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = budget)]
    pub budget: f64,
    /// Measure writing too: what is written is what was just read from the same place. Refused on
    /// a device that is mounted or otherwise in use
    #[arg(long)]
    pub allow_write: bool,
    /// Write the preset to FILE, which appears whole or not at all [default: KIND-NAME.toml here,
    /// with a number if there is one already]
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Name of the preset [default: the last part of PATH]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Write measurement, fit and residuals to FILE as SVG
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// Seed of the places probed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Seconds of `3m`, `90s` or `1m30s`.
pub(super) fn budget(text: &str) -> Result<f64, String> {
    let bad = || format!("{text:?} is no time: write 90s, 3m or 1m30s");
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
    if (5.0..=86_400.0).contains(&sum) {
        Ok(sum)
    } else {
        Err(format!("{text}: between 5 seconds and 24 hours, please"))
    }
}

/// Arguments of `formats`.
#[derive(Args, Debug)]
pub struct Formats {
    /// Tell all about this one: what it is, what it carries, what is lost
    pub name: Option<String>,
    /// Tell more of each: what it carries, what it is in full
    #[arg(long, conflicts_with_all = ["json", "name"])]
    pub details: bool,
    /// Print the page docs/formats.md
    #[arg(long, conflicts_with_all = ["json", "name"])]
    pub markdown: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `machines`.
#[derive(Args, Debug)]
pub struct Machines {
    /// Tell all about this one: every word of it with its source
    pub name: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// Shell
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
pub struct Man {
    /// Directory for one page per command; without it the main page goes to standard output
    #[arg(value_hint = ValueHint::DirPath)]
    pub directory: Option<PathBuf>,
}
