//! Arguments of the command that runs published comparisons again.

use super::Output;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Arguments of `reproduce`.
#[derive(Args, Debug)]
pub struct Reproduce {
    /// phoronix-2012, moto-g-2014, laptop-ssd-2012, postgres-2015, mysql-2008, or all
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Smaller runs than published, in about a minute of CPU time, and one repeat instead of three.
    /// The answer shows what is smaller, and the factor that figures are scaled by
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
    /// Take the simulated figures from this results folder. `seekwell compare` made it from a
    /// changed experiment file (--file) or from a part of one; may be repeated
    #[arg(
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        conflicts_with_all = ["guard", "file", "repeats"]
    )]
    pub from: Vec<PathBuf>,
    /// Directory with one results folder per publication. Runs that are already there are not
    /// repeated
    #[arg(long, value_name = "DIR", default_value = "results", value_hint = ValueHint::DirPath)]
    pub results: PathBuf,
    /// Number of parallel runs; the result does not depend on it [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// Print every figure and every difference, with the evidence
    #[arg(long)]
    pub details: bool,
    /// Print the whole as Markdown (docs/reproduction.md)
    #[arg(long, conflicts_with_all = ["json", "file"])]
    pub markdown: bool,
    /// Print one JSON document
    #[arg(long, conflicts_with = "file")]
    pub json: bool,
    /// Check the robustness of the scores instead, with the quick form: constants (changes
    /// estimated constants by a quarter, each alone and all together), permuted (exchanges the
    /// labels of schedulers), ablations (removes claimed causes), order (runs the original order on
    /// one ageing drive), or all. Runs are stored next to the results and not repeated
    #[arg(long, value_name = "GUARD", conflicts_with = "file")]
    pub guard: Option<String>,
    /// Number of joint draws of all constants [default: 50]
    #[arg(
        long,
        value_name = "N",
        requires = "guard",
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub draws: Option<u32>,
    /// With --guard constants: only the joint draws
    #[arg(long, requires = "guard")]
    pub joint: bool,
    /// Print the experiment file and stop; `seekwell compare` runs a changed one
    #[arg(long)]
    pub file: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}
