//! Arguments, and nothing else: every option's help is its documentation.

use crate::fail::EXIT_CODES;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

/// A laboratory for I/O schedulers: every one Linux people have argued about since 2002, on
/// modelled disks, under modelled programs and recorded traces.
#[derive(Parser, Debug)]
#[command(name = "seekwell", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    /// Colours: on a terminal (unless NO_COLOR is set), always, or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// No notes and no progress; results and errors only
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// When to use colours.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Makes it the rule for every stream.
    pub fn apply(self) {
        match self {
            Color::Auto => {}
            Color::Always => anstream::ColorChoice::Always.write_global(),
            Color::Never => anstream::ColorChoice::Never.write_global(),
        }
    }
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Watch a scheduler think: each step of a request list, and why
    ///
    /// FILE holds cases as JSON lines (one object a line; zstd and gzip are read as they are),
    /// or is a CSV of bios, `t_us,id,pid,op,sector,n`, with the rest said by options.
    /// Operations: R read, W asynchronous write, S synchronous write, N synchronous write that
    /// nobody idles for (fsync), P read of metadata with priority, M metadata read, A read-
    /// ahead, F flush, D discard.
    ///
    /// With one case (in the file, or by --case) every step is printed with the scheduler's
    /// reason and the state behind it. A case that carries a recorded dispatch order ends with
    /// the agreement, beside a FIFO and a wrong scheduler so that the figure means something.
    Explain(Explain),
    /// List the schedulers, or tell all about one
    Schedulers(Schedulers),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual page, or write one page per command into a directory
    Man(Man),
}

/// Where the result goes.
#[derive(Args, Debug)]
pub struct Output {
    /// Write the result to FILE, which appears whole or not at all
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// Cases (JSON lines) or bios (CSV)
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Only the case of this name
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub case: Option<String>,
    /// All cases: agreement summed over the file (with --csv: every log, each with its head line)
    #[arg(long)]
    pub all: bool,
    /// Scheduler, with version if not the default (`cfq-3.4`) [CSV default: deadline]
    #[arg(long, short, value_name = "SCHEDULER")]
    pub scheduler: Option<String>,
    /// Set a tunable before the start, as a write to sysfs would
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub tunable: Vec<String>,
    /// Ticks a second [CSV default: 1000]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub hz: Option<u32>,
    /// Requests the device takes at once [CSV default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub depth: Option<u32>,
    /// Time the device takes for each request, in microseconds [CSV default: 5000]
    #[arg(long, value_name = "US", value_parser = service_us)]
    pub service_us: Option<f64>,
    /// Exit with status 1 if any case differs from its recording
    #[arg(long)]
    pub strict: bool,
    /// Print the decision log as `id,t_ns,event`: dispatch, dispatch+ (further bios of the same
    /// request) and timer (without id); times in ns since the start
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

fn service_us(text: &str) -> Result<f64, String> {
    let us: f64 = text
        .parse()
        .map_err(|_| "not a number of microseconds".to_owned())?;
    if us.is_finite() && (0.0..=1e9).contains(&us) {
        Ok(us)
    } else {
        Err("outside 0..=1000000000 microseconds".to_owned())
    }
}

/// Arguments of `schedulers`.
#[derive(Args, Debug)]
pub struct Schedulers {
    /// Tell all about this one: history, when not to use it, every tunable, source
    pub name: Option<String>,
    /// Print the page docs/schedulers.md
    #[arg(long, conflicts_with_all = ["json", "name"])]
    pub markdown: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// Shell
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
pub struct Man {
    /// Directory for one page per command; without it the main page goes to standard output
    #[arg(value_hint = ValueHint::DirPath)]
    pub directory: Option<PathBuf>,
}
