//! Arguments of the commands that list and export results folders.

use super::Output;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use seekwell_lab::results::export::FORMATS;
use std::path::PathBuf;

/// Arguments of `results`.
#[derive(Args, Debug)]
pub struct Results {
    /// Results folders, or directories that contain results folders [default: the current
    /// directory, and results/ in it]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dirs: Vec<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `export`.
#[derive(Args, Debug)]
pub struct Export {
    /// Results folder, complete or not
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Format. csv: one line per run and metric; json: all data of the statistics; markdown: one
    /// table per cell; pts: composite.xml of the Phoronix Test Suite [default: from the name of the
    /// output (.csv, .json, .md, .xml), else csv]
    #[arg(long, short, value_name = "FORMAT", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(FORMATS.map(|f| f.name)))]
    pub format: Option<String>,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}
