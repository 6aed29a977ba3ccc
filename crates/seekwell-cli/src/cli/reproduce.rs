//! Arguments of `reproduce`, which repeats published comparisons in simulation.

use super::Output;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Arguments of `reproduce`.
#[derive(Args, Debug)]
pub struct Reproduce {
    /// Publication: phoronix-2012, moto-g-2014, laptop-ssd-2012, postgres-2015, mysql-2008, or all
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Run smaller workloads than published (about a minute of CPU time), once instead of three
    /// times. The report shows what is smaller, and the factor by which figures are scaled
    #[arg(long)]
    pub quick: bool,
    /// Number of repeats [default: three, or one with --quick]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1000),
        conflicts_with_all = ["guard", "file"]
    )]
    pub repeats: Option<u32>,
    /// Use the simulated figures in this results folder, which `seekwell compare` wrote for a
    /// changed experiment file (--file) or a part of it; may be repeated
    #[arg(
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        conflicts_with_all = ["guard", "file", "repeats"]
    )]
    pub from: Vec<PathBuf>,
    /// Directory with one results folder per publication. Runs that are stored there are not
    /// repeated
    #[arg(long, value_name = "DIR", default_value = "results", value_hint = ValueHint::DirPath)]
    pub results: PathBuf,
    /// Number of parallel runs; the results do not depend on it [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// Print every figure and every difference, with the evidence
    #[arg(long)]
    pub details: bool,
    /// Print the complete report as Markdown (docs/reproduction.md)
    #[arg(long, conflicts_with_all = ["json", "file"])]
    pub markdown: bool,
    /// Print one JSON document
    #[arg(long, conflicts_with = "file")]
    pub json: bool,
    /// Check the robustness of the scores instead, with the small workloads of --quick: constants
    /// (changes estimated constants by a quarter, each alone and all together), permuted (exchanges
    /// the labels of schedulers), ablations (removes claimed causes), order (runs the original
    /// order on one ageing drive), or all. Runs are stored next to the results and not repeated
    #[arg(long, value_name = "GUARD", conflicts_with = "file")]
    pub guard: Option<String>,
    /// Number of random draws in which all constants change together [default: 50]
    #[arg(
        long,
        value_name = "N",
        requires = "guard",
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub draws: Option<u32>,
    /// With --guard constants: run only the draws in which all constants change together
    #[arg(long, requires = "guard")]
    pub joint: bool,
    /// Print the experiment file and stop; you can change the file and run it with `seekwell
    /// compare`
    #[arg(long)]
    pub file: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}
