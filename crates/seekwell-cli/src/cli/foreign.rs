//! Arguments of the commands that read results: those made elsewhere, and two of them.

use super::Output;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Where the scheduler of a foreign figure is named.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum NameFrom {
    /// In the name of the system, column or configuration.
    System,
    /// In the name of the test.
    Test,
    /// In the name of the file, or of the folder it lies in.
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

/// How foreign files are read; shared by `import` and `diff`.
#[derive(Args, Clone, Debug, Default)]
pub struct Foreign {
    /// Format of all files, from `seekwell import --list` [default: what each file's content shows]
    #[arg(long, short, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Which name tells the scheduler [default: by format, see `seekwell import --list`]
    #[arg(long, value_name = "WHERE")]
    pub scheduler_from: Option<NameFrom>,
    /// Read NEW where a system, test or file is called NAME (--map "Run 2=Laptop: bfq"); may be
    /// repeated
    #[arg(long, value_name = "NAME=NEW", value_parser = renamed)]
    pub map: Vec<(String, String)>,
    /// Names of a table's columns in their order, where a page's text lost them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Name of the device, where the files do not tell it
    #[arg(long, short, value_name = "NAME")]
    pub device: Option<String>,
}

fn renamed(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=');
    let parts = parts.filter(|p| !p.0.trim().is_empty() && !p.1.trim().is_empty());
    let (name, new) = parts.ok_or("write NAME=NEW, for instance \"Run 2=Laptop: bfq\"")?;
    Ok((name.trim().to_owned(), new.trim().to_owned()))
}

/// A share of 1 from a number of per cent between 0 and 100.
fn per_cent(text: &str) -> Result<f64, String> {
    let x: f64 = text
        .trim_end_matches('%')
        .trim()
        .parse()
        .map_err(|_| "not a number")?;
    match x > 0.0 && x < 100.0 {
        true => Ok(x / 100.0),
        false => Err("write per cent between 0 and 100, for instance 2".to_owned()),
    }
}

/// Arguments of `import`.
#[derive(Args, Debug)]
pub struct Import {
    /// Files that other programs made; `-` is standard input
    #[arg(required_unless_present = "list", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// List the formats; with --details what becomes device, scheduler and workload
    #[arg(long, conflicts_with = "files")]
    pub list: bool,
    /// How they are read
    #[command(flatten)]
    pub foreign: Foreign,
    /// Compare the others with this one, by its label or scheduler [default: the first named]
    #[arg(long, short, value_name = "NAME")]
    pub reference: Option<String>,
    /// Differences below this many per cent do not matter
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = per_cent)]
    pub margin: f64,
    /// Every cell, and a line a comparison with p before and after correction, and the other metrics
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Keep the results in FOLDER, which must not be there: `seekwell export`, `diff` and reports
    /// take it like one of our own experiments
    #[arg(long, short, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Compare each with each, not only with the reference
    #[arg(long)]
    pub all_pairs: bool,
    /// Print one JSON document: the results, and what may be said of them
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// The earlier results: a folder, or a file that `seekwell import` reads
    #[arg(value_name = "A", value_hint = ValueHint::AnyPath)]
    pub old: PathBuf,
    /// The later ones
    #[arg(value_name = "B", value_hint = ValueHint::AnyPath)]
    pub new: PathBuf,
    /// Judge each treatment by its change relative to this one, which must be in both [default: the
    /// reference of the experiment]
    #[arg(long, value_name = "NAME")]
    pub control: Option<String>,
    /// Judge absolute changes too, against at least five earlier results (--history)
    #[arg(long)]
    pub absolute: bool,
    /// Results of earlier sittings; from five on their own spread takes the place of the assumed
    /// one; may be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub history: Vec<PathBuf>,
    /// Fail only for what is worse after correction for the number of comparisons (Holm)
    #[arg(long)]
    pub strict_family: bool,
    /// Differences below this many per cent do not matter
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = per_cent)]
    pub margin: f64,
    /// How much a sitting moves one scheduler against another, per cent: assumed, where there is no
    /// history
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = per_cent)]
    pub sitting: f64,
    /// How foreign files are read
    #[command(flatten)]
    pub foreign: Foreign,
    /// Also what did not change
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}
