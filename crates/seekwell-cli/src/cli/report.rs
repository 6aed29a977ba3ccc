//! Arguments of the commands that say what results mean.

use super::Output;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Arguments of `report`.
#[derive(Args, Debug)]
pub struct Report {
    /// A results folder
    #[arg(value_name = "RESULTS", value_hint = ValueHint::DirPath)]
    pub results: PathBuf,
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
    /// Where to; without it NAME.html beside the folder
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `recommend`.
#[derive(Args, Debug)]
pub struct Recommend {
    /// A results folder
    #[arg(value_name = "RESULTS", value_hint = ValueHint::DirPath)]
    pub results: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}
