//! Arguments of `import`, which reads results of other programs, and of `diff`.

use super::Output;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Where an imported file names the scheduler.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum NameFrom {
    /// In the name of the system, column or configuration.
    System,
    /// In the name of the test.
    Test,
    /// In the name of the file, or of its folder.
    File,
}

impl From<NameFrom> for seekwell_lab::import::NameFrom {
    fn from(f: NameFrom) -> Self {
        match f {
            NameFrom::System => seekwell_lab::import::NameFrom::System,
            NameFrom::Test => seekwell_lab::import::NameFrom::Test,
            NameFrom::File => seekwell_lab::import::NameFrom::File,
        }
    }
}

/// How imported files are read; shared by `import` and `diff`.
#[derive(Args, Clone, Debug, Default)]
pub struct Foreign {
    /// Format of all files, from `seekwell import --list` [default: detected from the content]
    #[arg(long, short, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Where the files name the scheduler [default: depends on the format, see `seekwell import
    /// --list`]
    #[arg(long, value_name = "WHERE")]
    pub scheduler_from: Option<NameFrom>,
    /// Rename: wherever the files have the system, test or file name NAME, use NEW (--map "Run
    /// 2=Laptop: bfq"); may be repeated
    #[arg(long, value_name = "NAME=NEW", value_parser = renamed)]
    pub map: Vec<(String, String)>,
    /// Column names of a table, in order, for a page whose text lost its column names
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Name of the device, if the files do not contain it
    #[arg(long, short, value_name = "NAME")]
    pub device: Option<String>,
}

fn renamed(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=');
    let parts = parts.filter(|p| !p.0.trim().is_empty() && !p.1.trim().is_empty());
    let (name, new) = parts.ok_or("write NAME=NEW, for example \"Run 2=Laptop: bfq\"")?;
    Ok((name.trim().to_owned(), new.trim().to_owned()))
}

/// Parses a percentage between 0 and 100 and returns it as a fraction.
fn per_cent(text: &str) -> Result<f64, String> {
    let x: f64 = text
        .trim_end_matches('%')
        .trim()
        .parse()
        .map_err(|_| "not a number")?;
    match x > 0.0 && x < 100.0 {
        true => Ok(x / 100.0),
        false => Err("write a percentage between 0 and 100, for example 2".to_owned()),
    }
}

/// Arguments of `import`.
#[derive(Args, Debug)]
pub struct Import {
    /// Files of other programs; `-` is standard input
    #[arg(required_unless_present = "list", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// List the formats; with --details, also which parts become device, scheduler and workload
    #[arg(long, conflicts_with = "files")]
    pub list: bool,
    /// How the files are read
    #[command(flatten)]
    pub foreign: Foreign,
    /// Compare the others with this scheduler or label [default: the first one]
    #[arg(long, short, value_name = "NAME")]
    pub reference: Option<String>,
    /// Ignore differences below this percentage
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = per_cent)]
    pub margin: f64,
    /// Print every cell, one line per comparison with the p-value before and after correction, and
    /// the other metrics
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Store the results in FOLDER, which must not exist. `seekwell export`, `diff` and `report`
    /// read it like a folder of an experiment
    #[arg(long, short, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Compare all pairs of schedulers, not only each with the reference
    #[arg(long)]
    pub all_pairs: bool,
    /// Print one JSON document with results and verdicts
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// The earlier results: a folder, or a file that `seekwell import` reads
    #[arg(value_name = "A", value_hint = ValueHint::AnyPath)]
    pub old: PathBuf,
    /// The later results: a folder, or a file that `seekwell import` reads
    #[arg(value_name = "B", value_hint = ValueHint::AnyPath)]
    pub new: PathBuf,
    /// Treatment to use as the control, which must be in both results. The other treatments are
    /// judged by their change relative to it [default: the reference of the experiment]
    #[arg(long, value_name = "NAME")]
    pub control: Option<String>,
    /// Also judge absolute changes; needs at least five earlier results (--history)
    #[arg(long)]
    pub absolute: bool,
    /// Results of earlier sessions; may be repeated. With five or more, their variation replaces
    /// the assumed session effect (--session)
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub history: Vec<PathBuf>,
    /// Return exit code 1 only for worse results that stay significant after the correction for
    /// multiple comparisons (Holm)
    #[arg(long)]
    pub strict_family: bool,
    /// Ignore differences below this percentage
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = per_cent)]
    pub margin: f64,
    /// Assumed session effect: how much a session changes one scheduler relative to another, in
    /// percent. Not used with five or more --history
    #[arg(
        long,
        alias = "sitting",
        value_name = "PERCENT",
        default_value = "1",
        value_parser = per_cent
    )]
    pub session: f64,
    /// How imported files are read
    #[command(flatten)]
    pub foreign: Foreign,
    /// Also print cells that did not change
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}
