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
