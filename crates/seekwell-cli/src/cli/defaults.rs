//! Arguments of `defaults`.

use super::{Output, RESULTS};
use clap::{Args, ValueHint};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  seekwell defaults --distribution fedora
  seekwell defaults --device ssd:sata-tlc-1t
  seekwell defaults --evidence --results results/defaults";

/// Arguments of `defaults`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Defaults {
    /// Show only this distribution; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "markdown")]
    pub distribution: Vec<String>,
    /// Show only the class of this device, from `seekwell devices`
    ///
    /// With --evidence, the runs use this device.
    #[arg(long, short, value_name = "DEVICE", conflicts_with = "markdown")]
    pub device: Option<String>,
    /// Simulate one device per class, and compare each choice with the recommendation
    ///
    /// The workloads and schedulers are those of `seekwell compare`, and the settings of the
    /// distributions are added. It takes some minutes of CPU time.
    #[arg(long, conflicts_with = "markdown")]
    pub evidence: bool,
    /// With --evidence: workload, as for `seekwell compare`; may be repeated
    #[arg(long, short, value_name = "WORKLOAD", requires = "evidence")]
    pub workload: Vec<String>,
    /// With --evidence: number of seeds [default: 6]
    #[arg(long, value_name = "N", requires = "evidence",
        value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub seeds: Option<u32>,
    /// With --evidence: number of parallel runs [default: the number of cores]
    #[arg(long, value_name = "N", requires = "evidence",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// With --evidence: store the runs in this folder, one folder per class
    ///
    /// The same command resumes it, and repeats no finished run.
    #[arg(long, value_name = "DIR", requires = "evidence", value_hint = ValueHint::DirPath,
        help_heading = RESULTS)]
    pub results: Option<PathBuf>,
    /// Print the page docs/defaults.md
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}
