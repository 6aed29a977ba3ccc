//! Arguments of the commands that say what results mean.

use super::choices::weighted;
use super::{Bench, Output, TraceInput, machine};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Arguments of `report`.
#[derive(Args, Debug)]
pub struct Report {
    /// A results folder, a file that `seekwell import` reads, or a recorded trace (`-`: one on
    /// standard input)
    #[arg(value_name = "RESULTS|TRACE", value_hint = ValueHint::AnyPath)]
    pub results: PathBuf,
    /// More results, put together with the first: their schedulers on one page, their tests apart
    #[arg(value_name = "RESULTS", value_hint = ValueHint::AnyPath)]
    pub more: Vec<PathBuf>,
    /// Print Markdown, for a pull request
    #[arg(long, conflicts_with_all = ["json", "details"])]
    pub markdown: bool,
    /// Print one JSON document
    #[arg(long, conflicts_with = "details")]
    pub json: bool,
    /// Print all of it for this terminal
    #[arg(long)]
    pub details: bool,
    /// Window of events for the replay, on the workload's clock (10s..12s) [default: around the
    /// operation that took longest]
    #[arg(long, value_name = "FROM..TO", value_parser = crate::events::span,
        conflicts_with = "no_events")]
    pub events: Option<seekwell::Window>,
    /// No replay: no run is made again to hear its events
    #[arg(long)]
    pub no_events: bool,
    /// Runs at a time [default: one a core]
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// What of a trace
    #[command(flatten)]
    pub input: TraceInput,
    /// Where to: FILE.html is a page, FILE.md Markdown; without it a page NAME.html beside the
    /// results, and of a trace the first screen on standard output
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `recommend`.
#[derive(Args, Debug)]
pub struct Recommend {
    /// A results folder, or a file that `seekwell import` reads; without it --device and --workload
    /// say what to simulate [default: what `seekwell compare` takes]
    #[arg(id = "asked", value_name = "RESULTS", value_hint = ValueHint::AnyPath)]
    pub results: Option<PathBuf>,
    /// Workload with its weight [1] (pgbench=3, fs-mark:files=100=0.5); may be repeated. Of results
    /// only those named count
    #[arg(long, short, value_name = "WORKLOAD[=WEIGHT]", long_help = weighted())]
    pub workload: Vec<String>,
    /// What runs on what; of results, --device picks those of one device
    #[command(flatten)]
    pub bench: Bench,
    /// The modelled machine, as for `seekwell compare`
    #[arg(long, value_name = "LIST", default_value = "", long_help = machine())]
    pub machine: String,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}
