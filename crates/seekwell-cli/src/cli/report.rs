//! Arguments of `report` and `recommend`.

use super::choices::weighted;
use super::{Bench, Output, TraceInput, machine};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Arguments of `report`.
#[derive(Args, Debug)]
pub struct Report {
    /// Results folder, a file that `seekwell import` reads, or a trace (`-`: a trace on standard
    /// input)
    #[arg(value_name = "RESULTS|TRACE", value_hint = ValueHint::AnyPath)]
    pub results: PathBuf,
    /// More results for the same page. Their schedulers are shown together, their tests separately
    #[arg(value_name = "RESULTS", value_hint = ValueHint::AnyPath)]
    pub more: Vec<PathBuf>,
    /// Print Markdown, for a pull request
    #[arg(long, conflicts_with_all = ["json", "details"])]
    pub markdown: bool,
    /// Print one JSON document
    #[arg(long, conflicts_with = "details")]
    pub json: bool,
    /// Print the whole report in the terminal
    #[arg(long)]
    pub details: bool,
    /// Time window for the event replay: FROM..TO on the workload's clock (10s..12s) [default:
    /// around the longest operation]
    #[arg(long, value_name = "FROM..TO", value_parser = crate::windows::span,
        conflicts_with = "no_events")]
    pub events: Option<seekwell::Window>,
    /// Omit the event replay, so that no run is repeated for its events
    #[arg(long)]
    pub no_events: bool,
    /// Number of parallel runs [default: the number of cores]
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Options that select records
    #[command(flatten)]
    pub input: TraceInput,
    /// Output file: FILE.html is a page, FILE.md is Markdown. Without FILE, results are written to
    /// a page NAME.html next to them, and a trace is summarised on standard output
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `recommend`.
#[derive(Args, Debug)]
pub struct Recommend {
    /// Results folder, or a file that `seekwell import` reads. Without it, --device and --workload
    /// select what to simulate, with the defaults of `seekwell compare`
    #[arg(id = "asked", value_name = "RESULTS", value_hint = ValueHint::AnyPath)]
    pub results: Option<PathBuf>,
    /// Workload with its weight [1] (pgbench=3, fs-mark:files=100=0.5); may be repeated. With
    /// results, only the named workloads count
    #[arg(long, short, value_name = "WORKLOAD[=WEIGHT]", long_help = weighted())]
    pub workload: Vec<String>,
    /// Devices, schedulers and repeats; with results, --device selects the results of one device
    #[command(flatten)]
    pub bench: Bench,
    /// Modelled machine, as for `seekwell compare`
    #[arg(long, value_name = "LIST", default_value = "", long_help = machine())]
    pub machine: String,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}
