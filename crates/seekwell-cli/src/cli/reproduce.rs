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
    /// Smaller than published, in about a minute of CPU time: what is smaller, and by how much
    /// figures are scaled, stands beside each; one run of each instead of three
    #[arg(long)]
    pub quick: bool,
    /// Runs of each, instead of three, or of one in the quick form
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1000),
        conflicts_with_all = ["guard", "file"]
    )]
    pub repeats: Option<u32>,
    /// Take ours from this folder of results instead, which `seekwell compare` made of a changed
    /// experiment file (--file), or of a part of it; may be given several times
    #[arg(
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        conflicts_with_all = ["guard", "file", "repeats"]
    )]
    pub from: Vec<PathBuf>,
    /// Folder that the folders of results lie in, one a publication: what is there already is not
    /// run again
    #[arg(long, value_name = "DIR", default_value = "results", value_hint = ValueHint::DirPath)]
    pub results: PathBuf,
    /// Runs at a time; the result does not depend on it [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// Every figure and every difference, with the evidence on each
    #[arg(long)]
    pub details: bool,
    /// The same as a document (docs/reproduction.md)
    #[arg(long, conflicts_with_all = ["json", "file"])]
    pub markdown: bool,
    /// Everything as one JSON document
    #[arg(long, conflicts_with = "file")]
    pub json: bool,
    /// Ask what a score is worth instead, in the quick form: constants (every estimated one a
    /// quarter less and more, alone and all together), permuted (schedulers' labels exchanged),
    /// ablations (claimed causes taken out), order (the original's order of runs on one ageing
    /// drive), or all; what was made is kept beside the results, and not made again
    #[arg(long, value_name = "GUARD", conflicts_with = "file")]
    pub guard: Option<String>,
    /// Draws of all constants together [default: 50]
    #[arg(
        long,
        value_name = "N",
        requires = "guard",
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub draws: Option<u32>,
    /// Of the guard constants only the joint draws
    #[arg(long, requires = "guard")]
    pub joint: bool,
    /// Print the experiment file instead of running it; `seekwell compare` runs a changed one
    #[arg(long)]
    pub file: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}
