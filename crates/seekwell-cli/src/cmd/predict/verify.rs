//! Verifies a prediction on the disk: `compare --host` with the same workloads and schedulers, and
//! the same simulation.

use crate::cli::{Cli, Command, Predict};
use crate::cmd::onhost;
use crate::cmd::switch::show::{program, quoted};
use crate::fail::Failure;
use clap::Parser;
use seekwell_host::MachineFacts;
use seekwell_lab::host::HostWork;
use std::path::Path;

/// Returns the command that verifies the prediction.
pub fn command(
    a: &Predict,
    path: &Path,
    work: &[HostWork],
    device: &str,
    facts: &MachineFacts,
) -> String {
    let mut words = vec![
        "sudo".to_owned(),
        program(),
        "predict".to_owned(),
        quoted(&path.display().to_string()),
    ];
    for w in work {
        words.extend(["-w".to_owned(), quoted(&w.asked.0)]);
    }
    if let Some(list) = &a.schedulers {
        words.extend(["-s".to_owned(), quoted(list)]);
    }
    words.extend(["-d".to_owned(), quoted(device)]);
    words.extend(["--verify", "--confirm"].map(str::to_owned));
    words.push(quoted(&facts.device));
    words.join(" ")
}

/// Runs the measurement and prints the scores.
pub fn run(
    a: &Predict,
    path: &Path,
    work: &[HostWork],
    device: &str,
    quiet: bool,
) -> Result<(), Failure> {
    let mut words: Vec<String> = ["seekwell", "compare", "--host"]
        .map(str::to_owned)
        .to_vec();
    words.push(path.display().to_string());
    for w in work {
        words.extend(["--workload".to_owned(), w.asked.0.clone()]);
    }
    words.extend(["--with-sim".to_owned(), device.to_owned()]);
    let results = a.results.as_ref().map(|p| p.display().to_string());
    let output = a.output.output.as_ref().map(|p| p.display().to_string());
    for (option, value) in [
        ("--schedulers", a.schedulers.clone()),
        ("--confirm", a.confirm.clone()),
        ("--seeds", a.repeats.map(|n| n.to_string())),
        ("--budget", a.budget.map(|s| format!("{s}s"))),
        ("--results", results),
        ("--output", output),
    ] {
        if let Some(value) = value {
            words.extend([option.to_owned(), value]);
        }
    }
    if a.json {
        words.push("--json".to_owned());
    }
    let parsed = Cli::try_parse_from(words).map_err(|e| Failure::input(e.to_string()))?;
    match &parsed.command {
        Command::Compare(c) => onhost::command_line(c, path, quiet),
        _ => Ok(()),
    }
}
